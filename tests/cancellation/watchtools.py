"""Watching without a cache, and waiting for a condition."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from aioinformer import RetryWatcher, TransportError, WatchEvent, until, until_with_sync, until_without_retry

from ..reflector.history import History, HistoryListWatch
from .reading import an_informer
from .registry import Call, case


@asynccontextmanager
async def a_server() -> AsyncIterator[HistoryListWatch]:
    """A server that refuses the first watch and has two changes since version 100."""
    history = History()
    history.watch_failures.append(TransportError("down"))
    history.put("default", "a")
    history.put("default", "a")
    yield HistoryListWatch(history, "", watch_list_semantics=False, choose=lambda among: 0)
    assert not history.open
    assert not history.closed_twice


@case("RetryWatcher.__anext__")
async def _() -> AsyncIterator[Call]:
    seen: list[str] = []

    async def see_two() -> None:
        while len(seen) < 2:
            event = await anext(events)
            seen.append(event.object.resource_version)

    async with a_server() as server, RetryWatcher(server, "100") as events:
        yield see_two
        await see_two()
    assert seen == ["101", "102"], "none is lost, none comes twice"


def ending_case(name: str, call: Callable[[RetryWatcher[Any]], Coroutine[Any, Any, Any]]) -> None:
    @case(f"RetryWatcher.{name}")
    async def _() -> AsyncIterator[Call]:
        async with a_server() as server:
            events = RetryWatcher(server, "100")
            await anext(events)
            yield lambda: call(events)
            await events.aclose()


ending_case("__aenter__", lambda events: events.__aenter__())
ending_case("aclose", lambda events: events.aclose())
ending_case("__aexit__", lambda events: events.__aexit__(None, None, None))


async def is_changed(event: WatchEvent) -> bool:
    await asyncio.sleep(0)
    return event.type == "MODIFIED"


@case("until")
async def _() -> AsyncIterator[Call]:
    async with a_server() as server:
        yield lambda: until(server, "100", is_changed, timeout=60)


@case("until_without_retry")
async def _() -> AsyncIterator[Call]:
    async with a_server() as server, RetryWatcher(server, "100") as events:
        yield lambda: until_without_retry(events, is_changed, timeout=60)


@case("until_with_sync")
async def _() -> AsyncIterator[Call]:
    subject, check = an_informer()
    async with subject:
        yield lambda: until_with_sync(subject, is_changed, precondition=lambda indexer: False, timeout=60)
        assert len(subject.state.handlers) == 1
    check()
