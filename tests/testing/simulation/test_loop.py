from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from functools import partial
from random import Random
from time import perf_counter
from typing import Any, TypeVar

import pytest

from aioinformer.testing.simulation import (
    DeadlockError,
    LivelockError,
    VirtualTimeLoop,
    VirtualTimeoutError,
    loop,
)

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T], seed: int | None = None, **options: Any) -> T:
    random = None if seed is None else Random(seed)
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(random, **options)) as runner:
        return runner.run(main)


async def order(count: int = 5) -> list[int]:
    """Return the order in which tasks run that are ready at the same moment."""
    ran: list[int] = []

    async def step(number: int) -> None:
        ran.append(number)

    async with asyncio.TaskGroup() as tasks:
        for number in range(count):
            tasks.create_task(step(number))
    return ran


def test_virtual_hours_take_no_real_time() -> None:
    async def main() -> float:
        began = asyncio.get_running_loop().time()
        await asyncio.sleep(10_000)
        return asyncio.get_running_loop().time() - began

    began = perf_counter()
    assert run(main()) == 10_000
    assert perf_counter() - began < 5


def test_without_a_seed_tasks_run_as_they_became_ready() -> None:
    assert run(order()) == [0, 1, 2, 3, 4]


def test_seed_determines_the_order_of_tasks() -> None:
    orders = {seed: run(order(), seed) for seed in range(200)}
    assert orders == {seed: run(order(), seed) for seed in range(200)}
    assert len({tuple(names) for names in orders.values()}) > 60  # of 120


def test_timers_of_one_moment_are_shuffled_too() -> None:
    async def main() -> list[int]:
        ran: list[int] = []
        at = asyncio.get_running_loop().time() + 1
        for number in range(4):
            asyncio.get_running_loop().call_at(at, ran.append, number)
        await asyncio.sleep(2)
        return ran

    assert len({tuple(run(main(), seed)) for seed in range(200)}) == 24


def _note(ran: list[int], number: int, future: asyncio.Future[None]) -> None:
    ran.append(number)


def test_plain_callbacks_keep_their_order_whatever_the_seed() -> None:
    async def main() -> list[int]:
        ran: list[int] = []
        future = asyncio.get_running_loop().create_future()
        for number in range(5):
            asyncio.get_running_loop().call_soon(ran.append, number)
        for number in range(5, 10):
            future.add_done_callback(partial(_note, ran, number))
        future.set_result(None)
        await asyncio.sleep(1)
        return ran

    for seed in range(50):
        assert run(main(), seed) == list(range(10))


def test_sets_of_tasks_iterate_in_the_same_order() -> None:
    async def main() -> list[str]:
        tasks = {asyncio.create_task(asyncio.sleep(number), name=str(number)) for number in range(20)}
        done, _ = await asyncio.wait(tasks)
        return [task.get_name() for task in done]

    assert run(main(), 1) == run(main(), 1)


def test_a_deadlock_says_what_every_task_awaits() -> None:
    async def waits_for(event: asyncio.Event) -> None:
        await event.wait()

    async def main() -> None:
        other = asyncio.create_task(waits_for(asyncio.Event()), name="other")
        await other

    with pytest.raises(DeadlockError) as raised:
        run(main())
    assert r"other: " in str(raised.value)
    assert "waits_for (test_loop.py:" in str(raised.value)
    assert "Event.wait" in str(raised.value)


def test_livelock_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "STEPS_AT_ONCE", 1000)

    async def main() -> None:
        while True:  # noqa: ASYNC110 - that is the test
            await asyncio.sleep(0)

    with pytest.raises(LivelockError, match=r"test_loop\.py"):
        run(main())


def test_virtual_time_limit_is_an_error() -> None:
    async def main() -> None:
        while True:  # noqa: ASYNC110 - that is the test
            await asyncio.sleep(60)

    with pytest.raises(VirtualTimeoutError, match="after 3600 virtual seconds"):
        run(main(), until=loop.START + 3600)


def test_the_loop_waits_for_threads() -> None:
    async def main() -> tuple[str, list[int]]:
        ticks: list[int] = []
        asyncio.get_running_loop().call_soon(ticks.append, 1)
        return await asyncio.to_thread(lambda: threading.current_thread().name), list(ticks)

    assert run(main()) == ("simulated executor", [])


def test_error_in_a_thread_reaches_the_caller() -> None:
    async def main() -> None:
        await asyncio.to_thread(int, "x")

    with pytest.raises(ValueError, match="invalid literal"):
        run(main())


def test_cancelled_timers_do_not_pile_up() -> None:
    async def main() -> int:
        for _ in range(10_000):
            async with asyncio.timeout(1e6):
                await asyncio.sleep(1)
        running: Any = asyncio.get_running_loop()
        return len(running._scheduled)

    assert run(main()) < 500


def test_timeouts_and_cancellation_work() -> None:
    async def main() -> str:
        try:
            async with asyncio.timeout(5):
                await asyncio.sleep(10)
        except TimeoutError:
            return "timed out"
        return "slept"

    assert {run(main(), seed) for seed in range(20)} == {"timed out"}


def test_unretrieved_exceptions_are_recorded() -> None:
    failures: list[dict[str, Any]] = []

    async def main() -> None:
        running = asyncio.get_running_loop()
        assert isinstance(running, VirtualTimeLoop)
        running.call_soon(lambda: 1 / 0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        failures.extend(running.failures)

    run(main())
    assert [type(failure["exception"]) for failure in failures] == [ZeroDivisionError]
