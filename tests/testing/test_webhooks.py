"""Webhooks of the embedded server, beyond what the end-to-end tests compare with the real one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from aioinformer import ApiError, Client, KubeObject, Resource, SharedInformerFactory
from aioinformer.operator import AdmissionReview, CustomResource, Denied, Operator, WebhookServer
from aioinformer.testing import APIServer, StatusError, TestingError, eventually
from aioinformer.typed import Metadata
from tests import samples
from tests.operator.webhooks.certificates import Certificates
from tests.operator.webhooks.kinds import SpecV1, SpecV2

configmap = partial(samples.configmap, namespace="default")

Object = dict[str, Any]
ADMISSION = "admissionregistration.k8s.io/v1"
DEFINITIONS = "apiextensions.k8s.io/v1"


@asynccontextmanager
async def serve(operator: Operator, folder: Path, *names: str) -> AsyncIterator[tuple[str, Certificates]]:
    """Serve an operator's webhooks; yield their URL and certificates."""
    files = Certificates(folder, names=names)
    async with WebhookServer(
        operator.webhook_app(), port=0, cert=files.cert, key=files.key, host="127.0.0.1"
    ) as server:
        yield f"https://127.0.0.1:{server.port}", files


def make_refusing(**options: Any) -> Operator:
    operator = Operator("sites", events=False)

    @operator.validate("configmaps", **options)
    def check(review: AdmissionReview[KubeObject]) -> None:
        raise Denied("no")

    return operator


async def test_services_are_reached_by_their_endpoints(tmp_path: Path) -> None:
    operator = make_refusing()
    async with (
        serve(operator, tmp_path, "hooks.system.svc") as (url, files),
        APIServer() as server,
        Client.from_url(server.url) as client,
    ):
        for configuration in operator.webhook_configurations(service="system/hooks", ca_bundle=files.ca):
            server.create(ADMISSION, "validatingwebhookconfigurations", configuration)
        maps = Resource(client, "configmaps")
        failed = 'failed calling webhook "check.configmaps.sites": failed to call webhook: '
        with pytest.raises(ApiError, match=f'{failed}service "hooks" not found'):
            await maps.create(configmap())
        service: Object = {"metadata": {"name": "hooks"}, "spec": {"ports": [{"name": "tls", "port": 443}]}}
        server.create("v1", "services", service, "system")
        with pytest.raises(ApiError, match=f'{failed}no endpoints available for service "hooks"'):
            await maps.create(configmap())
        endpoints: Object = {
            "metadata": {"name": "hooks-1", "labels": {"kubernetes.io/service-name": "hooks"}},
            "addressType": "IPv4",
            "ports": [{"name": "tls", "port": int(url.rpartition(":")[2])}],
            "endpoints": [{"addresses": ["127.0.0.1"]}],
        }
        server.create("discovery.k8s.io/v1", "endpointslices", endpoints, "system")
        with pytest.raises(ApiError, match="denied the request: no"):
            await maps.create(configmap())
        with pytest.raises(ApiError, match="denied the request: no"):
            await maps.create(configmap() | {"metadata": {"name": "a", "namespace": "kube-public"}})
        in_own = configmap() | {"metadata": {"name": "a", "namespace": "system"}}
        assert (await maps.create(in_own)).name == "a", "it is not called for its own namespace"


async def test_the_python_api_calls_no_webhooks(tmp_path: Path) -> None:
    operator = make_refusing(operations=["CREATE", "UPDATE", "DELETE"])
    async with (
        serve(operator, tmp_path) as (url, files),
        APIServer() as server,
        Client.from_url(server.url) as client,
    ):
        (configuration,) = operator.webhook_configurations(url=url, ca_bundle=files.ca)
        server.create(ADMISSION, "validatingwebhookconfigurations", configuration)
        made = server.create("v1", "configmaps", configmap())
        server.update("v1", "configmaps", made)
        maps = Resource(client, "configmaps")
        with pytest.raises(ApiError, match="denied the request: no"):
            await maps.delete("default/a")
        await Resource(client, "validatingwebhookconfigurations").delete("sites")
        await maps.delete("default/a")


