"""Calls of a running informer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

from aioinformer import InformerEvents, SharedIndexInformer, wait_for_cache_sync
from aioinformer._core.tasks import finish

from ..informer.handlers import Follower
from .reading import an_informer
from .registry import Call, case


def informer_case(
    name: str, call: Callable[[SharedIndexInformer[Any], Any], Coroutine[Any, Any, Any]]
) -> None:
    """A call of a running informer. The informer must continue after it."""

    @case(name)
    async def _() -> AsyncIterator[Call]:
        subject, check = an_informer()
        registration = subject.add_event_handler(Follower(seconds=0.05))
        async with subject:
            yield lambda: call(subject, registration)
            await until_time_passes(lambda: len(subject.store) == 2)
            assert not subject.is_stopped
        check()


async def until_time_passes(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110 - in virtual time
        await asyncio.sleep(0.05)


informer_case("SharedIndexInformer.wait_synced", lambda subject, registration: subject.wait_synced(timeout=9))
informer_case("SharedIndexInformer.wait_for", lambda subject, registration: subject.wait_for("12", timeout=9))
informer_case("Registration.wait_synced", lambda subject, registration: registration.wait_synced(timeout=9))
informer_case(
    "wait_for_cache_sync",
    lambda subject, registration: wait_for_cache_sync(subject, registration, timeout=9, fail_fast=True),
)


@case("SharedIndexInformer.shut_down_event_handler")
async def _() -> AsyncIterator[Call]:
    subject, check = an_informer()
    follower = Follower(seconds=0.05)
    registration = subject.add_event_handler(follower)
    called: list[bool] = []

    async def call() -> None:
        called.append(True)
        await subject.shut_down_event_handler(registration)

    async with subject:
        await until_time_passes(lambda: follower._busy)
        yield call
        assert len(subject.state.handlers) == 2 - len(called), "removed however the waiting ends"
        await subject.shut_down_event_handler(registration)
        assert not follower._busy
    check()


@case("SharedIndexInformer.wait_stopped")
async def _() -> AsyncIterator[Call]:
    subject, check = an_informer()
    task = subject.begin()
    asyncio.get_running_loop().call_later(0.2, task.cancel)
    yield subject.wait_stopped
    await subject.wait_stopped()
    await finish(task)
    check()


@case("InformerEvents.__aenter__")
async def _() -> AsyncIterator[Call]:
    subject, check = an_informer()
    async with subject:
        events = InformerEvents(subject)
        yield events.__aenter__
        assert len(subject.state.handlers) == 1 + (events._registration is not None)
    check()


@case("InformerEvents.__aexit__")
async def _() -> AsyncIterator[Call]:
    subject, check = an_informer()
    async with subject:
        events = await InformerEvents(subject).__aenter__()
        yield lambda: events.__aexit__(None, None, None)
        await events.__aexit__(None, None, None)
        assert len(subject.state.handlers) == 1
    check()


@case("InformerEvents.__anext__")
async def _() -> AsyncIterator[Call]:
    subject, check = an_informer()
    seen: list[str] = []

    async def see() -> None:
        seen.append((await anext(events)).object.name)

    async with subject, InformerEvents(subject) as events:
        yield see
        while len(seen) < 3:
            await see()
        assert seen == ["a", "b", "c"], "none is lost"
    check()
