"""A write is in the cache when wait_for returns, on both servers and with both queues."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioinformer import Client, KubeObject
from aioinformer.errors import VersionTimeout
from tests.samples import configmap

from .api import CONFIGMAPS, Refused
from .clusters import Cluster, EmbeddedCluster
from .witness import PATIENCE, run_informer

QUEUES = pytest.mark.parametrize("queue", ["delta", "real"])


def version_of(obj: Any) -> int:
    return int(obj["metadata"]["resourceVersion"])


@QUEUES
async def test_one_write_after_the_other(cluster: Cluster, client: Client, queue: str) -> None:
    list_watch = cluster.list_watch(client, CONFIGMAPS)
    async with run_informer(list_watch, KubeObject, queue=queue) as (informer, _):
        created = await cluster.create(CONFIGMAPS, configmap("a", k="1"))
        assert await informer.wait_for(created, PATIENCE) == created
        patched = await cluster.patch(CONFIGMAPS, "a", {"data": {"k": "2"}})
        assert await informer.wait_for(patched, PATIENCE) == patched
        unchanged = await cluster.patch(CONFIGMAPS, "a", {"data": {"k": "2"}})
        assert await informer.wait_for(unchanged, timeout=0) == patched
        await cluster.delete(CONFIGMAPS, "a")
        other = await cluster.create(CONFIGMAPS, configmap("b"))
        await informer.wait_for(other["metadata"]["resourceVersion"], PATIENCE)
        assert informer.store.list_keys() == [cluster.key("b")]
        assert await informer.wait_for(patched, timeout=0) is None


@QUEUES
async def test_many_writers_each_see_what_they_wrote(cluster: Cluster, client: Client, queue: str) -> None:
    list_watch = cluster.list_watch(client, CONFIGMAPS)
    async with run_informer(list_watch, KubeObject, queue=queue) as (informer, _):

        async def write(name: str) -> None:
            for turn in range(6):
                if turn == 0:
                    written = await cluster.create(CONFIGMAPS, configmap(name))
                else:
                    written = await cluster.patch(CONFIGMAPS, name, {"data": {"k": str(turn)}})
                cached = await informer.wait_for(written, PATIENCE)
                assert cached is not None
                assert int(cached.resource_version) >= version_of(written)
                await informer.wait_for(written["metadata"]["resourceVersion"], PATIENCE)
                assert informer.lister.get(cluster.key(name)) == written

        await asyncio.gather(*(write(f"c{number}") for number in range(20)))
        assert len(informer._version_waits) == 0


async def test_an_object_that_the_selector_does_not_pick(cluster: Cluster, client: Client) -> None:
    """Without other changes only a bookmark has the version; here the next object has it."""
    list_watch = cluster.list_watch(client, CONFIGMAPS, label_selector="app=web")
    async with run_informer(list_watch, KubeObject) as (informer, _):
        hidden = await cluster.create(CONFIGMAPS, configmap("hidden"))
        if isinstance(cluster, EmbeddedCluster):  # the real server may send a bookmark at any time
            with pytest.raises(
                VersionTimeout, match=f"not {cluster.key('hidden')} at {version_of(hidden)} after"
            ):
                await informer.wait_for(hidden, timeout=0.3)
        waiting = asyncio.create_task(informer.wait_for(hidden, PATIENCE))
        await cluster.create(CONFIGMAPS, configmap("seen", labels={"app": "web"}))
        assert await waiting is None


@QUEUES
@pytest.mark.usefixtures("soon_again")
async def test_through_trouble(embedded: EmbeddedCluster, queue: str) -> None:
    server = embedded.server
    async with (
        embedded.client() as client,
        run_informer(embedded.list_watch(client, CONFIGMAPS), KubeObject, queue=queue) as (informer, _),
    ):
        for turn in range(12):
            if turn % 3 == 0:
                server.faults.drop_watches(mid_line=turn % 2 == 0)
            if turn % 4 == 1:
                server.faults.expire_history()
                server.faults.drop_watches()
            try:
                written = await embedded.patch(CONFIGMAPS, "a", {"data": {"k": str(turn)}})
            except Refused:
                written = await embedded.create(CONFIGMAPS, configmap("a"))
            assert await informer.wait_for(written, PATIENCE) == written


@QUEUES
async def test_a_version_of_elsewhere_comes_with_a_bookmark(embedded: EmbeddedCluster, queue: str) -> None:
    server = embedded.server
    server._handler._bookmark_interval = 0.2
    async with (
        embedded.client() as client,
        run_informer(embedded.list_watch(client, CONFIGMAPS), KubeObject, queue=queue) as (informer, _),
    ):
        server.create("v1", "secrets", {"metadata": {"name": "s"}}, embedded.namespace)
        version = str(server.resource_version)
        assert informer.last_sync_resource_version != version
        await informer.wait_for(version, PATIENCE)
