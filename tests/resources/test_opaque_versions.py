"""Servers whose resourceVersions are not numbers: reads still wait for own writes, or raise."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from aioinformer import (
    CachedResource,
    Client,
    ConfigError,
    KubeObject,
    ListWatch,
    NotFoundError,
    Resource,
    RetryWatcher,
    SharedInformerFactory,
    until,
)
from aioinformer.errors import VersionTimeout
from aioinformer.resources import cached
from aioinformer.testing import APIServer

from .opaque import Opaque
from .test_cached import KEY, PATIENCE, configmap, no_more_after, require_blocked

Maps = CachedResource[KubeObject]


@asynccontextmanager
async def world(
    timeout: float = PATIENCE, between: type[Opaque] = Opaque
) -> AsyncIterator[tuple[APIServer, Maps]]:
    """A server with textual versions, a synced informer and a CachedResource."""
    async with (
        APIServer() as server,
        Client.from_url(server.url) as plain,
        Client(between(plain.transport)) as client,
        SharedInformerFactory(client) as factory,
    ):
        informer = factory.for_resource("v1", "configmaps")
        factory.start()
        await factory.wait_for_cache_sync()
        yield server, CachedResource(Resource(client, "v1", "configmaps"), informer, timeout=timeout)


async def test_reads_wait_for_own_writes() -> None:
    async with world() as (server, maps):
        frozen = server.faults.freeze(verb="watch")
        await maps.create(configmap(k="1"))
        written = await maps.patch(KEY, {"data": {"k": "2"}})
        assert written.resource_version.startswith("v")
        reads: list[asyncio.Task[Any]] = [
            asyncio.create_task(maps.get(KEY)),
            asyncio.create_task(maps.list()),
            asyncio.create_task(maps.by_index("namespace", "default")),
        ]
        for read in reads:
            await require_blocked(read)
        frozen.remove()
        one, *lists = await asyncio.gather(*reads)
        assert one == written
        for objects in lists:
            assert written in objects
        assert len(maps.informer.version_waits) == 0


async def test_reads_wait_for_deletions() -> None:
    async with world() as (server, maps):
        made = await maps.create(configmap())
        assert await maps.get(KEY) == made
        frozen = server.faults.freeze(verb="watch")
        await maps.delete(made)
        await no_more_after(frozen, maps)


@pytest.mark.parametrize("between", [0.0, 1.5])
async def test_write_of_others_on_top_ends_the_wait(between: float) -> None:
    """The own version never appears in the cache, so only the server shows that the cache is past it."""
    async with world() as (server, maps):
        frozen = server.faults.freeze(verb="watch")
        await maps.create(configmap(k="1"))
        read = asyncio.create_task(maps.get(KEY))
        server.patch("v1", "configmaps", "a", {"data": {"k": "2"}}, "default")
        await asyncio.sleep(between)
        assert not read.done()
        frozen.remove()
        assert (await asyncio.wait_for(read, 5.0))["data"] == {"k": "2"}


async def test_deletion_by_others_ends_the_wait_soon() -> None:
    async with world() as (server, maps):
        frozen = server.faults.freeze(verb="watch")
        await maps.create(configmap())
        server.delete("v1", "configmaps", "a", "default")
        frozen.remove()
        with pytest.raises(NotFoundError):
            await asyncio.wait_for(maps.get(KEY), 5.0)


async def test_object_created_and_deleted_at_once_is_gone() -> None:
    async with world() as (_, maps):
        for _ in range(5):
            await maps.delete(await maps.create(configmap()))
            with pytest.raises(NotFoundError):
                await asyncio.wait_for(maps.get(KEY), 5.0)


async def test_cache_that_stays_behind_is_named_in_the_error() -> None:
    async with world(timeout=0.3) as (server, maps):
        server.faults.freeze(verb="watch")
        made = await maps.create(configmap())
        with pytest.raises(
            VersionTimeout,
            match=rf"not default/a at {made.resource_version} after 0\.3 s.*is not a number.*Resource\.get",
        ):
            await maps.get(KEY)


class AnswersLate(Opaque):
    """Delay the answer to a write of k=1 until after the next one's."""

    async def send(self, change: Any, *args: Any, **options: Any) -> bytes:
        answer = await super().send(change, *args, **options)
        await asyncio.sleep(0.2 if b'"k":"1"' in change.body else 0.0)
        return answer


async def test_server_decides_which_of_concurrent_writes_is_newest() -> None:
    async with world(between=AnswersLate) as (server, maps):
        await maps.get((await maps.create(configmap())).key)
        frozen = server.faults.freeze(verb="watch")

        async def later() -> None:
            await asyncio.sleep(0.05)
            await maps.patch(KEY, {"data": {"k": "2"}})

        await asyncio.gather(maps.patch(KEY, {"data": {"k": "1"}}), later())
        read = asyncio.create_task(maps.get(KEY))
        await require_blocked(read)
        frozen.remove()
        assert (await asyncio.wait_for(read, 5.0))["data"] == {"k": "2"}


async def test_read_asks_the_server_at_most_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached, "OPAQUE_WAIT", 0.1)
    async with world(timeout=0.55) as (server, maps):
        server.faults.freeze(verb="watch")
        await maps.create(configmap())
        with pytest.raises(VersionTimeout):
            await maps.get(KEY)
        asked = [request for request in server.requests if request.verb == "get"]
        assert 3 <= len(asked) <= 7


async def test_wait_for_waits_for_the_exact_version() -> None:
    async with world() as (server, maps):
        frozen = server.faults.freeze(verb="watch")
        made = await maps.create(configmap())
        waiting = asyncio.create_task(maps.informer.wait_for(made, PATIENCE))
        await require_blocked(waiting)
        frozen.remove()
        assert await waiting == made


async def test_wait_for_names_versions_it_cannot_wait_for() -> None:
    async with world() as (_, maps):
        made = await maps.create(configmap())
        with pytest.raises(ConfigError, match=r"default/a at 'v\d+' needs a timeout"):
            await maps.informer.wait_for(made)
        with pytest.raises(ConfigError, match="must be a resourceVersion"):
            await maps.informer.wait_for(made.resource_version, 1.0)


async def test_watches_continue_from_the_last_version() -> None:
    async with world() as (server, maps):
        client = maps.resource._endpoint.client
        list_watch = ListWatch.for_resource(client, "v1", "configmaps")
        version = (await maps.create(configmap(k="0"))).resource_version
        async with RetryWatcher(list_watch, version, min_restart_delay=0.0) as events:
            for number in "123":
                await maps.patch(KEY, {"data": {"k": number}})
                assert (await anext(events)).object["data"] == {"k": number}
                server.faults.drop_watches()
        event = await until(
            list_watch, version, lambda event: event.object["data"] == {"k": "3"}, timeout=PATIENCE
        )
        assert event.object.resource_version == events.resource_version


class Versionless(Opaque):
    """A server whose answers to writes have no version."""

    async def send(self, *args: Any, **options: Any) -> bytes:
        answer = await super().send(*args, **options)
        return answer.replace(b'"resourceVersion"', b'"was"')


async def test_answers_without_a_version_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "aioinformer.resources"):
        async with world(between=Versionless) as (_, maps):
            for name in "ab":
                await maps.create(configmap(name))
    assert [record.getMessage() for record in caplog.records] == [
        "<CachedResource configmaps>: the server's answer to a write has no resourceVersion, so reads do not wait for "
        "such writes; to see them, read these objects at the server (.resource)"
    ]
