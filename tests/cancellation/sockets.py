"""Cases with sockets: client, list and watch, factory."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from aioinformer import Client, ListOptions, ListWatch, SharedInformerFactory
from aioinformer.testing import APIServer

from ..informer.handlers import Follower
from ..listwatch.test_cancellation import assert_at_rest
from ..steps import until
from .registry import Call, socket_case


def client_case(name: str, call: Callable[[Client], Coroutine[Any, Any, Any]]) -> None:
    """A call of a client that other tasks use at the same time."""

    @socket_case(f"Client.{name}")
    async def _(server: APIServer, client: Client) -> AsyncIterator[Call]:
        yield lambda: call(client)


async def read(client: Client) -> None:
    stream = await client.stream("/api/v1/configmaps")
    try:
        async for _ in stream:
            pass
    finally:
        await stream.aclose()


client_case("get", lambda client: client.get("/api/v1/configmaps"))
client_case("get_json", lambda client: client.get_json("/api/v1/configmaps"))
client_case("stream", read)


def opening_case(name: str, call: Callable[[Client], Coroutine[Any, Any, Any]], *, is_open: bool) -> None:
    """Opening and closing a client; afterwards no connection remains."""

    @socket_case(f"Client.{name}")
    async def _(server: APIServer, client: Client) -> AsyncIterator[Call]:
        subject = Client.from_url(server.url)
        if is_open:
            await subject.get("/api")  # each run opens a session
            await read(subject)
        yield lambda: call(subject)
        await subject.close()
        assert_at_rest(subject)


opening_case("open", lambda client: client.open(), is_open=False)
opening_case("__aenter__", lambda client: client.__aenter__(), is_open=False)
opening_case("close", lambda client: client.close(), is_open=True)
opening_case("__aexit__", lambda client: client.__aexit__(None, None, None), is_open=True)


@socket_case("ListWatch.list")
async def _(server: APIServer, client: Client) -> AsyncIterator[Call]:
    yield ListWatch.for_resource(client, "v1", "configmaps").list


@socket_case("ListWatch.list_chunks")
async def _(server: APIServer, client: Client) -> AsyncIterator[Call]:
    async def read_all() -> None:
        pieces = ListWatch.for_resource(client, "v1", "configmaps").list_chunks(ListOptions())
        try:
            assert sum([len(piece.items) async for piece in pieces]) >= 3
        finally:
            await pieces.aclose()  # type: ignore[attr-defined]

    yield read_all


@socket_case("ListWatch.watch")
async def _(server: APIServer, client: Client) -> AsyncIterator[Call]:
    async def read_three() -> None:
        stream: Any = await ListWatch.for_resource(client, "v1", "configmaps").watch(
            ListOptions(resource_version="0")
        )
        seen = 0
        try:
            while seen < 3:
                seen += len(await anext(stream))
        finally:
            await stream.aclose()

    yield read_three


@asynccontextmanager
async def a_factory(client: Client) -> AsyncIterator[tuple[SharedInformerFactory, Follower]]:
    factory = SharedInformerFactory(client)
    follower = Follower()
    factory.for_resource("v1", "configmaps").add_event_handler(follower)
    factory.for_resource("v1", "pods")
    yield factory, follower
    await factory.shutdown()
    assert all(informer.is_stopped for informer in factory._tasks)
    assert not follower.wrong


@socket_case("SharedInformerFactory.__aenter__")
async def _(server: APIServer, client: Client) -> AsyncIterator[Call]:
    async with a_factory(client) as (factory, _):
        yield factory.__aenter__


@socket_case("SharedInformerFactory.run", ends=False)
async def _(server: APIServer, client: Client) -> AsyncIterator[Call]:
    async with a_factory(client) as (factory, _):
        yield factory.run
        assert all(informer.is_stopped for informer in factory._tasks)


@socket_case("SharedInformerFactory.run_until_signal", ends=False)
async def _(server: APIServer, client: Client) -> AsyncIterator[Call]:
    async with a_factory(client) as (factory, _):
        yield factory.run_until_signal
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@socket_case("SharedInformerFactory.wait_ended", ends=False)
async def _(server: APIServer, client: Client) -> AsyncIterator[Call]:
    async with a_factory(client) as (factory, _):
        factory.start()
        yield factory.wait_ended
        assert not any(informer.is_stopped for informer in factory.running)


@socket_case("SharedInformerFactory.wait_for_cache_sync")
async def _(server: APIServer, client: Client) -> AsyncIterator[Call]:
    async with a_factory(client) as (factory, follower):
        factory.start()
        yield factory.wait_for_cache_sync
        await factory.wait_for_cache_sync()
        await until(lambda: len(follower.copy) >= 3)


def stopping_case(name: str, call: Callable[[SharedInformerFactory], Coroutine[Any, Any, Any]]) -> None:
    @socket_case(f"SharedInformerFactory.{name}")
    async def _(server: APIServer, client: Client) -> AsyncIterator[Call]:
        async with a_factory(client) as (factory, _):
            factory.start()
            await factory.wait_for_cache_sync()
            yield lambda: call(factory)


stopping_case("shutdown", lambda factory: factory.shutdown())
stopping_case("remove", lambda factory: factory.remove(factory.informers[0]))
stopping_case("__aexit__", lambda factory: factory.__aexit__(None, None, None))
