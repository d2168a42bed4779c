"""Informers by protobuf next to informers by JSON, on either server; what both servers write, byte by byte."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import pytest

from aioinformer import ApiError, Client, KubeObject, SharedIndexInformer, TransportError
from aioinformer.objects.protobuf import ProtobufForm
from aioinformer.testing.http.encodings import PROTOBUF as ENCODING
from tests.samples import configmap

from ..testing.protobuf.reading import PROTOBUF
from .api import CONFIGMAPS, PODS, Resource
from .clusters import Cluster, EmbeddedCluster, KubernetesCluster, pod_manifest
from .conftest import REAL
from .definitions import CAVE_DEFINITION, CAVES, cave
from .test_protobuf_kinds import OBJECTS
from .witness import Witness, run_informer, versions_in_cache

THERE = (
    Resource("v1", "namespaces", namespaced=False),
    Resource("rbac.authorization.k8s.io/v1", "clusterroles", namespaced=False),
    Resource("flowcontrol.apiserver.k8s.io/v1", "flowschemas", namespaced=False),
    Resource("scheduling.k8s.io/v1", "priorityclasses", namespaced=False),
)
"""Objects that a real server has from the start."""

both_ways = pytest.mark.parametrize("use_watch_list", [True, False], ids=["watchlist", "list"])


class Pair(NamedTuple):
    """Two informers of a collection, of which one asks for protobuf, and what they told."""

    protobuf: SharedIndexInformer[KubeObject]
    json: SharedIndexInformer[KubeObject]
    witness: Witness
    other: Witness

    async def until_alike(self, versions: dict[str, str]) -> None:
        """Wait until both have the objects at these versions; then they are equal in all they say."""
        await self.witness.until_shadow(versions)
        await self.other.until_shadow(versions)
        by_json = {obj.key: obj.to_dict() for obj in self.json.store.list()}
        assert {obj.key: obj.to_dict() for obj in self.protobuf.store.list()} == by_json
        assert versions_in_cache(self.protobuf) == versions


@asynccontextmanager
async def pair_of(
    cluster: Cluster, client: Client, resource: Resource, *, metadata_only: bool = False, **options: Any
) -> AsyncIterator[Pair]:
    list_watches = [
        cluster.list_watch(client, resource, protobuf=protobuf, metadata_only=metadata_only)
        for protobuf in (True, False)
    ]
    async with (
        run_informer(list_watches[0], KubeObject, **options) as (by_protobuf, witness),
        run_informer(list_watches[1], KubeObject, **options) as (by_json, other),
    ):
        yield Pair(by_protobuf, by_json, witness, other)


async def versions_of(cluster: Cluster, resource: Resource) -> dict[str, str]:
    listed = await cluster.list(resource)
    return {key: str(obj["metadata"]["resourceVersion"]) for key, obj in listed.items()}


def is_protobuf(informer: SharedIndexInformer[KubeObject]) -> bool:
    """Whether every object came as protobuf."""
    return all(isinstance(obj._form, ProtobufForm) for obj in informer.store.list())


@both_ways
@pytest.mark.parametrize("metadata_only", [False, True], ids=["whole", "metadata"])
async def test_json_and_protobuf_caches_are_equal(
    cluster: Cluster, client: Client, use_watch_list: bool, metadata_only: bool
) -> None:
    for number in range(5):
        await cluster.create(CONFIGMAPS, configmap(f"c{number}", labels={"n": f"{number}"}, k="ü"))
    options: dict[str, Any] = {"use_watch_list": use_watch_list, "page_size": 2}
    async with pair_of(cluster, client, CONFIGMAPS, metadata_only=metadata_only, **options) as pair:
        await pair.until_alike(await versions_of(cluster, CONFIGMAPS))
        await cluster.patch(CONFIGMAPS, "c1", {"data": {"k": "2"}})
        await cluster.delete(CONFIGMAPS, "c2")
        await cluster.create(CONFIGMAPS, configmap("new", k="x" * 100_000))
        await pair.until_alike(await versions_of(cluster, CONFIGMAPS))
        assert pair.witness.kinds(cluster.key("c1")) == ["add", "update"]
        assert pair.witness.kinds(cluster.key("c2")) == ["add", "delete"]
        assert is_protobuf(pair.protobuf)
        assert not is_protobuf(pair.json)


async def test_pods(cluster: Cluster, client: Client) -> None:
    async with pair_of(cluster, client, PODS) as pair:
        await cluster.create(PODS, pod_manifest("a", node="node-1", labels={"app": "web"}))
        status = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
        await cluster.patch(PODS, "a", status, subresource="/status")
        versions = await versions_of(cluster, PODS)
        await pair.witness.until_shadow(versions)
        await pair.other.until_shadow(versions)
        by_protobuf, by_json = (informer.store.list()[0].to_dict() for informer in (pair.protobuf, pair.json))
        assert by_protobuf["metadata"] == by_json["metadata"]
        assert by_protobuf["spec"]["nodeName"] == "node-1"
        assert by_protobuf["status"]["conditions"][0].items() >= by_json["status"]["conditions"][0].items()


@both_ways
@pytest.mark.parametrize("metadata_only", [False, True], ids=["whole", "metadata"])
async def test_custom_resources(
    cluster: Cluster, client: Client, use_watch_list: bool, metadata_only: bool
) -> None:
    """They come as JSON, but for their metadata."""
    await cluster.define(CAVE_DEFINITION)
    await cluster.create(CAVES, cave("a", 1))
    options: dict[str, Any] = {"use_watch_list": use_watch_list, "metadata_only": metadata_only}
    async with pair_of(cluster, client, CAVES, **options) as pair:
        await cluster.patch(CAVES, "a", {"spec": {"depth": 2}})
        await cluster.create(CAVES, cave("b", 3))
        await pair.until_alike(await versions_of(cluster, CAVES))
        assert is_protobuf(pair.protobuf) is metadata_only


@pytest.mark.usefixtures("soon_again")
@both_ways
async def test_trouble(embedded: EmbeddedCluster, use_watch_list: bool) -> None:
    """Both get over it, and see the same again."""
    server, namespace = embedded.server, embedded.namespace
    for number in range(30):
        server.create("v1", "configmaps", configmap(f"c{number}", k="1"), namespace)
    faults = server.faults
    async with (
        embedded.client() as client,
        pair_of(embedded, client, CONFIGMAPS, use_watch_list=use_watch_list, page_size=10) as pair,
    ):
        for number, trouble in enumerate((
            lambda: faults.drop_watches(mid_line=True),
            lambda: faults.watch_error(code=410),
            lambda: faults.watch_error(code=429, retry_after=1),
            lambda: (faults.truncate(times=2, fraction=0.5), faults.watch_error(code=410)),
            lambda: (faults.fail(500, verb="list", times=2), faults.expire_history(), faults.drop_watches()),
            lambda: (faults.fail(503, verb="watch", in_stream=True, times=2), faults.drop_watches()),
            lambda: faults.send_raw(b"\x00\x00\x00\x05nonsense", end=True),
            faults.cut_connections,
        )):  # fmt: skip
            trouble()
            server.patch("v1", "configmaps", f"c{number}", {"data": {"k": "2"}}, namespace)
            server.delete("v1", "configmaps", f"c{number + 10}", namespace)
            await pair.until_alike(server.snapshot("v1", "configmaps", namespace))
            faults.clear()
        assert any(isinstance(error, TransportError) for error in pair.witness.errors)
        assert not pair.protobuf.is_stopped


async def test_refusals_are_equal_in_json_and_protobuf(embedded: EmbeddedCluster) -> None:
    embedded.server.faults.fail(403, message="not for you", times=None, resource="configmaps")
    async with embedded.client() as client:
        for protobuf in (True, False):
            list_watch = embedded.list_watch(client, CONFIGMAPS, protobuf=protobuf)
            with pytest.raises(ApiError, match="403 Forbidden: not for you"):
                await list_watch.list()


@pytest.mark.parametrize("cluster", [pytest.param("kubernetes", marks=REAL)], indirect=True)
async def test_the_embedded_server_writes_what_the_real_one_writes(cluster: KubernetesCluster) -> None:
    """Byte by byte, of objects of many kinds, and of whatever else is there."""
    mine = [
        resource
        for resource in OBJECTS
        if resource.plural != "controllerrevisions"  # whose JSON has the spaces that it came with
    ]
    for resource in mine:
        await cluster.create(resource, OBJECTS[resource])
    for resource in (*mine, *THERE):
        path = resource.path(cluster.namespace)
        listed = await cluster.api.do("GET", path)
        answer = await cluster.api.ask("GET", path, accept=PROTOBUF)
        assert b"".join(ENCODING.page(listed, listed["items"])) == answer.raw, path
        path = resource.path(cluster.namespace, listed["items"][0]["metadata"]["name"])
        answer = await cluster.api.ask("GET", path, accept=PROTOBUF)
        assert ENCODING.body(await cluster.api.do("GET", path)) == answer.raw, path