async def test_a_dry_run_needs_a_webhook_without_side_effects(tmp_path: Path) -> None:
    operator = make_refusing()
    async with (
        serve(operator, tmp_path) as (url, files),
        APIServer() as server,
    ):
        (configuration,) = operator.webhook_configurations(url=url, ca_bundle=files.ca)
        configuration["webhooks"][0]["sideEffects"] = "Some"
        server.create(ADMISSION, "validatingwebhookconfigurations", configuration)
        url = f"{server.url}/api/v1/namespaces/default/configmaps?dryRun=All"
        async with aiohttp.ClientSession() as session, session.post(url, json=configmap()) as answer:
            message = 'admission webhook "check.configmaps.sites" does not support dry run'
            assert (answer.status, (await answer.json())["message"]) == (400, message)


class Page(CustomResource, group="pages.example.com", version="v1", storage=True):
    spec: SpecV1


class PageV2(Page, version="v2", kind="Page", plural="pages"):
    spec: SpecV2  # type: ignore[assignment]


def make_converting() -> Operator:
    operator = Operator("pages", events=False)

    @operator.convert(Page, PageV2)
    def newer(old: Page) -> PageV2:
        if old.spec.host == "bad":
            raise Denied("a bad host")
        return PageV2(SpecV2(hosts=[old.spec.host]), metadata=old.metadata)

    @operator.convert(PageV2, Page)
    def older(old: PageV2) -> Page:
        return Page(SpecV1(host=old.spec.hosts[0]), metadata=old.metadata)

    @operator.validate(Page, operations=["CREATE", "UPDATE", "DELETE"])
    def check(review: AdmissionReview[Page]) -> None:
        if review.object.spec.host == "denied":
            raise Denied("no", field="spec.host")

    @operator.mutate(PageV2, operations=["UPDATE"])
    def fill(review: AdmissionReview[PageV2]) -> None:
        review.object.spec.hosts.append("more")

    return operator


@asynccontextmanager
async def pages(folder: Path) -> AsyncIterator[tuple[APIServer, Client]]:
    operator = make_converting()
    async with (
        serve(operator, folder) as (url, files),
        APIServer() as server,
        Client.from_url(server.url) as client,
    ):
        for definition in operator.definitions(url=url, ca_bundle=files.ca):
            server.create(DEFINITIONS, "customresourcedefinitions", definition)
        for configuration in operator.webhook_configurations(url=url, ca_bundle=files.ca):
            server.create(ADMISSION, f"{configuration['kind'].lower()}s", configuration)
        yield server, client


def page(name: str, host: str) -> Page:
    return Page(SpecV1(host=host), metadata=Metadata(name=name, namespace="default"))


async def test_watches_show_the_version_that_they_ask_for(tmp_path: Path) -> None:
    async with pages(tmp_path) as (server, client):
        stored = Resource(client, Page)
        await stored.create(page("a", "a"))
        factory = SharedInformerFactory(client)
        informer = factory.for_resource(PageV2)
        async with factory:
            await factory.wait_for_cache_sync()
            await stored.create(page("b", "b"))
            changed = await stored.get("default/a")
            changed.spec.host = "c"
            await stored.update(changed)
            await stored.delete("default/b")
            await eventually(lambda: [obj.spec.hosts for obj in informer.lister.list()] == [["c"]])
        assert server.get("pages.example.com/v1", "pages", "a")["spec"] == {"host": "c"}
        with pytest.raises(TestingError, match=r"use pages\.example\.com/v1, the stored version"):
            server.get("pages.example.com/v2", "pages", "a")


