"""Webhooks that the embedded API server and the real one call."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from aioinformer import ApiError, InvalidError, NotFoundError, Resource
from aioinformer.operator import AdmissionReview, CustomResource, Denied, Operator, Request
from aioinformer.testing import eventually
from aioinformer.typed import Metadata
from tests.kubernetes.kubectl import KubectlError

from ..operator.webhooks.kinds import SpecV1, SpecV2, WebsiteV1
from .clusters import Cluster, KubernetesCluster
from .definitions import undefine
from .webhook_world import webhook_world


async def test_denials_and_warnings_reach_the_user(cluster: Cluster, tmp_path: Path) -> None:
    operator = Operator("denials")
    seen: list[tuple[str, bool, str]] = []

    @operator.validate(WebsiteV1, operations=["CREATE", "UPDATE", "DELETE"])
    async def check(review: AdmissionReview[WebsiteV1]) -> None:
        seen.append((review.operation, review.dry_run, review.user.username))
        review.warn(f"{review.object.spec.host} is slow")
        if review.object.spec.host == "taken":
            raise Denied("is taken", field="spec.host")
        if review.operation == "UPDATE" and review.old and review.old.spec.host != review.object.spec.host:
            raise Denied("the host cannot change")
        if review.operation == "DELETE" and review.object.spec.replicas:
            raise Denied("it has replicas")

    async with webhook_world(cluster, tmp_path, operator) as here:
        await here.until_refused(here.site(host="taken"))
        user = "admin" if isinstance(cluster, KubernetesCluster) else "embedded"
        assert ("CREATE", True, user) in seen
        with pytest.raises(InvalidError) as refused:
            await here.sites.create(here.site(host="taken"))
        assert refused.value.causes[0][:2] == ("spec.host", "FieldValueInvalid")
        if isinstance(cluster, KubernetesCluster):
            with pytest.raises(KubectlError, match=r'The Website "a" is invalid: spec.host: is taken'):
                await cluster.control_plane.kubectl(
                    "create", "-f", "-", stdin=json.dumps(here.site(host="taken"))
                )
        created = await here.sites.create(here.site(replicas=2))
        assert here.warnings[-1] == "a.example is slow"
        created.spec.host = "other"
        with pytest.raises(ApiError, match="denied the request: the host cannot change") as forbidden:
            await here.sites.update(created)
        assert forbidden.value.status == 403
        with pytest.raises(ApiError, match="it has replicas"):
            await here.sites.delete(created)
        assert ("DELETE", False, user) in seen


async def test_a_patch_changes_what_is_stored(cluster: Cluster, tmp_path: Path) -> None:
    operator = Operator("patches")

    @operator.mutate(WebsiteV1)
    async def fill(review: AdmissionReview[WebsiteV1]) -> WebsiteV1 | None:
        site = review.object
        if site.spec.host == "refused":
            raise Denied("no")
        site.spec.replicas = site.spec.replicas or 3
        site.metadata.labels["example.com/filled"] = "yes"
        return site

    @operator.mutate("configmaps", object_selector={"matchLabels": {"patches": "yes"}})
    def colour(review: AdmissionReview[Any]) -> dict[str, Any]:
        return {**review.object.to_dict(), "data": {"colour": "blue"}}

    async with webhook_world(cluster, tmp_path, operator) as here:
        await here.until_refused(here.site(host="refused"))
        obj = here.site()
        obj["metadata"] |= {"annotations": {"a": "b"}, "labels": {"c": "d"}}
        created = await here.sites.create(obj)
        assert created.spec.replicas == 3
        assert created.metadata.annotations == {"a": "b"}
        assert created.metadata.labels == {"c": "d", "example.com/filled": "yes"}
        metadata = {"name": "c", "namespace": here.namespace, "labels": {"patches": "yes"}}
        made = await Resource(here.client, "configmaps").create({"metadata": metadata, "data": {"x": "y"}})
        assert made["data"] == {"colour": "blue"}


async def test_an_object_that_became_invalid_can_be_deleted(cluster: Cluster, tmp_path: Path) -> None:
    operator = Operator("trapped")
    cleaned: list[str] = []
    valid = ["a.example", "b.example"]

    def clean_up(request: Request[WebsiteV1]) -> None:
        cleaned.append(request.name)

    @operator.controller(WebsiteV1, finalizer="hooks.example.com/a", cleanup=clean_up)
    def reconcile(request: Request[WebsiteV1]) -> None: ...

    @operator.validate(WebsiteV1)
    def check(review: AdmissionReview[WebsiteV1]) -> None:
        if review.object.spec.host not in valid:
            raise Denied("is not valid", field="spec.host")

    async with webhook_world(cluster, tmp_path, operator) as here:
        await here.until_refused(here.site(host="refused"))
        metadata = {"name": "old", "namespace": here.namespace, "finalizers": ["hooks.example.com/a"]}
        old = await here.sites.create({**here.site(host="b.example"), "metadata": metadata})
        valid.remove("b.example")
        with pytest.raises(InvalidError, match="is not valid"):
            await here.sites.patch(old, {"metadata": {"labels": {"a": "b"}}})
        async with operator.running(here.client, namespace=here.namespace):
            await here.sites.delete(old)
            await eventually(lambda: _is_gone(here.sites, old.key))
    assert cleaned == ["old"]


async def _is_gone(sites: Resource[WebsiteV1], key: str) -> bool:
    try:
        await sites.get(key)
    except NotFoundError:
        return True
    return False


async def test_200_concurrent_requests(cluster: Cluster, tmp_path: Path) -> None:
    operator = Operator("many")
    running, together = 0, asyncio.Event()

    @operator.validate(WebsiteV1)
    async def check(review: AdmissionReview[WebsiteV1]) -> None:
        nonlocal running
        running += 1
        if running == 20:
            together.set()
        if review.object.metadata.name.startswith("s-"):
            await asyncio.wait_for(together.wait(), 8)  # fails unless 20 run at the same time
        running -= 1
        if review.object.spec.host == "refused":
            raise Denied("no")

    async with webhook_world(cluster, tmp_path, operator) as here:
        await here.until_refused(here.site(host="refused"))
        answers = await asyncio.gather(
            *(
                here.dry_run(here.site(f"s-{number}", host="refused" if number % 2 else "a.example"))
                for number in range(200)
            )
        )
    assert [answer.status for answer in answers] == [201, 403] * 100


async def test_expired_certificate_until_it_is_renewed(cluster: Cluster, tmp_path: Path) -> None:
    operator = Operator("expired")

    @operator.validate(WebsiteV1)
    def check(review: AdmissionReview[WebsiteV1]) -> None: ...

    async with webhook_world(cluster, tmp_path, operator, expired=True) as here:
        answer = await here.until_refused(here.site())
        assert answer.status == 500
        assert "certificate has expired" in answer.body["message"]
        here.files.renew()
        await here.until_allowed(here.site())


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
async def test_failure_policy_decides_on_slow_and_failing_functions(
    cluster: Cluster, tmp_path: Path, policy: Any
) -> None:
    operator = Operator(f"policy-{policy.lower()}")

    @operator.validate(WebsiteV1, timeout=1, failure_policy=policy)
    async def check(review: AdmissionReview[WebsiteV1]) -> None:
        if review.object.spec.host == "refused":
            raise Denied("no")
        if review.object.spec.host == "slow":
            await asyncio.Event().wait()
        raise KeyError("a secret")

    async with webhook_world(cluster, tmp_path, operator) as here:
        await here.until_refused(here.site(host="refused"))
        slow, failing = await here.dry_run(here.site(host="slow")), await here.dry_run(here.site())
        if policy == "Ignore":
            assert (slow.status, failing.status) == (201, 201)
        else:
            assert "check.websites.hooks.example.com took longer than 0.9 s" in slow.body["message"]
            assert "failed: KeyError; see the operator's log" in failing.body["message"]
            assert (slow.status, failing.status) == (500, 500)


async def test_objects_of_three_megabytes(cluster: Cluster, tmp_path: Path) -> None:
    operator = Operator("large")

    @operator.mutate(WebsiteV1)
    def fill(review: AdmissionReview[WebsiteV1]) -> None:
        review.object.spec.replicas = len(review.object.spec.host)

    @operator.validate(WebsiteV1)
    def check(review: AdmissionReview[WebsiteV1]) -> None:
        if review.object.spec.host == "refused":
            raise Denied("no")

    async with webhook_world(cluster, tmp_path, operator) as here:
        await here.until_refused(here.site(host="refused"))
        size = 3 * 1024 * 1024 - 1000  # the API server reads 3 MiB
        answer = await here.dry_run(here.site(host="x" * size))
        assert answer.status == 201, answer.body["message"][:500]
        assert answer.body["spec"]["replicas"] == size
        assert (await here.dry_run(here.site(host="x" * (size + 2000)))).status == 413


class Page(CustomResource, group="pages.example.com", version="v1", storage=True):
    spec: SpecV1


class PageV2(Page, version="v2", kind="Page", plural="pages"):
    spec: SpecV2  # type: ignore[assignment]


async def test_a_stored_version_is_read_as_another(cluster: Cluster, tmp_path: Path) -> None:
    operator = Operator("pages")

    @operator.convert(Page, PageV2)
    async def newer(old: Page) -> PageV2:
        if old.spec.host == "bad":
            raise Denied("a bad host cannot be read as v2")
        return PageV2(SpecV2(hosts=[old.spec.host], min_ready=old.spec.replicas or 1), metadata=old.metadata)

    @operator.convert(PageV2, Page)
    def older(old: PageV2) -> Page:
        return Page(SpecV1(host=old.spec.hosts[0], replicas=old.spec.min_ready), metadata=old.metadata)

    try:
        async with webhook_world(cluster, tmp_path, operator) as here:
            pages, pages_v2 = Resource(here.client, Page), Resource(here.client, PageV2)
            for name in ("a", "b"):
                metadata = Metadata(name=name, namespace=here.namespace, labels={"x": name})
                await pages.create(Page(SpecV1(host=f"{name}.example", replicas=2), metadata=metadata))
            page = await pages_v2.get(f"{here.namespace}/a")
            assert (page.spec.hosts, page.spec.min_ready) == (["a.example"], 2)
            assert page.metadata.labels == {"x": "a"}
            listed = await pages_v2.list(here.namespace)
            assert [obj.spec.hosts for obj in listed] == [["a.example"], ["b.example"]]
            page.spec.hosts = ["c.example"]
            await pages_v2.update(page)
            assert (await pages.get(f"{here.namespace}/a")).spec.host == "c.example"
            metadata = Metadata(name="bad", namespace=here.namespace)
            await pages.create(Page(SpecV1(host="bad"), metadata=metadata))
            with pytest.raises(ApiError, match="a bad host cannot be read as v2"):
                await pages_v2.get(f"{here.namespace}/bad")
            await pages.delete(f"{here.namespace}/bad")
    finally:
        await undefine(cluster.api, "pages.pages.example.com")
