"""Slices of long work, beside other work of the event loop."""

from __future__ import annotations

import asyncio
from time import perf_counter

from aioinformer._core.coop import OTHERS, SLICE, Budget

from ..steps import turns


def work(seconds: float) -> None:
    end = perf_counter() + seconds
    while perf_counter() < end:
        pass


async def slices(used: list[float], count: int) -> None:
    """Do long work, and note the time of each slice."""
    budget = Budget()
    for _ in range(count):
        began = perf_counter()
        while not budget.is_spent():
            pass
        used.append(perf_counter() - began)
        await budget.pause()


async def others(used: list[float]) -> None:
    """Do short work in each iteration."""
    while True:
        began = perf_counter()
        work(0.0003)
        used.append(perf_counter() - began)
        await asyncio.sleep(0)


async def test_other_work_gets_a_multiple_of_the_time_in_a_busy_loop() -> None:
    ours: list[float] = []
    theirs: list[float] = []
    task = asyncio.create_task(others(theirs))
    await slices(ours, 20)
    task.cancel()
    assert sum(theirs) > (OTHERS - 1) * min(sum(ours), 20 * SLICE)


async def test_concurrent_work_shares_that_time() -> None:
    several: list[list[float]] = [[] for _ in range(4)]
    theirs: list[float] = []
    task = asyncio.create_task(others(theirs))
    await asyncio.gather(*(slices(ours, 20) for ours in several))
    task.cancel()
    assert sum(theirs) > (OTHERS - 1) * min(sum(map(sum, several)), 20 * SLICE)
    assert all(len(ours) == 20 for ours in several)


async def test_work_goes_on_at_once_where_the_loop_is_idle() -> None:
    budget, iterations = Budget(over=True), 0

    async def count() -> None:
        nonlocal iterations
        while True:
            iterations += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(count())
    await turns(2)
    before, fewest = iterations, 1000
    for _ in range(50):  # the machine may stop the process within a pause
        before = iterations
        await budget.pause()
        fewest = min(fewest, iterations - before)
    task.cancel()
    assert fewest == 1


async def pause_after_work() -> None:
    budget = Budget()
    work(SLICE)
    await budget.pause()


async def test_work_goes_on_when_the_loop_becomes_idle() -> None:
    asyncio.get_running_loop().call_soon(work, 0.0002)
    async with asyncio.timeout(5):
        await pause_after_work()


async def test_cancelled_pause_does_not_stop_others() -> None:
    first, second = (asyncio.create_task(pause_after_work()) for _ in range(2))
    busy = asyncio.create_task(others([]))
    await turns(3)
    assert not first.done()
    first.cancel()
    async with asyncio.timeout(5):
        await second
    busy.cancel()
    assert first.cancelled()


def test_pause_in_a_loop_that_was_closed_does_not_block_the_next_one() -> None:
    async def begin() -> list[asyncio.Task[None]]:
        tasks = [asyncio.create_task(pause_after_work()), asyncio.create_task(others([]))]
        await turns(3)
        return tasks

    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda loop, context: None)  # it gets tasks that never end
    tasks = loop.run_until_complete(begin())
    assert not tasks[0].done()
    loop.close()

    async def next_one() -> None:
        busy = asyncio.create_task(others([]))
        async with asyncio.timeout(5):
            await pause_after_work()
        busy.cancel()

    asyncio.run(next_one())
