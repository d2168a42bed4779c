"""Watching without a cache, on either server."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer import ApiError, Client, KubeObject, RetryWatcher, WatchEvent, until, until_with_sync
from tests.samples import configmap

from .api import CONFIGMAPS
from .clusters import Cluster, EmbeddedCluster
from .witness import PATIENCE, run_informer


def summarize(event: WatchEvent) -> tuple[str, str]:
    return event.type, event.object.name


async def test_everything_since_a_version_although_connections_break(embedded: EmbeddedCluster) -> None:
    first = await embedded.create(CONFIGMAPS, configmap("a"))
    async with (
        embedded.client() as client,
        RetryWatcher(
            embedded.list_watch(client, CONFIGMAPS),
            first["metadata"]["resourceVersion"],
            min_restart_delay=0.05,
        ) as events,
    ):
        seen = []
        for number in range(6):
            await embedded.create(CONFIGMAPS, configmap(f"c{number}"))
            if number % 2:
                embedded.server.faults.drop_watches(mid_line=True)
            seen.append(summarize(await anext(events)))
        embedded.server.faults.fail(500, times=3, verb="watch")
        embedded.server.faults.drop_watches()
        await embedded.delete(CONFIGMAPS, "a")
        seen.append(summarize(await anext(events)))
    assert seen == [*(("ADDED", f"c{number}") for number in range(6)), ("DELETED", "a")]


async def test_from_a_version_on(cluster: Cluster, client: Client) -> None:
    first = await cluster.create(CONFIGMAPS, configmap("a"))
    await cluster.patch(CONFIGMAPS, "a", {"data": {"k": "1"}})
    async with RetryWatcher(
        cluster.list_watch(client, CONFIGMAPS, field_selector="metadata.name=a"),
        first["metadata"]["resourceVersion"],
    ) as events:
        assert summarize(await anext(events)) == ("MODIFIED", "a")
        await cluster.create(CONFIGMAPS, configmap("b"))
        await cluster.delete(CONFIGMAPS, "a")
        assert summarize(await anext(events)) == ("DELETED", "a")


async def test_a_version_that_is_too_old_is_the_end(cluster: Cluster, client: Client) -> None:
    await cluster.expire_history()
    async with asyncio.timeout(PATIENCE):
        events = [event async for event in RetryWatcher(cluster.list_watch(client, CONFIGMAPS), "1")]
    assert [(event.type, event.object["code"]) for event in events] == [("ERROR", 410)]
    with pytest.raises(ApiError, match="410"):
        await until(cluster.list_watch(client, CONFIGMAPS), "1", lambda event: True, timeout=PATIENCE)


async def test_forbidden_watch_is_reported(cluster: Cluster) -> None:
    async with await cluster.forbid() as client, asyncio.timeout(PATIENCE):
        events = [event async for event in RetryWatcher(cluster.list_watch(client, CONFIGMAPS), "1")]
    assert [(event.type, event.object["code"]) for event in events] == [("ERROR", 403)]


async def test_until(cluster: Cluster, client: Client) -> None:
    list_watch = cluster.list_watch(client, CONFIGMAPS)
    first = await cluster.create(CONFIGMAPS, configmap("a", k="1"))

    waiting = asyncio.create_task(
        until(
            list_watch,
            first["metadata"]["resourceVersion"],
            lambda event: event.object["data"]["k"] == "2",
            lambda event: event.type == "DELETED",
            timeout=PATIENCE,
        )
    )
    async with run_informer(list_watch, KubeObject) as (informer, _):
        cached = asyncio.create_task(
            until_with_sync(informer, lambda event: event.object["data"]["k"] == "2", timeout=PATIENCE)
        )
        for value in ("0", "2", "3"):
            await cluster.patch(CONFIGMAPS, "a", {"data": {"k": value}})
        assert await cached is not None
        await cluster.delete(CONFIGMAPS, "a")
        event = await waiting
        assert summarize(event) == ("DELETED", "a")
        assert await until_with_sync(informer, lambda event: False, precondition=lambda indexer: True) is None
