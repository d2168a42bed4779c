"""EndsWithin of tasks.py: what is awaited in a task of others, and does not keep it for ever."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Awaitable, Generator
from contextlib import suppress
from typing import Any

import pytest

from aioinformer.tasks import EndsWithin

from .virtual_time import virtual_time

left: list[str] = []


@pytest.fixture(autouse=True)
def _nobody_is_left() -> None:
    left.clear()


async def ending(awaitable: Awaitable[Any]) -> Any:
    return await EndsWithin(10, awaitable, lambda: left.append("left"))


async def cancelled_after(seconds: float, awaitable: Awaitable[Any]) -> float:
    """How long what is awaited takes to end, once it is cancelled."""
    now = asyncio.get_running_loop().time
    task = asyncio.create_task(ending(awaitable))
    await asyncio.sleep(seconds)
    task.cancel()
    began = now()
    await asyncio.wait({task})
    return now() - began


async def going_on(seconds: float = 1.0, times: int = 1000) -> None:
    for _ in range(times):
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(seconds)


@virtual_time
async def test_what_does_not_wait_costs_no_round_of_the_loop() -> None:
    async def at_once() -> int:
        return 1

    others = asyncio.ensure_future(asyncio.sleep(0))
    assert await ending(at_once()) == 1
    assert not others.done()
    await others


@virtual_time
async def test_whatever_can_be_awaited() -> None:
    @types.coroutine
    def old_style() -> Generator[Any, Any, str]:
        yield
        return "done"

    async def fails() -> None:
        await asyncio.sleep(1)
        raise StopAsyncIteration("here")

    done = asyncio.get_running_loop().create_future()
    done.set_result("done")
    for each in (
        old_style(),
        done,
        asyncio.sleep(1, "done"),
        asyncio.ensure_future(asyncio.sleep(1, "done")),
    ):
        assert await ending(each) == "done"
    with pytest.raises(StopAsyncIteration, match="here"):
        await ending(fails())


@virtual_time
async def test_what_goes_on_for_long_is_closed_where_it_is() -> None:
    closed: list[str] = []

    async def goes_on() -> None:
        try:
            await going_on()
        finally:
            closed.append("closed")

    assert await cancelled_after(5, goes_on()) == pytest.approx(10)
    assert (left, closed) == (["left"], ["closed"])


@virtual_time
async def test_what_ends_in_time_is_not_left() -> None:
    async def cleans_up() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(9)

    assert await cancelled_after(5, cleans_up()) == pytest.approx(9)
    assert left == []


@virtual_time
async def test_cancelled_again_it_has_no_more_time_and_no_less() -> None:
    task = asyncio.create_task(ending(going_on()))
    await asyncio.sleep(5)
    for _ in range(4):
        task.cancel()
        await asyncio.sleep(2)
    assert not task.done()
    await asyncio.wait({task}, timeout=2.5)
    assert task.cancelled()


@pytest.mark.parametrize("seconds", [5.0, 30.0])
def test_a_timeout_of_its_own_is_no_cancellation(seconds: float) -> None:
    @virtual_time
    async def scenario() -> None:
        async def tries() -> str:
            for _ in range(3):
                with suppress(TimeoutError):
                    async with asyncio.timeout(1):
                        await asyncio.sleep(3600)
                await asyncio.sleep(seconds)
            return "done"

        assert await ending(tries()) == "done"

        async def tries_and_goes_on() -> None:
            await tries()
            await going_on()

        assert await cancelled_after(3 * seconds + 4, tries_and_goes_on()) == pytest.approx(10)

    scenario()


@virtual_time
async def test_what_it_awaits_may_be_cancelled_by_others() -> None:
    async def waits_on() -> str:
        with suppress(asyncio.CancelledError):
            await asyncio.wait_for(cancelled, 60)
        await asyncio.sleep(60)
        return "done"

    cancelled = asyncio.get_running_loop().create_future()
    cancelled.get_loop().call_later(1, cancelled.cancel)
    assert await ending(waits_on()) == "done"
    assert left == []


@virtual_time
async def test_what_is_left_begun_is_closed_with_who_awaits_it() -> None:
    closed: list[str] = []

    async def waits() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            closed.append("closed")

    awaiting = ending(waits())
    awaiting.send(None)
    awaiting.close()
    assert closed == ["closed"]
