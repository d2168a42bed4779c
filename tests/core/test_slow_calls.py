"""slow_calls.py: warnings about functions that block the event loop."""

from __future__ import annotations

import asyncio
import logging
import types
from collections.abc import Generator
from typing import Any

import pytest

from aioinformer._core import slow_calls
from aioinformer._core.slow_calls import ADVICE, WARN_EVERY, SlowCalls, StepTimer


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [0.0]
    monkeypatch.setattr(slow_calls, "perf_counter", lambda: clock[0])
    return clock


async def test_step_timer_reports_the_longest_step(clock: list[float]) -> None:
    async def work() -> str:
        for seconds in (0.1, 0.3, 0.2):
            clock[0] += seconds
            await asyncio.sleep(0)
        return "done"

    timer = StepTimer(work())
    assert await timer == "done"
    assert timer.longest == pytest.approx(0.3)


async def test_step_timer_accepts_any_awaitable(clock: list[float]) -> None:
    @types.coroutine
    def old_style() -> Generator[Any, Any, str]:
        clock[0] += 0.3
        yield
        return "done"

    timer = StepTimer(old_style())
    assert await timer == "done"
    assert timer.longest == pytest.approx(0.3)


async def test_warns_every_ten_seconds_and_times_steps_after_a_slow_async_call(
    caplog: pytest.LogCaptureFixture, clock: list[float]
) -> None:
    async def work() -> None:
        clock[0] += 0.2

    slow = SlowCalls("work", logging.getLogger("tests"))
    assert slow.record("ns/a", 0.2, None, 7)
    assert slow.record("ns/b", 0.2, None, 7)
    assert caplog.messages == [f"work blocked the event loop for 200 ms on ns/a, with 7 waiting; {ADVICE}"]
    clock[0] += WARN_EVERY
    call, timed = work(), [slow.times_steps]
    assert not slow.record("ns/c", 0.2, call, 7)
    assert [*timed, slow.times_steps] == [False, True]
    timer = StepTimer(call)
    await timer
    assert slow.record("ns/d", 0.9, timer, 7)
    assert caplog.messages[1:] == ["work blocked the event loop for 200 ms on ns/d, with 7 waiting"], (
        "the advice is said once"
    )
