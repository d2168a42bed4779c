"""operator/runs.py: deadlines of reconciles, with one timer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from aioinformer._core.tasks import finish
from aioinformer.operator.runs import CANCEL_GRACE, Run, Runs

from ..virtual_time import VirtualTimeLoop, virtual_time

Begin = Callable[..., asyncio.Task[None]]


@asynccontextmanager
async def long_runs(timeout: float | None) -> AsyncIterator[tuple[Runs, Begin, dict[str, float]]]:
    """Runs, a function that starts a very long one, and the seconds after which each was cancelled."""
    runs = Runs(timeout, lambda run: None)
    took: dict[str, float] = {}
    tasks: list[asyncio.Task[None]] = []
    now = asyncio.get_running_loop().time

    async def reconcile(key: str, ends_in: float) -> None:
        task = asyncio.current_task()
        assert task is not None
        run = Run(key, task, now())
        runs.begin(run)
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            took[key] = now() - run.started
            if ends_in:
                with suppress(asyncio.CancelledError):  # the end of the test
                    await asyncio.sleep(ends_in)
        finally:
            runs.end(run)

    def begin(key: str, ends_in: float = 0.0) -> asyncio.Task[None]:
        tasks.append(asyncio.create_task(reconcile(key, ends_in)))
        return tasks[-1]

    try:
        yield runs, begin, took
    finally:
        await finish(*tasks)
        runs.close()


@virtual_time
async def test_each_run_is_cancelled_at_its_deadline() -> None:
    """Including a run that starts just after another was cancelled, whose grace period is far longer."""
    async with long_runs(1.0) as (_, begin, took):
        for number in range(5):
            await asyncio.wait({begin(f"in-turn-{number}")})
        for number in range(5):
            begin(f"together-{number}")
            await asyncio.sleep(0.3)
        await asyncio.sleep(2)
        assert list(took.values()) == [pytest.approx(1.0)] * 10


@virtual_time
async def test_run_that_ignores_cancellation_is_stuck_after_the_grace_period() -> None:
    async with long_runs(1.0) as (runs, begin, took):
        begin("stubborn", ends_in=100.0)
        await asyncio.sleep(CANCEL_GRACE - 0.5)
        for number in range(3):
            await asyncio.wait({begin(f"other-{number}")})
            assert [run.key for run in runs.stuck] == ["stubborn"] * (number > 0)
        assert list(took.values()) == [pytest.approx(1.0)] * 4


@virtual_time
async def test_grace_period_starts_with_the_cancellation() -> None:
    """Even if the cancellation is late."""
    async with long_runs(1.0) as (runs, begin, took):
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualTimeLoop)
        begin("late", ends_in=CANCEL_GRACE / 2)
        await asyncio.sleep(0)
        loop.work(3 * CANCEL_GRACE)
        await asyncio.sleep(1)
        assert took
        assert runs.stuck == []
        await asyncio.sleep(CANCEL_GRACE)
        assert len(runs) == 0


@virtual_time
async def test_run_without_a_timeout_is_not_cancelled() -> None:
    async with long_runs(None) as (runs, begin, took):
        begin("long")
        await asyncio.sleep(1000)
        assert (len(runs), took) == (1, {})


async def test_tiny_timeouts_are_accepted() -> None:
    """uvloop has no timer for them; its handle does not know when it is due."""
    async with long_runs(0.0004) as (runs, begin, took):
        for number in range(20):
            await asyncio.wait({begin(str(number))})
        assert len(took) == 20
        assert len(runs) == 0
