"""A bad object, line, handler or key function is logged and counted, and affects nothing else."""

from __future__ import annotations

import msgspec
import pytest

from aioinformer import (
    Client,
    KubeObject,
    ListWatch,
    ResourceEventHandler,
    SharedIndexInformer,
    meta_namespace_key_func,
)
from tests.samples import configmap

from .api import CONFIGMAPS
from .clusters import EmbeddedCluster
from .definitions import CAVE_DEFINITION, CAVES, Meta, cave
from .witness import Log, Witness, run_informer, versions, versions_in_cache


@pytest.fixture
def cluster(embedded: EmbeddedCluster) -> EmbeddedCluster:
    return embedded


@pytest.fixture
def list_watch(cluster: EmbeddedCluster, client: Client) -> ListWatch:
    return cluster.list_watch(client, CONFIGMAPS)


async def test_a_handler_that_raises(cluster: EmbeddedCluster, list_watch: ListWatch, log: Log) -> None:
    class Fragile(ResourceEventHandler[KubeObject]):
        async def on_add(self, obj: KubeObject, is_in_initial_list: bool) -> None:
            if obj.name == "bad":
                raise RuntimeError("broken")
            seen.append(obj.name)

    seen: list[str] = []
    informer, witness = SharedIndexInformer(list_watch, KubeObject), Witness()
    informer.add_event_handler(Fragile())
    informer.add_event_handler(witness)
    async with informer:
        bad = await cluster.create(CONFIGMAPS, configmap("bad"))
        await cluster.create(CONFIGMAPS, configmap("good"))
        version = bad["metadata"]["resourceVersion"]
        await log.until("ERROR", "Fragile failed on add", cluster.key("bad"), f"at {version}")
        await witness.until(lambda: len(witness.shadow) == len(seen) + 1 == 2)
        fragile, other = informer.state.handlers
        assert (fragile.failed, fragile.delivered, other.failed) == (1, 2, 0)
        assert versions_in_cache(informer) == versions(await cluster.list(CONFIGMAPS))


async def test_a_key_function_that_raises(cluster: EmbeddedCluster, list_watch: ListWatch, log: Log) -> None:
    def key_func(obj: KubeObject) -> str:
        if "bad" in obj.name:
            raise ValueError("no key for you")
        return meta_namespace_key_func(obj)

    await cluster.create(CONFIGMAPS, configmap("bad"))
    await cluster.create(CONFIGMAPS, configmap("good"))
    async with run_informer(list_watch, KubeObject, key_func=key_func) as (informer, witness):
        await log.until("ERROR", "configmaps", "bad", "no key for you")
        await cluster.create(CONFIGMAPS, configmap("bad2"))
        await log.until("ERROR", "configmaps", "bad2", "no key for you")
        await cluster.create(CONFIGMAPS, configmap("good2"))
        await witness.until(lambda: set(witness.shadow) == {cluster.key("good"), cluster.key("good2")})
        assert informer.state.reflectors[0].rejected == 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{no JSON\n", ("ERROR", "dropped an object", "a line of 8 bytes is not a watch event", "{no JSON")),
        (b"\xff\xfe\n", ("ERROR", "dropped an object", "is not a watch event", "xff")),
        (b'{"type":"ADDED","object":{"kind":"ConfigMap"}}\n', ("ERROR", "dropped an object", "metadata")),
        (b'{"type":"ADDED","object":{"kind":"Con\n', ("ERROR", "dropped an object", "is not a watch event")),
        (b'{"type":"ADDED","object":{"metadata":{"name":7}}}\n', ("ERROR", "dropped an object")),
        (b'{"type":"NOVEL","object":{"metadata":{"name":"a"}}}\n', ("ERROR", "dropped an object", "NOVEL")),
        (b"[" * 2000 + b"\n", ("ERROR", "dropped an object", "is not a watch event")),
        (b"\n\n \n", ()),
    ],
    ids=["no JSON", "no text", "no metadata", "half a line", "number for a name", "type", "deep", "blank"],
)
async def test_meaningless_lines(
    cluster: EmbeddedCluster, list_watch: ListWatch, log: Log, line: bytes, said: tuple[str, ...]
) -> None:
    if cluster.protobuf:
        pytest.skip("protobuf has no lines: see tests/listwatch/test_frames.py")
    await cluster.create(CONFIGMAPS, configmap("before"))
    async with run_informer(list_watch, KubeObject, logged=True) as (informer, witness):
        assert cluster.server.faults.send_raw(line) == 1
        await cluster.create(CONFIGMAPS, configmap("after"))
        await witness.until_shadow(versions(await cluster.list(CONFIGMAPS)))
        if said:
            await log.until(*said, f"configmaps in {cluster.namespace}")
        assert informer.state.reflectors[0].rejected == bool(said)
        assert (informer.state.reflectors[0].watches, informer.state.last_error) == (1, None)


class Depth(msgspec.Struct):
    depth: int


class Cave(msgspec.Struct):
    metadata: Meta
    spec: Depth


@pytest.mark.usefixtures("soon_again")
@pytest.mark.parametrize("use_watch_list", [True, False], ids=["watchlist", "list"])
async def test_an_object_that_ceases_to_fit_its_type_is_undecodable_until_it_fits_again(
    cluster: EmbeddedCluster, client: Client, log: Log, use_watch_list: bool
) -> None:
    """An unreadable object is not a deleted one."""
    key = cluster.key("a")
    await cluster.define(CAVE_DEFINITION)
    await cluster.create(CAVES, cave("a", depth=1))
    caves = cluster.list_watch(client, CAVES)
    async with run_informer(caves, Cave, use_watch_list=use_watch_list, logged=True) as (informer, witness):
        await cluster.patch(CAVES, "a", {"spec": {"depth": "bottomless"}})
        await log.until("ERROR", "an object does not fit its type", "caves", "depth")
        cluster.server.faults.expire_history()
        cluster.server.faults.drop_watches(mid_line=True)
        await cluster.create(CAVES, cave("b", depth=2))
        await witness.until(lambda: cluster.key("b") in witness.shadow)
        assert informer.state.reflectors[0].lists == 2
        assert [obj.spec.depth for obj in informer.store.list()] == [2]
        (unfit,) = informer.store.undecodable()
        assert (unfit.key, unfit["spec"], unfit.last.spec.depth) == (key, {"depth": "bottomless"}, 1)
        await cluster.patch(CAVES, "a", {"spec": {"depth": 3}})
        await witness.until(lambda: witness.counts["update"] == 1)
        assert [(call.kind, call.obj.spec.depth) for call in witness.of(key)] == [("add", 1), ("update", 3)]


@pytest.mark.parametrize("use_watch_list", [True, False], ids=["watchlist", "list"])
async def test_an_object_of_eight_megabytes(
    cluster: EmbeddedCluster, list_watch: ListWatch, use_watch_list: bool
) -> None:
    server = cluster.server
    server.create("v1", "configmaps", configmap("listed", k="x" * 8_000_000), cluster.namespace)
    async with run_informer(list_watch, KubeObject, use_watch_list=use_watch_list) as (informer, witness):
        server.create("v1", "configmaps", configmap("watched", k="y" * 8_000_000), cluster.namespace)
        await witness.until(lambda: cluster.key("watched") in witness.shadow)
        sizes = {obj.name: len(obj["data"]["k"]) for obj in informer.store.list()}
        assert sizes == {"listed": 8_000_000, "watched": 8_000_000}
        assert (informer.state.reflectors[0].lists, informer.state.last_error) == (1, None)
