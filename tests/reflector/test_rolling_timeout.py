"""Deadlines of waits that follow each other, with few timers."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from aioinformer.reflector.rolling_timeout import RollingTimeout

from ..virtual_time import virtual_time


def now() -> float:
    return asyncio.get_running_loop().time()


async def after(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "there"


@virtual_time
async def test_what_comes_in_time_is_returned() -> None:
    timeout = RollingTimeout()
    assert await timeout.wait(after(5), now() + 10) == "there"
    assert not timeout.has_ended
    timeout.close()


@virtual_time
async def test_what_does_not_is_cancelled_at_its_deadline() -> None:
    timeout, began = RollingTimeout(), now()
    waited = asyncio.get_running_loop().create_future()
    with pytest.raises(TimeoutError):
        await timeout.wait(waited, began + 10)
    assert now() - began == pytest.approx(10)
    assert timeout.has_ended
    assert waited.cancelled()


@virtual_time
async def test_a_later_wait_has_its_own_deadline() -> None:
    timeout, began = RollingTimeout(), now()
    assert await timeout.wait(after(8), began + 10)
    with pytest.raises(TimeoutError):
        await timeout.wait(after(100), began + 18)
    assert now() - began == pytest.approx(18)


@virtual_time
async def test_a_sooner_one_too() -> None:
    timeout, began = RollingTimeout(), now()
    assert await timeout.wait(after(1), began + 300)
    with pytest.raises(TimeoutError):
        await timeout.wait(after(100), began + 3)
    assert now() - began == pytest.approx(3)


@virtual_time
async def test_what_lies_between_two_waits_is_not_disturbed() -> None:
    timeout, began = RollingTimeout(), now()
    assert await timeout.wait(after(1), began + 10)
    await asyncio.sleep(100)
    assert await timeout.wait(after(5), now() + 10) == "there"
    with pytest.raises(TimeoutError):
        await timeout.wait(after(100), now() + 10)
    assert now() - began == pytest.approx(116)


@virtual_time
async def test_many_waits_set_few_timers(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    timers: list[float] = []
    call_at: Callable[..., asyncio.TimerHandle] = loop.call_at

    def counted(when: float, callback: Any, *args: Any, **options: Any) -> asyncio.TimerHandle:
        if getattr(callback, "__self__", None) is timeout._alarm:
            timers.append(when)
        return call_at(when, callback, *args, **options)

    monkeypatch.setattr(loop, "call_at", counted)
    timeout = RollingTimeout()
    for _ in range(1000):
        assert await timeout.wait(after(0.5), now() + 100)
    assert len(timers) <= 6


@virtual_time
async def test_an_error_of_what_is_awaited_is_its_own() -> None:
    async def fails() -> None:
        raise TimeoutError("the socket's")

    timeout = RollingTimeout()
    with pytest.raises(TimeoutError, match="the socket's"):
        await timeout.wait(fails(), now() + 10)
    assert not timeout.has_ended


@virtual_time
async def test_cancelled_by_somebody_else_it_is_cancelled() -> None:
    """Also where the deadline passes in the same moment."""
    for seconds in (5, 10):
        timeout = RollingTimeout()
        waiting = asyncio.create_task(timeout.wait(after(100), now() + 10))
        await asyncio.sleep(seconds)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        timeout.close()


@virtual_time
async def test_what_comes_in_spite_of_its_deadline_is_returned() -> None:
    async def stubborn() -> str:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(100)
        return "there"

    timeout = RollingTimeout()
    assert await timeout.wait(stubborn(), now() + 10) == "there"
    assert timeout.has_ended
    task = asyncio.current_task()
    assert task is not None
    assert not task.cancelling()


@virtual_time
async def test_closed_it_leaves_no_timer() -> None:
    timeout = RollingTimeout()
    assert await timeout.wait(after(1), now() + 10)
    timeout.close()
    timeout.close()
    assert timeout._alarm.at == math.inf
