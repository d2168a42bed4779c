"""timers.py: one timer for many deadlines."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from aioinformer._core.timers import DeadlineTimer, ReusableTimeout, call_every

from ..steps import turns, until
from ..virtual_time import virtual_time

LONG = 3600.0


def now() -> float:
    return asyncio.get_running_loop().time()


async def done_after(seconds: float) -> str:
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


class TestReusableTimeout:
    @virtual_time
    async def test_returns_a_result_that_comes_in_time(self) -> None:
        timeout = ReusableTimeout()
        assert await timeout.wait(done_after(5), now() + 10) == "done"
        assert not timeout.has_expired
        timeout.close()

    @virtual_time
    async def test_cancels_the_wait_at_its_deadline(self) -> None:
        timeout, start = ReusableTimeout(), now()
        waited = asyncio.get_running_loop().create_future()
        with pytest.raises(TimeoutError):
            await timeout.wait(waited, start + 10)
        assert now() - start == pytest.approx(10)
        assert timeout.has_expired
        assert waited.cancelled()

    @virtual_time
    async def test_next_wait_has_its_own_later_deadline(self) -> None:
        timeout, start = ReusableTimeout(), now()
        assert await timeout.wait(done_after(8), start + 10)
        with pytest.raises(TimeoutError):
            await timeout.wait(done_after(100), start + 18)
        assert now() - start == pytest.approx(18)

    @virtual_time
    async def test_next_wait_has_its_own_earlier_deadline(self) -> None:
        timeout, start = ReusableTimeout(), now()
        assert await timeout.wait(done_after(1), start + 300)
        with pytest.raises(TimeoutError):
            await timeout.wait(done_after(100), start + 3)
        assert now() - start == pytest.approx(3)

    @virtual_time
    async def test_does_not_disturb_the_task_between_two_waits(self) -> None:
        timeout, start = ReusableTimeout(), now()
        assert await timeout.wait(done_after(1), start + 10)
        await asyncio.sleep(100)
        assert await timeout.wait(done_after(5), now() + 10) == "done"
        with pytest.raises(TimeoutError):
            await timeout.wait(done_after(100), now() + 10)
        assert now() - start == pytest.approx(116)

    @virtual_time
    async def test_many_waits_set_few_timers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loop = asyncio.get_running_loop()
        timers: list[float] = []
        call_at: Callable[..., asyncio.TimerHandle] = loop.call_at

        def counted(when: float, callback: Any, *args: Any, **options: Any) -> asyncio.TimerHandle:
            if isinstance(getattr(callback, "__self__", None), DeadlineTimer):
                timers.append(when)
            return call_at(when, callback, *args, **options)

        monkeypatch.setattr(loop, "call_at", counted)
        timeout = ReusableTimeout()
        for _ in range(1000):
            assert await timeout.wait(done_after(0.5), now() + 100)
        assert 1 <= len(timers) <= 6

    @virtual_time
    async def test_passes_on_a_timeout_error_of_the_awaitable(self) -> None:
        async def fails() -> None:
            raise TimeoutError("the socket's")

        timeout = ReusableTimeout()
        with pytest.raises(TimeoutError, match="the socket's"):
            await timeout.wait(fails(), now() + 10)
        assert not timeout.has_expired

    @virtual_time
    @pytest.mark.parametrize("seconds", [5, 10])
    async def test_cancellation_of_the_task_wins_over_the_deadline(self, seconds: float) -> None:
        timeout = ReusableTimeout()
        waiting = asyncio.create_task(timeout.wait(done_after(100), now() + 10))
        await asyncio.sleep(seconds)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        timeout.close()

    @virtual_time
    async def test_returns_a_result_that_comes_despite_the_deadline(self) -> None:
        async def ignores_cancellation() -> str:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(100)
            return "done"

        timeout = ReusableTimeout()
        assert await timeout.wait(ignores_cancellation(), now() + 10) == "done"
        assert timeout.has_expired
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()

    @virtual_time
    async def test_closed_it_leaves_no_timer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        handles: list[asyncio.TimerHandle] = []
        loop = asyncio.get_running_loop()
        call_at = loop.call_at

        def recorded(*args: Any, **options: Any) -> asyncio.TimerHandle:
            handles.append(call_at(*args, **options))
            return handles[-1]

        timeout = ReusableTimeout()
        assert await timeout.wait(done_after(1), now() + 10)
        monkeypatch.setattr(loop, "call_at", recorded)
        timeout.close()
        timeout.close()
        assert await timeout.wait(done_after(1), now() + 10)
        timeout.close()
        assert handles
        assert all(handle.cancelled() for handle in handles if handle.when() > now())
