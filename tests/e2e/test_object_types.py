"""The object type is the user's choice and does not depend on how an object arrived."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from kubernetes_asyncio.client import V1ConfigMap, V1Pod

from aioinformer import Client, KubeObject
from tests.samples import configmap

from ..samples import SMALL
from .api import CONFIGMAPS, PODS, Object, Resource
from .clusters import Cluster, EmbeddedCluster, pod_manifest
from .definitions import CAVE_DEFINITION, CAVES, Meta, cave
from .witness import run_informer

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])  # about objects, not about sockets


class Settings(msgspec.Struct):
    metadata: Meta
    kind: str = ""
    data: dict[str, str] = {}


def value(obj: Any) -> str:
    """Return data["k"] of an object of any type."""
    data = obj["data"] if isinstance(obj, (dict, KubeObject)) else obj.data
    return str(data["k"])


@pytest.mark.parametrize("use_watch_list", [True, False], ids=["watchlist", "list"])
@pytest.mark.parametrize(
    ("object_type", "options"),
    [
        (KubeObject, {}),
        (KubeObject, {"compress": SMALL}),
        (KubeObject, {"drop_managed_fields": True}),
        (dict, {}),
        (Settings, {}),
        (V1ConfigMap, {"drop_managed_fields": True}),
    ],
    ids=str,
)
async def test_objects_are_of_the_type_asked_for(
    cluster: Cluster, client: Client, object_type: type[Any], options: dict[str, Any], use_watch_list: bool
) -> None:
    await cluster.create(CONFIGMAPS, configmap("a", k="1"))
    list_watch = cluster.list_watch(client, CONFIGMAPS)
    options = {**options, "use_watch_list": use_watch_list}
    async with run_informer(list_watch, object_type, **options) as (informer, witness):
        await cluster.patch(CONFIGMAPS, "a", {"data": {"k": "2"}})
        await witness.until(lambda: witness.counts["update"] == 1)
        await cluster.delete(CONFIGMAPS, "a")
        await witness.until(lambda: witness.counts["delete"] == 1)
        assert [(call.kind, value(call.obj)) for call in witness.calls] == [
            ("add", "1"),
            ("update", "2"),
            ("delete", "2"),
        ]
        assert {type(call.obj) for call in witness.calls} == {object_type}
        kinds = {
            call.obj["kind"] if isinstance(call.obj, (dict, KubeObject)) else call.obj.kind
            for call in witness.calls
        }
        assert kinds == {"ConfigMap"}
        assert informer.store.list() == []


async def test_pods_as_models(cluster: Cluster, client: Client) -> None:
    await cluster.create(PODS, pod_manifest("web", node="node-1"))
    async with run_informer(cluster.list_watch(client, PODS), V1Pod) as (informer, witness):
        await cluster.patch(PODS, "web", {"status": {"phase": "Running"}}, subresource="/status")
        await witness.until(lambda: witness.counts["update"] == 1)
        (web,) = informer.store.list()
        assert isinstance(web, V1Pod)
        assert (web.metadata.name, web.spec.node_name, web.status.phase) == ("web", "node-1", "Running")


async def test_custom_resources(cluster: Cluster, client: Client) -> None:
    await cluster.define(CAVE_DEFINITION)
    await cluster.create(CAVES, cave("a", depth=1))
    async with run_informer(cluster.list_watch(client, CAVES), KubeObject) as (informer, witness):
        await cluster.patch(CAVES, "a", {"status": {"explored": True}}, subresource="/status")
        await cluster.create(CAVES, cave("b", depth=2))
        await witness.until(lambda: len(witness.calls) == 3)
        server = await cluster.list(CAVES)
        assert {obj.key: obj.to_dict() for obj in informer.store.list()} == server
        assert informer.lister.get(cluster.key("a"))["status"] == {"explored": True}
        await cluster.delete(CAVES, "b")
        await witness.until(lambda: witness.kinds(cluster.key("b")) == ["add", "delete"])


@pytest.mark.parametrize("resource", [CONFIGMAPS, PODS, CAVES], ids=lambda resource: resource.plural)
async def test_an_object_is_equal_however_it_arrived(
    cluster: Cluster, client: Client, resource: Resource
) -> None:
    await cluster.define(CAVE_DEFINITION)
    makers: dict[Resource, Callable[[str], Object]] = {CONFIGMAPS: configmap, PODS: pod_manifest, CAVES: cave}
    make = makers[resource]
    if cluster.protobuf and isinstance(cluster, EmbeddedCluster) and resource == PODS:
        pytest.skip("protobuf shows of a pod what JSON of the embedded server has only where it was written")
    list_watch = cluster.list_watch(client, resource)
    async with run_informer(list_watch, KubeObject) as (watching, witness):
        created = await cluster.create(resource, make("a"))
        await witness.until(watching.store.list)
        async with (
            run_informer(list_watch, KubeObject, use_watch_list=False) as (listing, _),
            run_informer(list_watch, KubeObject, use_watch_list=True) as (streaming, _),
        ):
            (watched,), (listed,), (streamed,) = (
                informer.store.list() for informer in (watching, listing, streaming)
            )
            assert watched == listed == streamed == created
            assert hash(watched) == hash(listed) == hash(streamed)
            assert watched.to_dict() == listed.to_dict() == streamed.to_dict()
            assert watched.kind == listed.kind == streamed.kind != ""
