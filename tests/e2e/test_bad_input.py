"""One bad object, line, handler or key function: named in the log, counted, and nobody else's concern."""

from __future__ import annotations

import json

import pytest

from aioinformer import (
    Client,
    KubeObject,
    ListWatch,
    ResourceEventHandler,
    SharedIndexInformer,
    meta_namespace_key_func,
)

from .api import CONFIGMAPS
from .clusters import EmbeddedCluster, configmap
from .witness import Log, Witness, cached, informed, versions


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
        assert cached(informer) == versions(await cluster.list(CONFIGMAPS))


async def test_a_key_function_that_raises(cluster: EmbeddedCluster, list_watch: ListWatch, log: Log) -> None:
    def key_func(obj: KubeObject) -> str:
        if "bad" in obj.name:
            raise ValueError("no key for you")
        return meta_namespace_key_func(obj)

    await cluster.create(CONFIGMAPS, configmap("bad"))
    await cluster.create(CONFIGMAPS, configmap("good"))
    async with informed(list_watch, KubeObject, key_func=key_func) as (informer, witness):
        await log.until("ERROR", "configmaps", "bad", "no key for you")
        await cluster.create(CONFIGMAPS, configmap("bad2"))
        await log.until("ERROR", "configmaps", "bad2", "no key for you")
        await cluster.create(CONFIGMAPS, configmap("good2"))
        await witness.until(lambda: set(witness.shadow) == {cluster.key("good"), cluster.key("good2")})
        assert informer.state.reflectors[0].rejected == 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{no JSON\n", ("WARNING", "dropped 1 undecodable line", "{no JSON")),
        (b"\xff\xfe\n", ("WARNING", "dropped 1 undecodable line", "xff")),
        (b'{"type":"ADDED","object":{"kind":"ConfigMap"}}\n', ("ERROR", "dropped an object", "metadata")),
        (b'{"type":"ADDED","object":{"kind":"Con\n', ("WARNING", "dropped 1 undecodable line")),
        (b'{"type":"ADDED","object":{"metadata":{"name":7}}}\n', ("ERROR", "dropped an object")),
        (b'{"type":"NOVEL","object":{"metadata":{"name":"a"}}}\n', ("WARNING", "NOVEL")),
        (b"[" * 2000 + b"\n", ("WARNING", "dropped 1 undecodable line")),
        (b"\n\n \n", ()),
    ],
    ids=["no JSON", "no text", "no metadata", "half a line", "number for a name", "type", "deep", "blank"],
)
async def test_a_line_that_says_nothing(
    cluster: EmbeddedCluster, list_watch: ListWatch, log: Log, line: bytes, said: tuple[str, ...]
) -> None:
    await cluster.create(CONFIGMAPS, configmap("before"))
    async with informed(list_watch, KubeObject, logged=True) as (informer, witness):
        assert cluster.server.faults.send_raw(line) == 1
        await cluster.create(CONFIGMAPS, configmap("after"))
        await witness.until_shadow(versions(await cluster.list(CONFIGMAPS)))
        if said:
            await log.until(*said, f"configmaps in {cluster.namespace}")
        assert informer.state.reflectors[0].rejected + list_watch.bad_lines == bool(said)
        assert (informer.state.reflectors[0].watches, informer.state.last_error) == (1, None)


async def test_an_object_that_spoils_while_it_is_cached(
    cluster: EmbeddedCluster, list_watch: ListWatch, log: Log
) -> None:
    """It stays as it was: one that cannot be read is not one that is gone."""
    created = await cluster.create(CONFIGMAPS, configmap("a", k="1"))
    spoilt = created | {"metadata": created["metadata"] | {"labels": 7}}
    async with informed(list_watch, dict) as (informer, witness):
        line = json.dumps({"type": "MODIFIED", "object": {"metadata": {"name": "a"}, "data": "\ud800"}})
        cluster.server.faults.send_raw(line.encode() + b"\n")
        cluster.server.faults.send_raw(
            json.dumps({"type": "MODIFIED", "object": spoilt}).encode()[:-9] + b"\n"
        )
        await cluster.create(CONFIGMAPS, configmap("b"))
        await witness.until(lambda: cluster.key("b") in witness.shadow)
        assert informer.store.get_by_key(cluster.key("a")) == created


@pytest.mark.parametrize("use_watch_list", [True, False], ids=["watchlist", "list"])
async def test_an_object_of_eight_megabytes(
    cluster: EmbeddedCluster, list_watch: ListWatch, use_watch_list: bool
) -> None:
    server = cluster.server
    server.create("v1", "configmaps", configmap("listed", k="x" * 8_000_000), cluster.namespace)
    async with informed(list_watch, KubeObject, use_watch_list=use_watch_list) as (informer, witness):
        server.create("v1", "configmaps", configmap("watched", k="y" * 8_000_000), cluster.namespace)
        await witness.until(lambda: cluster.key("watched") in witness.shadow)
        sizes = {obj.name: len(obj["data"]["k"]) for obj in informer.store.list()}
        assert sizes == {"listed": 8_000_000, "watched": 8_000_000}
        assert (informer.state.reflectors[0].lists, informer.state.last_error) == (1, None)
