"""timers.py: one timer for many deadlines."""

from __future__ import annotations

import asyncio
import math

import pytest

from aioinformer._core.timers import DeadlineTimer, call_every

from ..steps import turns, until
from ..virtual_time import virtual_time

LONG = 3600.0


def now() -> float:
    return asyncio.get_running_loop().time()


async def finish_after(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "done"


class RecordingTimer(DeadlineTimer):
    """Records when it fires."""

    def __init__(self) -> None:
        self.times: list[float] = []
        super().__init__(self.times.append)

    def fire_in(self, seconds: float) -> float:
        deadline = now() + seconds
        self.fire_by(deadline)
        return deadline


class TestDeadlineTimer:
    @pytest.mark.parametrize("seconds", [-1.0, 0.0, 0.0004, 0.0011, 0.02])
    async def test_fires_once_and_not_before_its_deadline(self, seconds: float) -> None:
        timer = RecordingTimer()
        deadline = timer.fire_in(seconds)
        assert timer.deadline == deadline
        await until(lambda: timer.times)
        await turns(3)
        assert len(timer.times) == 1
        assert timer.times[0] >= deadline
        assert timer.deadline == math.inf

    async def test_fires_at_the_earlier_of_two_deadlines(self) -> None:
        timer = RecordingTimer()
        timer.fire_in(LONG)
        soon = timer.fire_in(0.01)
        timer.fire_in(LONG)
        assert timer.deadline == soon
        await until(lambda: timer.times)
        assert timer.times[0] < soon + LONG / 2
        assert timer.deadline == math.inf

    async def test_fires_again_after_a_deadline_that_was_due_at_once(self) -> None:
        """uvloop returns a handle that is due at once and has no time."""
        timer = RecordingTimer()
        for done in range(3):
            timer.fire_in(0.0001)
            timer.fire_in(0.00005)
            await until(lambda done=done: len(timer.times) > done)  # type: ignore[misc]
        assert len(timer.times) == 3

    async def test_callback_can_set_it_again(self) -> None:
        times: list[float] = []

        def fire(at: float) -> None:
            times.append(at)
            if len(times) < 3:
                timer.fire_by(at + 0.001)

        timer = DeadlineTimer(fire)
        timer.fire_by(now())
        await until(lambda: len(times) == 3)
        assert times == sorted(times)
        assert timer.deadline == math.inf

    async def test_cancelled_timer_does_not_fire(self) -> None:
        timer = RecordingTimer()
        timer.fire_in(0.0)
        timer.cancel()
        timer.cancel()
        assert timer.deadline == math.inf
        await turns(5)
        assert timer.times == []
        timer.fire_in(0.0)
        await until(lambda: timer.times)


@virtual_time
async def test_call_every_calls_until_the_block_ends() -> None:
    times: list[float] = []
    start = now()
    with call_every(10, lambda: times.append(now() - start)):
        await asyncio.sleep(35)
    await asyncio.sleep(35)
    assert times == pytest.approx([10, 20, 30])
