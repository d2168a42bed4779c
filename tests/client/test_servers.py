"""Listing and watching as the embedded API server and the real one answer."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from aioinformer import ApiError, Client, ListOptions, ListWatch
from aioinformer.cache import TypeMeta
from aioinformer.client.transport import Change
from aioinformer.objects.meta import INITIAL_EVENTS_END
from aioinformer.testing import APIServer
from tests.kubernetes.controlplane import ControlPlane

NAMES = ["alpha", "beta", "gamma"]


@dataclass
class Cluster:
    """A server with three config maps in a namespace, by its kubeconfig."""

    kubeconfig: Path
    namespace: str


@pytest.fixture
async def embedded(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with APIServer(tls=True, token="secret") as server:
        for name in NAMES:
            server.create("v1", "configmaps", {"metadata": {"name": name, "labels": {"n": name}}}, "here")
        server.kubeconfig(tmp_path / "config")
        yield Cluster(tmp_path / "config", "here")


@pytest.fixture
async def real(control_plane: ControlPlane, kubernetes_namespace: str) -> Cluster:
    maps = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"n": name}}}
        for name in NAMES
    ]
    listed = {"apiVersion": "v1", "kind": "List", "items": maps}
    await control_plane.kubectl("create", "-n", kubernetes_namespace, "-f", "-", stdin=json.dumps(listed))
    return Cluster(control_plane.kubeconfig, kubernetes_namespace)


REAL = [pytest.mark.kubernetes, pytest.mark.xdist_group("kubernetes")]


@pytest.fixture(params=["embedded", pytest.param("real", marks=REAL)])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    fixture: Cluster = request.getfixturevalue(request.param)
    return fixture


def name_of(raw: bytes) -> str:
    return str(json.loads(raw)["metadata"].get("name", ""))


async def test_pages(library: str, cluster: Cluster) -> None:
    async with Client.from_kubeconfig(path=cluster.kubeconfig, library=library) as client:
        maps = ListWatch.for_resource(client, "v1", "configmaps", cluster.namespace)
        first = await maps.list(ListOptions(limit=2))
        assert len(first.items) == 2
        assert first.type_meta == TypeMeta("v1", "ConfigMap")
        second = await maps.list(ListOptions(limit=2, continue_token=first.continue_token))
        assert second.continue_token == ""
        assert second.resource_version == first.resource_version
        names = [name_of(item) for item in (*first.items, *second.items)]
        assert set(NAMES) <= set(names)
        chosen = ListWatch.for_resource(
            client, "v1", "configmaps", label_selector="n in (alpha)", namespace=cluster.namespace
        )
        assert [name_of(item) for item in (await chosen.list()).items] == ["alpha"]


async def test_initial_events(library: str, cluster: Cluster) -> None:
    async with Client.from_kubeconfig(path=cluster.kubeconfig, library=library) as client:
        maps = ListWatch.for_resource(
            client, "v1", "configmaps", cluster.namespace, field_selector="metadata.name=beta"
        )
        stream: Any = await maps.watch(
            ListOptions(
                send_initial_events=True,
                resource_version_match="NotOlderThan",
                allow_watch_bookmarks=True,
                timeout_seconds=30,
            )
        )
        events: list[Any] = []
        while not events or events[-1].type != "BOOKMARK":
            events += await anext(stream)
        await stream.aclose()
        assert [event.type for event in events] == ["ADDED", "BOOKMARK"]
        assert name_of(events[0].object) == "beta"
        closing = json.loads(events[1].object)["metadata"]["annotations"]
        assert closing[INITIAL_EVENTS_END] == "true"


async def test_a_watch_ends_when_it_is_over(library: str, cluster: Cluster) -> None:
    async with Client.from_kubeconfig(path=cluster.kubeconfig, library=library) as client:
        maps = ListWatch.for_resource(client, "v1", "configmaps", cluster.namespace)
        version = (await maps.list()).resource_version
        stream: Any = await maps.watch(ListOptions(resource_version=version, timeout_seconds=1))
        assert [batch async for batch in stream] == []
        await stream.aclose()


async def test_refusals(library: str, cluster: Cluster) -> None:
    async with Client.from_kubeconfig(path=cluster.kubeconfig, library=library) as client:
        for api_version, plural, where in (
            ("v1", "nosuchthings", ""),
            ("apps/v1", "pods", " (pods are in 'v1')"),
            ("example.com/v1", "backups", ""),
        ):
            absent = ListWatch.for_resource(client, api_version, plural)
            for ask in (absent.list, absent.watch):
                with pytest.raises(ApiError, match=rf"^(list|watch) {plural}.*: 404 ") as caught:
                    await ask(ListOptions())
                assert caught.value.status == 404
                assert str(caught.value).endswith(
                    f"; check api_version {api_version!r}{where}, plural {plural!r} and whether it lives in "
                    "namespaces (if not: namespaced=False, or no namespace), or create its CustomResourceDefinition"
                )
        singular = ListWatch.for_resource(client, "v1", "pod")
        for ask in (singular.list, singular.watch):
            with pytest.raises(ApiError, match=r"^(list|watch) pod: 404 .*named by their plural"):
                await ask(ListOptions())
        bad = ListWatch.for_resource(client, "v1", "configmaps", label_selector="a in b")
        for ask in (bad.list, bad.watch):
            with pytest.raises(ApiError) as caught:
                await ask(ListOptions())
            assert (caught.value.status, caught.value.reason) == (400, "BadRequest")
    config = json.loads(json.dumps(_load(cluster.kubeconfig)))
    for user in config["users"]:
        user["user"] = {"token": "stranger"}
    path = cluster.kubeconfig.with_name("stranger")
    path.write_text(json.dumps(config))
    async with Client.from_kubeconfig(path=path, library=library) as client:
        with pytest.raises(ApiError, match=r"401 Unauthorized"):
            await client.get_json("/api")


def _load(path: Path) -> Any:
    import yaml

    return yaml.safe_load(path.read_text())


@pytest.mark.kubernetes
@pytest.mark.xdist_group("kubernetes")
async def test_real_server_warns_of_an_unknown_field_and_a_deprecated_kind(
    library: str, real: Cluster
) -> None:
    warned: list[str] = []
    client = Client.from_kubeconfig(path=real.kubeconfig, library=library, on_warning=warned.append)
    async with client:
        body = json.dumps({"metadata": {"name": "warned"}, "größe": 1}, ensure_ascii=False).encode()
        query = [("fieldValidation", "Warn"), ("dryRun", "All")]
        path = f"/api/v1/namespaces/{real.namespace}/configmaps"
        await client.send(Change("POST", body), path, query)
        await client.get("/api/v1/componentstatuses")
    assert warned == ['unknown field "größe"', "v1 ComponentStatus is deprecated in v1.19+"]
