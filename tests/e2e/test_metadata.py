"""Informers of metadata alone, and of collections known by group, version and plural only."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from aioinformer import Client, KubeObject, ListWatch, SharedInformerFactory
from tests.samples import configmap

from .api import CONFIGMAPS, Resource
from .clusters import Cluster
from .definitions import CAVE_DEFINITION, CAVES, Meta, cave, definition
from .witness import PATIENCE, Witness, run_informer, versions


class Partial(msgspec.Struct):
    metadata: Meta
    kind: str = ""


@pytest.mark.parametrize("use_watch_list", [True, False], ids=["watchlist", "list"])
async def test_metadata_only(cluster: Cluster, client: Client, use_watch_list: bool) -> None:
    await cluster.create(CONFIGMAPS, configmap("a", labels={"app": "web"}, k="1"))
    list_watch = ListWatch.for_resource(client, "v1", "configmaps", cluster.namespace, metadata_only=True)
    async with run_informer(list_watch, KubeObject, use_watch_list=use_watch_list) as (informer, witness):
        patched = await cluster.patch(CONFIGMAPS, "a", {"data": {"k": "2"}})
        assert await informer.wait_for(patched, PATIENCE) is not None
        await cluster.create(CONFIGMAPS, configmap("b", k="1"))
        await witness.until(lambda: cluster.key("b") in witness.shadow)
        server = await cluster.list(CONFIGMAPS)
        assert {obj.key: obj.to_dict() for obj in informer.store.list()} == {
            key: {
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": obj["metadata"],
            }
            for key, obj in server.items()
        }
        assert [obj.name for obj in informer.lister.list("app=web")] == ["a"]
        for name in "ab":
            await cluster.delete(CONFIGMAPS, name)
        await witness.until(lambda: witness.counts["delete"] == 2)
        assert not any("data" in call.obj for call in witness.calls)
        assert {call.obj.kind for call in witness.calls} == {"PartialObjectMetadata"}


@pytest.mark.parametrize("object_type", [dict, Partial])
async def test_metadata_of_any_object_type(cluster: Cluster, client: Client, object_type: type[Any]) -> None:
    await cluster.define(CAVE_DEFINITION)
    await cluster.create(CAVES, cave("a", depth=1))
    async with SharedInformerFactory(client, cluster.namespace) as factory:
        informer = factory.for_resource(CAVES.api_version, CAVES.plural, object_type, metadata_only=True)
        await factory.wait_for_cache_sync(PATIENCE)
        created = await cluster.create(CAVES, cave("b", depth=2))
        assert await informer.wait_for(created, PATIENCE) is not None
        assert set(informer.store.list_keys()) == {cluster.key("a"), cluster.key("b")}
        for obj in informer.store.list():
            kind = obj["kind"] if isinstance(obj, dict) else obj.kind
            assert kind == "PartialObjectMetadata"


@pytest.mark.parametrize("namespaced", [True, False], ids=["namespaced", "cluster-scoped"])
@pytest.mark.usefixtures("soon_again")
async def test_a_collection_whose_definition_comes_later(
    cluster: Cluster, client: Client, namespaced: bool
) -> None:
    """The dynamic informer: group, version and plural are all it takes, also from a factory that runs already."""
    group = f"{cluster.namespace}.{'inside' if namespaced else 'outside'}.example.com"
    runes = Resource(f"{group}/v1", "runes", namespaced)
    async with SharedInformerFactory(client) as factory:
        informer = factory.for_resource(f"{group}/v1", "runes")
        witness = Witness()
        informer.add_event_handler(witness)
        informer.set_watch_error_handler(witness.on_error)
        await witness.until(lambda: witness.errors)
        assert not informer.has_synced()
        await cluster.define(definition(group, "Rune", scope="Namespaced" if namespaced else "Cluster"))
        created = await cluster.create(
            runes, {"apiVersion": f"{group}/v1", "kind": "Rune", "metadata": {"name": "a"}}
        )
        await informer.wait_synced(PATIENCE)
        assert await informer.wait_for(created, PATIENCE) == created
        await witness.until_shadow(versions(await cluster.list(runes, "" if namespaced else None)))
        assert informer.store.list_keys() == [cluster.key("a") if namespaced else "a"]
