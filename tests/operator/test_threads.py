"""operator/threads.py: a call ends only after its thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar

import pytest

from aioinformer import WorkQueue
from aioinformer.operator import in_thread
from aioinformer.operator.workers import Workers

from ..steps import run_during, turns, until


class Blocking:
    """Blocks until the test lets it end.

    Attributes:
        at_work: Threads that block now.
        most: The most threads that blocked at once.
    """

    def __init__(self, end_by: Callable[[], object] = lambda: None) -> None:
        self._end_by = end_by
        self._may_end = threading.Event()
        self._counting = threading.Lock()
        self.at_work = self.most = 0

    def __call__(self) -> object:
        with self._counting:
            self.at_work += 1
            self.most = max(self.most, self.at_work)
        try:
            assert self._may_end.wait(60)
            return self._end_by()
        finally:
            with self._counting:
                self.at_work -= 1

    def end(self) -> None:
        """Let all calls end."""
        self._may_end.set()


def fail() -> None:
    raise ValueError("no such bucket")


async def test_in_thread_returns_or_raises_what_the_function_does() -> None:
    caller = ContextVar("caller", default="unknown")
    caller.set("me")

    def who(greeting: str, *, times: int) -> str:
        assert threading.current_thread() is not threading.main_thread()
        return f"{greeting} {caller.get()}" * times

    assert await in_thread(who, "hello", times=2) == "hello mehello me"
    with pytest.raises(ValueError, match="no such bucket"):
        await in_thread(fail)


async def test_stop_iteration_becomes_a_runtime_error() -> None:
    """An asyncio future cannot carry it."""
    async with asyncio.timeout(10):
        with pytest.raises(RuntimeError) as caught:
            await in_thread(next, iter(()))
    assert isinstance(caught.value.__cause__, StopIteration)


async def test_each_call_has_its_own_thread_at_once() -> None:
    """A call that waits for a free thread could start long after its cancellation."""
    blocking = Blocking()
    tasks = [asyncio.create_task(in_thread(blocking)) for _ in range(40)]
    await until(lambda: blocking.at_work == 40)
    blocking.end()
    await asyncio.gather(*tasks)


async def test_cancelled_call_waits_for_its_thread() -> None:
    blocking = Blocking()
    task = asyncio.create_task(in_thread(blocking))
    await until(lambda: blocking.at_work)
    for _ in range(3):
        task.cancel()
        await turns(5)
        assert (task.done(), blocking.at_work) == (False, 1)
    blocking.end()
    await asyncio.wait({task})
    assert (task.cancelled(), blocking.at_work) == (True, 0)


async def test_error_after_a_cancellation_is_raised() -> None:
    blocking = Blocking(fail)
    task = asyncio.create_task(in_thread(blocking))
    await until(lambda: blocking.at_work)
    task.cancel()
    await turns(5)
    blocking.end()
    with pytest.raises(ValueError, match="no such bucket"):
        await task


async def test_object_is_not_reconciled_beside_a_thread_past_its_timeout() -> None:
    blocking = Blocking()
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    workers = Workers("tests", queue, lambda key: in_thread(blocking), {"concurrency": 2, "timeout": 0.01})
    async with run_during(workers.run()):
        await until(lambda: workers.runs.state and workers.runs.state[0].overdue)
        queue.add("a")
        await turns(20)
        assert (blocking.at_work, workers.counts.timeout) == (1, 0)
        blocking.end()
        await until(lambda: workers.counts.timeout)
    assert blocking.most == 1


async def test_stopped_workers_end_after_their_threads() -> None:
    blocking = Blocking()
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    workers = Workers("tests", queue, lambda key: in_thread(blocking), {"timeout": None})
    working = asyncio.create_task(workers.run())
    await until(lambda: blocking.at_work)
    working.cancel()
    await turns(20)
    assert (working.done(), blocking.at_work) == (False, 1)
    blocking.end()
    await asyncio.wait({working})
    assert (blocking.at_work, workers.counts.interrupted) == (0, 1)
