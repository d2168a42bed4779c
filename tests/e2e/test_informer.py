"""An informer against the embedded and the real server: handlers and cache match the server."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer import (
    Client,
    KubeObject,
    NotFoundError,
    SharedIndexInformer,
    SharedInformerFactory,
)
from aioinformer.controller import QueueName
from tests.samples import configmap

from ..queues import QUEUES, use_queue
from .api import CONFIGMAPS, PODS
from .clusters import Cluster, pod_manifest
from .witness import Witness, keys, run_informer, versions, versions_in_cache


@pytest.fixture(params=QUEUES, autouse=True)
def queue(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> QueueName:
    """The queue of all informers made here."""
    name: QueueName = request.param
    use_queue(name, monkeypatch)
    return name


@pytest.mark.parametrize("use_watch_list", [True, False], ids=["watchlist", "list"])
async def test_adds_updates_and_deletes_reach_handlers_and_cache(
    cluster: Cluster, client: Client, use_watch_list: bool
) -> None:
    await cluster.create(CONFIGMAPS, configmap("before", k="1"))
    list_watch = cluster.list_watch(client, CONFIGMAPS)
    async with run_informer(list_watch, KubeObject, use_watch_list=use_watch_list) as (informer, witness):
        assert [(call.kind, call.initial) for call in witness.calls] == [("add", True)]
        created = await cluster.create(CONFIGMAPS, configmap("new", k="1"))
        await cluster.replace(CONFIGMAPS, created | {"data": {"k": "2"}})
        await cluster.patch(CONFIGMAPS, "new", {"data": {"k": "3"}})
        await cluster.delete(CONFIGMAPS, "before")
        await cluster.create(CONFIGMAPS, configmap("last"))
        await witness.until(lambda: cluster.key("last") in witness.shadow)
        server = await cluster.list(CONFIGMAPS)
        assert versions_in_cache(informer) == witness.shadow == versions(server)
        assert {obj.key: obj.to_dict() for obj in informer.store.list()} == server
        assert witness.kinds(cluster.key("before")) == ["add", "delete"]
        assert [
            (call.kind, call.obj["data"]["k"], call.old and call.old["data"]["k"], call.initial)
            for call in witness.of(cluster.key("new"))
        ] == [("add", "1", None, False), ("update", "2", "1", False), ("update", "3", "2", False)]
        (reflector,) = informer.state.reflectors
        assert (reflector.lists, reflector.watches, witness.errors) == (1, 1, [])


async def test_an_object_with_a_finalizer_is_updated_first_and_deleted_when_it_is_off(
    cluster: Cluster, client: Client
) -> None:
    held = configmap("held")
    held["metadata"]["finalizers"] = ["example.com/cleanup"]
    await cluster.create(CONFIGMAPS, held)
    key = cluster.key("held")
    async with run_informer(cluster.list_watch(client, CONFIGMAPS), KubeObject) as (informer, witness):
        await cluster.delete(CONFIGMAPS, "held")
        await witness.until(lambda: witness.kinds(key) == ["add", "update"])
        dying = informer.store.get_by_key(key)
        assert dying is not None
        assert dying.metadata.deletion_timestamp is not None
        assert dying.metadata.finalizers == ["example.com/cleanup"]
        await cluster.patch(CONFIGMAPS, "held", {"metadata": {"finalizers": None}})
        await witness.until(lambda: witness.kinds(key) == ["add", "update", "delete"])
        assert informer.store.get_by_key(key) is None


async def test_deleted_and_created_again_it_is_another_object(cluster: Cluster, client: Client) -> None:
    first = await cluster.create(CONFIGMAPS, configmap("again"))
    async with run_informer(cluster.list_watch(client, CONFIGMAPS), KubeObject) as (_, witness):
        await cluster.delete(CONFIGMAPS, "again")
        second = await cluster.create(CONFIGMAPS, configmap("again"))
        await witness.until_shadow(versions({cluster.key("again"): second}))
        assert [(call.kind, call.obj.uid) for call in witness.calls] == [
            ("add", first["metadata"]["uid"]),
            ("delete", first["metadata"]["uid"]),
            ("add", second["metadata"]["uid"]),
        ]


async def test_indexes_and_listers_follow(cluster: Cluster, client: Client) -> None:
    def by_tier(obj: KubeObject) -> list[str]:
        return [obj["data"]["tier"]] if obj.get("data") else []

    await cluster.create(CONFIGMAPS, configmap("a", labels={"app": "web"}, tier="front"))
    await cluster.create(CONFIGMAPS, configmap("b", labels={"app": "db"}, tier="back"))
    list_watch = cluster.list_watch(client, CONFIGMAPS)
    async with run_informer(list_watch, KubeObject, indexers={"tier": by_tier}) as (informer, witness):
        await cluster.patch(CONFIGMAPS, "b", {"data": {"tier": "front"}})
        await witness.until(lambda: witness.counts["update"] == 1)
        assert informer.indexer.index_keys("tier", "front") == [cluster.key("a"), cluster.key("b")]
        assert informer.indexer.list_index_func_values("tier") == ["front"]
        informer.add_indexers({"app": lambda obj: [obj.metadata.labels["app"]]})
        assert [obj.name for obj in informer.indexer.by_index("app", "db")] == ["b"]
        lister = informer.lister.namespace(cluster.namespace)
        assert [obj.name for obj in lister.list("app=web")] == ["a"]
        assert lister.get("b")["data"] == {"tier": "front"}
        await cluster.delete(CONFIGMAPS, "a")
        await witness.until(lambda: witness.counts["delete"] == 1)
        assert informer.indexer.index_keys("tier", "front") == [cluster.key("b")]
        with pytest.raises(NotFoundError, match=f"configmaps in {cluster.namespace} '{cluster.key('a')}'"):
            lister.get("a")


async def test_late_handler_gets_all_and_removed_handler_gets_nothing(
    cluster: Cluster, client: Client
) -> None:
    for name in ("a", "b"):
        await cluster.create(CONFIGMAPS, configmap(name))
    async with run_informer(cluster.list_watch(client, CONFIGMAPS), KubeObject) as (informer, witness):
        early = [informer.add_event_handler(Witness()) for _ in range(2)]
        late = Witness()
        registration = informer.add_event_handler(late)
        await registration.wait_synced(10)
        assert keys(late.calls) == [cluster.key("a"), cluster.key("b")]
        assert all(call.initial for call in late.calls)
        informer.remove_event_handler(early[0])
        await cluster.delete(CONFIGMAPS, "a")
        await late.until(lambda: late.counts["delete"] == 1)
        informer.remove_event_handler(registration)
        await cluster.delete(CONFIGMAPS, "b")
        await witness.until(lambda: not witness.shadow)
        assert late.kinds(cluster.key("b")) == ["add"]
        assert [state.name for state in informer.state.handlers] == ["Witness", "Witness (3)"]


async def test_resync_notifies_of_every_object(cluster: Cluster, client: Client) -> None:
    await cluster.create(CONFIGMAPS, configmap("a"))
    informer = SharedIndexInformer(cluster.list_watch(client, CONFIGMAPS), KubeObject, 1.0)
    resynced, never = Witness(), Witness()
    informer.add_event_handler(resynced)
    informer.add_event_handler(never, resync_period=0)
    async with informer:
        await resynced.until(lambda: resynced.counts["update"] == 2)
        assert resynced.kinds(cluster.key("a")) == ["add", "update", "update"]
        assert resynced.calls[-1].old == resynced.calls[-1].obj
        assert never.kinds(cluster.key("a")) == ["add"]


async def test_a_factory_runs_one_informer_a_collection(cluster: Cluster, client: Client) -> None:
    await cluster.create(CONFIGMAPS, configmap("a"))
    async with SharedInformerFactory(client, cluster.namespace) as factory:
        configmaps = factory.for_resource("v1", "configmaps")
        pods = factory.for_resource("v1", "pods")
        assert factory.for_resource("v1", "configmaps") is configmaps
        witness = Witness()
        pods.add_event_handler(witness)
        factory.start()
        async with asyncio.timeout(20):
            await factory.wait_for_cache_sync()
        assert configmaps.store.list_keys() == [cluster.key("a")]
        await cluster.create(PODS, pod_manifest("web"))
        await witness.until(lambda: cluster.key("web") in witness.shadow)
    assert configmaps.is_stopped
    assert pods.is_stopped
