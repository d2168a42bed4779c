"""Objects that do not fit their class, in webhooks that the embedded API server and the real one call."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from aioinformer import Client, ConflictError, ForbiddenError, InvalidError, NotFoundError, Resource
from aioinformer.operator import AdmissionReview, CustomResource, Denied, Operator
from aioinformer.testing import eventually
from aioinformer.typed import CamelStruct, crd

from . import api
from .clusters import Cluster
from .definitions import define, undefine
from .webhook_world import World, webhook_world

PAGES = "pages.unfit.example.com"


class OldSpec(CamelStruct, kw_only=True):
    domain: str
    note: str | None = None
    seen: datetime | None = None
    more: Any = None


class NewSpec(CamelStruct, kw_only=True):
    host: str
    note: str | None = None
    seen: datetime | None = None
    more: Any = None


class OldPage(CustomResource, group="unfit.example.com", version="v1beta1", kind="Page", storage=True):
    spec: OldSpec


class Page(OldPage, version="v1"):
    spec: NewSpec  # type: ignore[assignment]


def make_converting_operator(name: str) -> Operator:
    operator = Operator(name)

    @operator.convert(OldPage, Page)
    def newer(old: OldPage) -> Page:
        spec = old.spec
        return Page(
            spec=NewSpec(host=spec.domain, note=spec.note, seen=spec.seen, more=spec.more),
            metadata=old.metadata,
        )

    @operator.convert(Page, OldPage)
    def older(new: Page) -> OldPage:
        spec = new.spec
        return OldPage(
            spec=OldSpec(domain=spec.host, note=spec.note, seen=spec.seen, more=spec.more),
            metadata=new.metadata,
        )

    return operator


def pages(here: World, version: str, manager: str = "tests") -> Resource[dict[str, Any]]:
    return Resource(
        here.client, f"unfit.example.com/{version}", "pages", dict, kind="Page", field_manager=manager
    )


def page(here: World, name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": here.namespace}, "spec": spec}


def owners(obj: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {
        (
            entry["manager"],
            entry["apiVersion"].partition("/")[2],
            ",".join(sorted(entry["fieldsV1"].get("f:spec", {}))),
        )
        for entry in obj["metadata"]["managedFields"]
    }


async def test_what_was_applied_in_another_version_is_applied(cluster: Cluster, tmp_path: Path) -> None:
    try:
        async with webhook_world(cluster, tmp_path, make_converting_operator("applying")) as here:
            old, new = pages(here, "v1beta1", "git"), pages(here, "v1", "git")
            for name in ("same", "changed", "less", "other"):
                await old.apply(page(here, name, domain="a.example", note="n"))

            same = await new.apply(page(here, "same", host="a.example", note="n"))
            assert same["spec"] == {"host": "a.example", "note": "n"}
            assert owners(same) == {("git", "v1", "f:host,f:note")}

            changed = await new.apply(page(here, "changed", host="b.example", note="n"))
            assert changed["spec"] == {"host": "b.example", "note": "n"}

            less = await new.apply(page(here, "less", host="a.example"))
            assert less["spec"] == {"host": "a.example"}, (
                "what is no longer applied is removed, by its former name"
            )

            with pytest.raises(ConflictError, match=r'conflict with "git"'):
                await pages(here, "v1", "other").apply(page(here, "other", host="b.example"))
            taken = await pages(here, "v1", "other").apply(page(here, "other", host="b.example"), force=True)
            assert owners(taken) == {("git", "v1beta1", "f:note"), ("other", "v1", "f:host")}
            back = await old.apply(page(here, "other", domain="c.example"), force=True)
            assert back["spec"] == {"domain": "c.example"}
            assert owners(back) == {("git", "v1beta1", "f:domain")}
    finally:
        await undefine(cluster.api, PAGES)


async def test_an_update_in_another_version_takes_what_it_changes(cluster: Cluster, tmp_path: Path) -> None:
    try:
        async with webhook_world(cluster, tmp_path, make_converting_operator("updating")) as here:
            await pages(here, "v1beta1", "git").apply(page(here, "a", domain="a.example", note="n"))
            key = f"{here.namespace}/a"
            patched = await pages(here, "v1", "me").patch(key, {"spec": {"host": "b.example"}})
            assert owners(patched) == {("git", "v1beta1", "f:note"), ("me", "v1", "f:host")}
            applied = await pages(here, "v1beta1", "git").apply(page(here, "a", domain="b.example"))
            assert applied["spec"] == {"domain": "b.example"}
    finally:
        await undefine(cluster.api, PAGES)


async def test_an_object_that_python_cannot_hold_does_not_fail_the_others(
    cluster: Cluster, tmp_path: Path
) -> None:
    try:
        async with webhook_world(cluster, tmp_path, make_converting_operator("listing")) as here:
            old, new = pages(here, "v1beta1"), pages(here, "v1")
            await old.create(page(here, "fits", domain="a.example"))
            await permit_any_time(cluster)
            year_zero = page(here, "year-zero", domain="b.example", seen="0000-01-01T00:00:00Z")
            await eventually(lambda: is_created(old, year_zero))
            listed = {obj["metadata"]["name"]: obj["spec"] for obj in await new.list(here.namespace)}
            assert listed["fits"] == {"host": "a.example"}
            assert listed["year-zero"] == {"host": "b.example", "seen": "0000-01-01T00:00:00Z"}
            await new.patch(f"{here.namespace}/year-zero", {"spec": {"note": "n"}})
            stored = await old.get(f"{here.namespace}/year-zero")
            assert stored["spec"] == {"domain": "b.example", "seen": "0000-01-01T00:00:00Z", "note": "n"}
    finally:
        await undefine(cluster.api, PAGES)


async def permit_any_time(cluster: Cluster) -> None:
    """Let the definition take what its schema took in an earlier release: each time of RFC 3339."""
    path = api.DEFINITIONS.path(name=PAGES)
    definition = (await cluster.api.ask("GET", path)).body
    for version in definition["spec"]["versions"]:
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["seen"] = {
            "type": "string",
            "format": "date-time",
        }
    await cluster.api.do("PUT", path, definition)


async def is_created(resource: Resource[dict[str, Any]], obj: dict[str, Any]) -> bool:
    try:
        await resource.create(obj)
    except InvalidError:
        return False
    return True


def nest(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.kubernetes
@pytest.mark.xdist_group("kubernetes")
@pytest.mark.parametrize("levels", [1_100, 9_993])
async def test_nesting_hides_nothing_from_a_policy(real: Cluster, tmp_path: Path, levels: int) -> None:
    operator = make_converting_operator("nested")

    @operator.mutate(Page)
    def fill(review: AdmissionReview[Page]) -> None:
        review.object.metadata.labels["filled"] = "yes"

    @operator.validate(Page, failure_policy="Ignore")
    def check(review: AdmissionReview[Page]) -> None:
        if review.object.spec.host == "refused":
            raise Denied("no")

    try:
        async with webhook_world(real, tmp_path, operator) as here:
            new = pages(here, "v1")
            await until_refused(here)
            with pytest.raises(ForbiddenError, match="denied the request: no"):
                await new.create(page(here, "deep", host="refused", more=nest(levels)))
            made = await new.create(page(here, "deep", host="a.example", more=nest(levels)))
            assert made["metadata"]["labels"] == {"filled": "yes"}
            assert (
                len(await new.list(here.namespace))
                == len(await pages(here, "v1beta1").list(here.namespace))
                == 1
            )
            await new.patch(f"{here.namespace}/deep", {"spec": {"more": None}})
    finally:
        await undefine(real.api, PAGES)


async def until_refused(here: World) -> None:
    """Wait until the server calls the webhooks."""
    path = api.Resource("unfit.example.com/v1", "pages").path(here.namespace)
    obj = {**page(here, "refused", host="refused"), "apiVersion": "unfit.example.com/v1", "kind": "Page"}
    async with asyncio.timeout(20):
        # Nothing tells when the server knows its configurations.
        while (await here.api.ask("POST", path, obj, {"dryRun": "All"})).status != 403:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


class Loose(CustomResource, group="unfit.example.com", version="v1", kind="Page"):
    """The pages of an earlier release."""

    spec: dict[str, Any]


async def test_an_object_from_before_its_class_became_stricter_can_get_a_label(
    cluster: Cluster, tmp_path: Path
) -> None:
    operator = Operator("stricter")

    @operator.validate(Page)
    def check(review: AdmissionReview[Page]) -> None:
        if review.object.spec.host == "refused":
            raise Denied("no")

    loose = crd(Loose)
    try:
        await define(cluster.api, loose)
        async with Client.from_kubeconfig(path=cluster.kubeconfig) as client:
            before = Resource(client, "unfit.example.com/v1", "pages", dict, kind="Page")
            metadata = {"name": "old", "namespace": cluster.namespace}
            await before.create({"metadata": metadata, "spec": {"note": "no host"}})
        async with webhook_world(cluster, tmp_path, operator) as here:
            await until_refused(here)
            new, key = pages(here, "v1"), f"{here.namespace}/old"
            labelled = await new.patch(key, {"metadata": {"labels": {"a": "b"}}})
            assert labelled["metadata"]["labels"] == {"a": "b"}
            with pytest.raises(InvalidError) as refused:
                await new.patch(key, {"spec": {"note": "changed"}})
            assert [(cause.field, cause.message) for cause in refused.value.causes] == [
                ("spec.host", "is required")
            ]
            repaired = await new.patch(key, {"spec": {"host": "a.example"}})
            assert repaired["spec"] == {"note": "no host", "host": "a.example"}
    finally:
        await undefine(cluster.api, PAGES)


async def test_a_finalizer_takes_no_object_out_of_the_reach_of_a_policy(
    cluster: Cluster, tmp_path: Path
) -> None:
    operator = Operator("reach")
    selector = {"matchLabels": {"reach": "yes"}}

    @operator.validate("configmaps", object_selector=selector)
    def check(review: AdmissionReview[Any]) -> None:
        if review.object["data"]["a"] == "refused":
            raise Denied("no")

    async with webhook_world(cluster, tmp_path, operator) as here:
        maps = Resource(here.client, "configmaps")

        def configmap(name: str, value: str) -> dict[str, Any]:
            metadata = {"name": name, "namespace": here.namespace, "labels": {"reach": "yes"}}
            return {"metadata": metadata | {"finalizers": ["tenant.example.com/keep"]}, "data": {"a": value}}

        async with asyncio.timeout(20):
            number = 0
            while True:
                try:
                    await maps.create(configmap(f"probe-{number}", "refused"))
                    await asyncio.sleep(0.05)
                    number += 1
                except ForbiddenError:
                    break
        await maps.create(configmap("m", "fine"))
        key = f"{here.namespace}/m"
        await maps.delete(key)
        with pytest.raises(ForbiddenError, match="denied the request: no"):
            await maps.patch(key, {"data": {"a": "refused"}})
        with pytest.raises(ForbiddenError, match="denied the request: no"):
            await maps.patch(key, {"metadata": {"finalizers": None}, "data": {"a": "refused"}})
        await maps.patch(key, {"metadata": {"labels": {"b": "c"}, "finalizers": None}})
        with pytest.raises(NotFoundError):
            await maps.get(key)
