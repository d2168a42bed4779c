from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

import aiohttp
import pytest

from aioinformer import ApiError, Client, ConfigError, ListOptions, ListWatch, TransportError, WatchEvent
from aioinformer.cache import ListResult
from aioinformer.errors import DecodeError
from aioinformer.protocols import ListsInChunks

from ..client.transports import Server
from ..virtual_time import virtual_time
from .streams import POD_LIST, Chunks

ADDED = WatchEvent("ADDED", {"metadata": {"name": "a"}})


async def list_one(options: ListOptions) -> ListResult:
    return ListResult([options.limit], "5", "more")


class Stream:
    """An async iterator that counts its closings and ends with an error."""

    def __init__(self, *events: Any) -> None:
        self._events = list(events)
        self.closed = 0

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Any:
        if not self._events:
            raise StopAsyncIteration
        event = self._events.pop(0)
        if isinstance(event, Exception):
            raise event
        return event

    async def aclose(self) -> None:
        self.closed += 1


async def test_a_list_function_gives_one_chunk() -> None:
    source: ListsInChunks = ListWatch(list_one, lambda _: Stream())
    assert [chunk async for chunk in source.list_chunks(ListOptions(limit=3))] == [
        ListResult([3], "5", "more")
    ]
    assert await ListWatch(list_one, lambda _: Stream()).list() == ListResult([0], "5", "more")


async def test_a_list_function_may_be_plain() -> None:
    assert await ListWatch(lambda _: ListResult([1], "5"), lambda _: Stream()).list() == ListResult([1], "5")


async def test_semantics_and_description_are_the_users() -> None:
    plain = ListWatch(list_one, lambda _: Stream())
    assert not plain.watch_list_semantics
    assert plain.resource is None
    named = ListWatch(list_one, lambda _: Stream(), description="caves", watch_list_semantics=True)
    assert named.watch_list_semantics
    assert repr(named) == "<ListWatch caves>"


def test_list_watch_is_freed_with_its_last_reference() -> None:
    client = Client.from_url("http://127.0.0.1:1")
    collection = ListWatch.for_resource(client, "v1", "pods")
    assert str(collection.resource) == "pods"
    gone = weakref.ref(collection), weakref.ref(client)
    gc.disable()
    try:
        del collection, client
        assert [reference() for reference in gone] == [None, None]
    finally:
        gc.enable()


async def test_watch_functions_of_every_kind() -> None:
    async def generator(options: ListOptions) -> AsyncIterator[WatchEvent | list[WatchEvent]]:
        yield ADDED
        yield [ADDED, ADDED]

    async def coroutine(options: ListOptions) -> AsyncIterator[WatchEvent | list[WatchEvent]]:
        return generator(options)

    for function in (generator, coroutine, lambda _: Stream(ADDED, [ADDED, ADDED])):
        stream = await ListWatch(list_one, function).watch(ListOptions())
        assert [event async for event in stream] == [ADDED, [ADDED, ADDED]]


async def test_the_users_stream_is_closed() -> None:
    users = Stream(ADDED, ADDED)
    stream: Any = await ListWatch(list_one, lambda _: users).watch(ListOptions())
    assert await anext(stream) == ADDED
    await stream.aclose()
    assert users.closed == 1


async def test_a_stream_without_aclose_is_left_alone() -> None:
    class Bare:
        def __aiter__(self) -> Bare:
            return self

        async def __anext__(self) -> WatchEvent:
            raise StopAsyncIteration

    stream: Any = await ListWatch(list_one, lambda _: Bare()).watch(ListOptions())
    await stream.aclose()


async def test_error_of_the_call_is_raised_by_watch() -> None:
    async def refuse(options: ListOptions) -> Any:
        raise ConnectionRefusedError("connection refused")

    source = ListWatch(refuse, refuse, description="pods")
    with pytest.raises(TransportError, match=r"list pods at resourceVersion 0: connection refused"):
        await source.list(ListOptions(resource_version="0"))
    with pytest.raises(TransportError, match=r"watch pods at resourceVersion 3: connection refused"):
        await source.watch(ListOptions(resource_version="3"))


@pytest.mark.parametrize(
    "error", [OSError("cut"), TimeoutError("cut"), aiohttp.ClientPayloadError("cut"), TransportError("cut")]
)
async def test_error_of_the_iterator_is_raised_by_the_stream(error: Exception) -> None:
    source = ListWatch(list_one, lambda _: Stream(ADDED, error), description="pods")
    stream = await source.watch(ListOptions())
    assert await anext(stream) == ADDED
    with pytest.raises(TransportError, match=r"watch pods: .*cut"):
        await anext(stream)


async def test_an_api_error_of_the_stream_keeps_its_type() -> None:
    stream = await ListWatch(list_one, lambda _: Stream(ApiError(410, "Expired"))).watch(ListOptions())
    with pytest.raises(ApiError, match=r"watch objects: 410 Expired"):
        await anext(stream)


async def test_other_errors_pass_as_they_are() -> None:
    stream = await ListWatch(list_one, lambda _: Stream(ValueError("mine"))).watch(ListOptions())
    with pytest.raises(ValueError, match=r"^mine$"):
        await anext(stream)


async def test_function_with_a_wrong_result_is_a_decode_error() -> None:
    async def wrong(options: ListOptions) -> Any:
        return 5

    with pytest.raises(DecodeError, match=r"expected a ListResult, got int"):
        await ListWatch(wrong, wrong).list()
    with pytest.raises(DecodeError, match=r"expected an async iterator, got int"):
        await ListWatch(wrong, wrong).watch(ListOptions())


class Slow(Chunks):
    """Bytes that come one by one, each after a while."""

    def __init__(self, body: bytes, seconds: float) -> None:
        super().__init__([body[at : at + 1] for at in range(len(body))])
        self._seconds = seconds

    async def __anext__(self) -> bytes:
        await asyncio.sleep(self._seconds)
        return await super().__anext__()


@virtual_time
async def test_slow_list_yields_empty_pieces() -> None:
    """Otherwise a slow connection would count as dead."""

    class SlowServer(Server):
        async def stream(
            self, path: str, query: Any = (), *, idle_timeout: float | None = None, accept: str = ""
        ) -> Chunks:
            return Slow(POD_LIST.encode(), 20.0)

    pods = ListWatch.for_resource(Client(SlowServer()), "v1", "pods")
    loop = asyncio.get_running_loop()
    times, items = [loop.time()], 0
    async for piece in pods.list_chunks(ListOptions(resource_version="0")):
        times.append(loop.time())
        items += len(piece.items)
    assert items == 1
    assert times[-1] - times[0] > 1000
    assert max(later - earlier for earlier, later in pairwise(times)) <= 40


@pytest.mark.parametrize("wrong", [-1, 1.5, "1 MB"])
def test_the_longest_object_is_a_number_of_bytes(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="longest_object"):
        ListWatch.for_resource(Client(Server()), "v1", "pods", longest_object=wrong)
