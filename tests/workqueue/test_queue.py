"""workqueue/queue.py: each item is processed once, by one worker at a time; shutdown; waiting workers."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from aioinformer import ConfigError, WorkQueue
from aioinformer._core.tasks import finish
from aioinformer.errors import QueueShutDownError, WorkQueueError
from aioinformer.workqueue import ItemExponentialFailureRateLimiter, QueueMetrics

from ..steps import run_during, turns
from ..virtual_time import settle, virtual_time

Queue = WorkQueue[str]


def queue_of(*items: str) -> Queue:
    queue = Queue(name="tests")
    for item in items:
        queue.add(item)
    return queue


async def take_all(queue: Queue) -> list[str]:
    """Get and finish all queued items at once."""
    items = []
    while len(queue):
        items.append(item := await queue.get())
        queue.done(item)
    return items


async def test_item_added_repeatedly_is_handed_out_once() -> None:
    queue = queue_of("a", "b", "a", "c", "b")
    assert len(queue) == 3
    assert await take_all(queue) == ["a", "b", "c"]


async def test_item_added_during_processing_is_queued_after_done_c84() -> None:
    """TestReinsert, TestCollapseWhileProcessing."""
    queue = queue_of("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("a")
    queue.add("b")
    assert len(queue) == 1
    assert await queue.get() == "b"
    assert len(queue) == 0
    queue.done("a")
    assert await queue.get() == "a"
    queue.done("a")
    queue.done("b")
    assert len(queue) == 0
    assert queue.state.processing == 0


async def test_item_added_during_processing_goes_behind_waiting_items() -> None:
    queue = WorkQueue[str]()
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.add("b")
    queue.done("a")
    queue.add("c")
    assert [await queue.get() for _ in range(3)] == ["b", "a", "c"]


async def test_item_is_processed_by_one_worker_at_a_time() -> None:
    queue = queue_of()
    at_work: list[str] = []
    worked = 0

    async def work() -> None:
        nonlocal worked
        async for item in queue:
            assert item not in at_work
            at_work.append(item)
            await turns(3)
            at_work.remove(item)
            worked += 1
            queue.done(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(5):
            group.create_task(work())
        for _ in range(50):
            for item in "abc":
                queue.add(item)
            await turns(1)
        await queue.shut_down_with_drain()
    assert worked >= 3 * 10


async def test_done_without_get_is_an_error() -> None:
    queue = queue_of("a")
    for ask in (queue.done, queue.priority_of):
        with pytest.raises(WorkQueueError, match="'a' is not in process"):
            ask("a")
    await queue.get()
    queue.done("a")
    with pytest.raises(WorkQueueError):
        queue.done("a")


async def test_length_counts_waiting_items() -> None:
    """TestLen; W25: delayed items are not counted, but the state shows them."""
    queue = queue_of("a", "b")
    queue.add_after("c", 60)
    await queue.get()
    state = queue.state
    assert (len(queue), state.depth, state.processing, state.delayed) == (1, 1, 1, 1)
    assert str(state) == "1 queued, 1 in process, 1 delayed"
    assert bool(queue_of()) is True
    queue.done("a")
    queue.shut_down()


async def test_item_wakes_one_worker() -> None:
    queue = queue_of()
    workers = [asyncio.create_task(queue.get()) for _ in range(3)]
    await turns(1)
    assert queue.state.waiting_workers == 3
    queue.add("a")
    await turns(2)
    assert [worker.done() for worker in workers] == [True, False, False]
    await finish(*workers)
    assert queue.state.waiting_workers == 0


async def test_woken_worker_that_is_cancelled_wakes_the_next() -> None:
    queue = queue_of()
    first, second = (asyncio.create_task(queue.get()) for _ in range(2))
    await turns(1)
    queue.add("a")
    first.cancel()
    assert await second == "a"
    await asyncio.wait({first})
    assert first.cancelled()


async def test_processing_calls_done_after_a_failure() -> None:
    queue = queue_of("a")
    with pytest.raises(ValueError):
        async with queue.processing() as item:
            assert item == "a"
            queue.add("a")
            raise ValueError
    assert await take_all(queue) == ["a"]


async def test_async_for_ends_with_the_queue() -> None:
    queue = queue_of("a", "b")
    queue.shut_down()
    seen = []
    async for item in queue:
        seen.append(item)
        queue.done(item)
    assert seen == ["a", "b"]
    with pytest.raises(QueueShutDownError, match="tests"):
        await queue.get()


async def test_shut_down_queue_hands_out_waiting_items_and_accepts_no_more() -> None:
    """TestBasic."""
    queue = queue_of("a")
    queue.add_after("late", 60)
    queue.shut_down()
    queue.add("b")
    queue.add_after("c", 0)
    queue.add_rate_limited("d")
    assert queue.is_shutting_down
    assert await take_all(queue) == ["a"]
    assert queue.state.delayed == 0


async def test_shut_down_wakes_all_waiting_workers() -> None:
    queue = queue_of()
    workers = [asyncio.create_task(queue.get()) for _ in range(3)]
    await turns(1)
    queue.shut_down()
    assert queue.state.waiting_workers == 0
    results = await asyncio.gather(*workers, return_exceptions=True)
    assert {type(result) for result in results} == {QueueShutDownError}


async def test_drain_waits_for_queued_items_c85_w25() -> None:
    """Upstream returns at once with two items queued and none in process."""
    queue = queue_of("a", "b")
    draining = asyncio.create_task(queue.shut_down_with_drain())
    await turns(3)
    assert not draining.done()
    for expected in "ab":
        assert await queue.get() == expected
        await turns(3)
        assert not draining.done()
        queue.done(expected)
    await draining


async def test_drain_waits_for_items_added_again_c85() -> None:
    """TestQueueDrainageUsingShutDownWithDrainWithDirtyItem."""
    queue = queue_of("a")
    await queue.get()
    queue.add("a")
    async with run_during(queue.shut_down_with_drain()) as draining:
        await turns(1)
        queue.done("a")
        await turns(2)
        assert not draining.done()
        assert await queue.get() == "a"
        queue.done("a")
        await draining


async def test_shut_down_ends_a_drain_c85() -> None:
    """TestForceQueueShutdownUsingShutDown."""
    queue = queue_of("a", "b")
    await queue.get()
    async with run_during(queue.shut_down_with_drain()) as draining:
        await turns(1)
        queue.shut_down()
        await draining
    queue.done("a")


async def test_empty_queue_is_drained_at_once() -> None:
    await queue_of().shut_down_with_drain()


@virtual_time
async def test_earlier_of_two_delays_counts_c86() -> None:
    """TestDeduping, TestAddTwoFireEarly."""
    queue = queue_of()
    loop = asyncio.get_running_loop()
    began = loop.time()
    queue.add_after("a", 50)
    queue.add_after("a", 20)
    queue.add_after("a", 30)
    assert queue.state.delayed == 1
    assert await queue.get() == "a"
    assert loop.time() - began == 20
    queue.done("a")
    await asyncio.sleep(100)
    assert len(queue) == queue.state.delayed == 0


@virtual_time
async def test_plain_add_leaves_a_delay_unchanged_c86() -> None:
    queue = queue_of()
    queue.add_after("a", 20)
    queue.add("a")
    assert await take_all(queue) == ["a"]
    await asyncio.sleep(20)
    await settle()
    assert await take_all(queue) == ["a"]


@virtual_time
async def test_delay_can_be_cancelled_w25() -> None:
    queue = queue_of()
    queue.add_after("a", 20)
    queue.add_after("b", 30)
    assert queue.cancel_delayed("a")
    assert not queue.cancel_delayed("a")
    await asyncio.sleep(40)
    assert await take_all(queue) == ["b"]


@virtual_time
async def test_delayed_items_come_in_the_order_of_their_times() -> None:
    queue = queue_of()
    for item, delay in {"c": 3, "a": 1, "z": 2, "b": 1.5}.items():
        queue.add_after(item, delay)
    await asyncio.sleep(10)
    assert await take_all(queue) == ["a", "b", "z", "c"]


@virtual_time
async def test_delay_of_zero_adds_at_once() -> None:
    queue = queue_of()
    queue.add_after("a", 0)
    queue.add_after("b", -1)
    assert await take_all(queue) == ["a", "b"]


@pytest.mark.parametrize(
    "delay", [float("nan"), float("inf"), pytest.param(10**400, id="10**400"), "1", None, True]
)
async def test_delay_must_be_a_finite_number(delay: float) -> None:
    with pytest.raises(ConfigError, match="delay must be a number of seconds"):
        queue_of().add_after("a", delay)


async def test_discarded_item_is_not_handed_out_and_ends_a_drain() -> None:
    metrics = QueueMetrics[str]()
    queue = WorkQueue[str](metrics=metrics)
    for item in "abc":
        queue.add(item)
    assert queue.discard("b")
    assert not queue.discard("b")
    assert [await queue.get(), await queue.get()] == ["a", "c"]
    assert not queue.discard("a"), "it is being worked on"
    queue.done("a")
    queue.done("c")
    for number in range(1000):
        queue.add(str(number))
        queue.discard(str(number))
    assert (len(queue), metrics.depth, len(metrics._added_at), metrics.queue_duration.count) == (0, 0, 0, 2)
    queue.add("d")
    draining = asyncio.create_task(queue.shut_down_with_drain())
    await asyncio.sleep(0)
    queue.discard("d")
    await asyncio.wait_for(draining, 5)


@virtual_time
async def test_replaced_delays_do_not_pile_up() -> None:
    queue = queue_of()
    for _ in range(10_000):
        queue.add_after("a", 3600)
        queue.add_after("a", 1800)
        queue.cancel_delayed("a")
    queue.add_after("a", 3600)
    assert entries_of(queue) < 200
    await asyncio.sleep(4000)
    assert await take_all(queue) == ["a"]


@virtual_time
async def test_cancelled_delays_do_not_pile_up() -> None:
    queue = queue_of()
    for number in range(10_000):
        queue.add_after(str(number), 3600)
    for number in range(10_000):
        queue.cancel_delayed(str(number))
    assert entries_of(queue) < 200


def entries_of(queue: WorkQueue[str]) -> int:
    return len(queue._delays._entries) + len(queue._delays._old_entries)


@virtual_time
async def test_changing_a_delay_does_not_scan_all_others() -> None:
    """As when a delayed requeue changes at each reconcile."""
    hashed = 0

    class Item:
        def __hash__(self) -> int:
            nonlocal hashed
            hashed += 1
            return id(self)

    queue: WorkQueue[Item] = WorkQueue()
    items = [Item() for _ in range(1000)]
    for _ in range(5):
        for item in items:
            before = hashed
            queue.cancel_delayed(item)
            queue.add_after(item, 600)
            assert hashed - before < 20
    await asyncio.sleep(601)
    assert [await queue.get() for _ in items] == items


@virtual_time
async def test_changed_delays_come_in_the_order_of_their_times() -> None:
    queue, random = queue_of(), Random(1)
    times: dict[str, float] = {}
    for _ in range(20_000):
        item, delay = str(random.randrange(300)), random.uniform(1, 100)
        if random.random() < 0.5:
            queue.cancel_delayed(item)
            times.pop(item, None)
        else:
            queue.add_after(item, delay)
            times[item] = min(delay, times.get(item, delay))
    await asyncio.sleep(101)
    await settle()
    assert await take_all(queue) == sorted(times, key=times.__getitem__)


async def test_many_due_items_do_not_block_the_event_loop() -> None:
    queue: WorkQueue[int] = WorkQueue()
    for number in range(50_000):
        queue.add_after(number, 0.001)
    rounds = 0
    while queue.state.delayed:
        rounds += 1
        await asyncio.sleep(0)
    assert rounds > 5
    assert len(queue) == 50_000


@pytest.mark.parametrize("wrong", [ItemExponentialFailureRateLimiter, lambda item: 1.0, 5])
def test_an_object_that_is_no_rate_limiter_is_refused(wrong: Any) -> None:
    with pytest.raises(
        ConfigError, match=r"rate_limiter must be one such as ItemExponentialFailureRateLimiter\(\)"
    ):
        WorkQueue(wrong)


@virtual_time
async def test_rate_limited_items_wait_longer_each_time() -> None:
    """TestRateLimitingQueue."""
    queue = queue_of()
    delays = [queue.add_rate_limited("a") for _ in range(4)]
    assert delays == pytest.approx([0.005, 0.01, 0.02, 0.04])
    assert queue.num_requeues("a") == 4
    queue.forget("a")
    assert queue.num_requeues("a") == 0
    assert queue.add_rate_limited("a") == pytest.approx(0.005)
    await asyncio.sleep(1)
    assert await take_all(queue) == ["a"]
