"""operator/workers.py: a reconcile that holds the event loop is named. All else is in test_controller.py."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer import WorkQueue, slow_calls
from aioinformer.operator import workers as workers_module
from aioinformer.operator.workers import Workers

from ..steps import running, until


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [0.0]
    for module in (workers_module, slow_calls):
        monkeypatch.setattr(module, "perf_counter", lambda: clock[0])
    return clock


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_reconcile_that_holds_the_loop_is_named(
    caplog: pytest.LogCaptureFixture, clock: list[float], is_async: bool
) -> None:
    """An async one from its second slow call on, as handlers are; also one that fails."""

    def plain(key: str) -> None:
        clock[0] += 0.3 if key.startswith("slow") else 0.01
        if key == "slow-2":
            raise ValueError

    async def later(key: str) -> None:
        await asyncio.sleep(0)
        plain(key)

    queue: WorkQueue[str] = WorkQueue()
    for key in ("quick-1", "slow-1", "quick-2", "slow-2", "last"):
        queue.add(key)
    workers = Workers("tests", queue, later if is_async else plain, 1, None)
    async with running(workers.run()):
        await until(lambda: workers.counts.total == 5)
    key, waiting = ("slow-2", 1) if is_async else ("slow-1", 3)
    warnings = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert warnings == [f"tests: a reconcile held the event loop for 300 ms on {key}, with {waiting} waiting"]


async def test_those_that_wait_hold_nobody_up(caplog: pytest.LogCaptureFixture, clock: list[float]) -> None:
    """Also where several wait at once, each of which is timed by itself."""

    async def reconcile(key: str) -> None:
        for _ in range(10):
            clock[0] += 0.05
            await asyncio.sleep(0)

    queue: WorkQueue[str] = WorkQueue()
    for number in range(10):
        queue.add(str(number))
    workers = Workers("tests", queue, reconcile, 3, None)
    async with running(workers.run()):
        await until(lambda: workers.counts.total == 10)
    assert caplog.messages == []