async def test_admission_sees_the_version_of_its_rules(tmp_path: Path) -> None:
    async with pages(tmp_path) as (_, client):
        newest, stored = Resource(client, PageV2), Resource(client, Page)
        metadata = Metadata(name="a", namespace="default")
        with pytest.raises(ApiError, match=r"spec\.host: no"):
            await newest.create(PageV2(SpecV2(hosts=["denied"]), metadata=metadata))
        made = await newest.create(PageV2(SpecV2(hosts=["a"]), metadata=metadata))
        changed = await newest.patch(made, {"metadata": {"labels": {"x": "y"}}})
        assert changed.metadata.labels == {"x": "y"}
        assert (await stored.get("default/a")).spec.host == "a"
        await newest.delete("default/a")
        assert not await stored.list()


async def test_conversions_that_fail_are_shown(tmp_path: Path) -> None:
    async with pages(tmp_path) as (server, client):
        stored, newest = Resource(client, Page), Resource(client, PageV2)
        await stored.create(page("a", "bad"))
        failed = "conversion webhook for pages.example.com/v1, Kind=Page failed: a bad host"
        with pytest.raises(ApiError, match=failed) as refused:
            await newest.list()
        assert refused.value.status == 500
        url = f"{server.url}/apis/pages.example.com/v2/pages?watch=true"
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            (event,) = [json.loads(line) async for line in answer.content]
            assert (event["type"], event["object"]["message"]) == ("ERROR", failed)
        with pytest.raises(StatusError):
            server.get("pages.example.com/v1", "pages", "b")


def with_versions(definition: Object, storage: str, *names: str) -> Object:
    """Return a definition with some of its versions, of which one is stored."""
    versions = [
        version | {"storage": version["name"] == storage}
        for version in definition["spec"]["versions"]
        if version["name"] in names
    ]
    conversion = definition["spec"]["conversion"] if len(names) > 1 else {"strategy": "None"}
    return definition | {"spec": definition["spec"] | {"versions": versions, "conversion": conversion}}


async def test_objects_are_converted_after_the_storage_version_changes(tmp_path: Path) -> None:
    operator = make_converting()
    async with (
        serve(operator, tmp_path) as (url, files),
        APIServer() as server,
        Client.from_url(server.url) as client,
    ):
        (definition,) = operator.definitions(url=url, ca_bundle=files.ca)
        name = definition["metadata"]["name"]
        server.create(DEFINITIONS, "customresourcedefinitions", with_versions(definition, "v1", "v1"))
        older, newest = Resource(client, Page), Resource(client, PageV2)
        await older.create(page("a", "a"))
        definitions = Resource(client, "customresourcedefinitions")
        changed = with_versions(definition, "v2", "v1", "v2")["spec"]
        await definitions.patch(name, {"spec": changed})
        await definitions.patch(name, {"spec": {"names": {"shortNames": ["p"]}}})
        read = await newest.get("default/a")
        assert read.spec.hosts == ["a"]
        read.spec.hosts = ["b"]
        await newest.update(read)
        assert (await older.get("default/a")).spec.host == "b"
        await newest.create(PageV2(SpecV2(hosts=["c"]), metadata=Metadata(name="c", namespace="default")))
        assert [obj.spec.host for obj in await older.list()] == ["b", "c"]
        assert [obj.spec.hosts for obj in await newest.list()] == [["b"], ["c"]]
        current = server.get(DEFINITIONS, "customresourcedefinitions", name)
        assert current["status"]["storedVersions"] == ["v1", "v2"]


async def test_an_answer_that_is_too_large_is_a_failed_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aioinformer.testing.webhooks.calls.LARGEST_ANSWER", 10)
    operator = make_refusing()
    async with (
        serve(operator, tmp_path) as (url, files),
        APIServer() as server,
        Client.from_url(server.url) as client,
    ):
        for configuration in operator.webhook_configurations(url=url, ca_bundle=files.ca):
            server.create(ADMISSION, "validatingwebhookconfigurations", configuration)
        with pytest.raises(ApiError, match=r"failed to call webhook: .*the answer is larger than 10 bytes"):
            await Resource(client, "configmaps").create(configmap())
