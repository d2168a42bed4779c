"""workqueue/buckets.py: the highest priority first, without starving the others."""

from __future__ import annotations

import math
from typing import Any

import pytest

from aioinformer import ConfigError, WorkQueue

LOW = -100


async def take_all(queue: WorkQueue[str], most: int = 10**9) -> list[str]:
    items: list[str] = []
    while len(queue) and len(items) < most:
        items.append(item := await queue.get())
        queue.done(item)
    return items


async def test_highest_priority_goes_first_and_each_in_order() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for item, priority in {"a": 0, "b": LOW, "c": 5, "d": 0, "e": 5}.items():
        queue.add(item, priority)
    assert queue.state.depths == {5: 2, 0: 2, LOW: 1}
    assert str(queue.state).startswith("5 queued (2 at 5, 2 at 0, 1 at -100)")
    assert await take_all(queue) == ["c", "e", "a", "d", "b"]


async def test_higher_priority_moves_an_item_to_the_end_of_that_line() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for item in "abc":
        queue.add(item, LOW)
    queue.add("x")
    queue.add("b")
    assert queue.state.depths == {0: 2, LOW: 2}
    assert await take_all(queue) == ["x", "b", "a", "c"]


async def test_lower_priority_changes_nothing() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a", 5)
    queue.add("a", LOW)
    queue.add("b", 1)
    assert await take_all(queue) == ["a", "b"]


async def test_item_that_returns_to_a_line_goes_to_its_end() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a", LOW)
    queue.add("b", LOW)
    queue.add("a", 0)
    assert await take_all(queue, 1) == ["a"]
    queue.add("a", LOW)
    assert await take_all(queue) == ["b", "a"]


async def test_highest_priority_counts_for_additions_during_processing() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a", LOW)
    assert await queue.get() == "a"
    assert queue.priority_of("a") == LOW
    for priority in (LOW, 5, 0):
        queue.add("a", priority)
    queue.done("a")
    assert queue.state.depths == {5: 1}


async def test_delayed_item_keeps_the_highest_priority() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 60, LOW)
    queue.add_after("a", 70, 5)
    queue.add_after("a", 0.0, LOW)
    assert queue.state.depths == {LOW: 1}
    queue.shut_down()


async def test_fresh_changes_do_not_starve_the_initial_list() -> None:
    """controller-runtime's #3496: items at -100 wait as long as others keep coming."""
    queue: WorkQueue[str] = WorkQueue(ageing=10)
    for number in range(100):
        queue.add(f"initial-{number}", LOW)
    handed_out = []
    for number in range(110):
        queue.add(f"fresh-{number}")
        queue.add(f"fresh-{number}-too")
        handed_out += await take_all(queue, 1)
    initial = [item for item in handed_out if item.startswith("initial")]
    assert initial == [f"initial-{number}" for number in range(10)]


async def test_the_initial_list_does_not_delay_a_fresh_change() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for number in range(10_000):
        queue.add(f"initial-{number}", LOW)
    for number in range(100):
        assert await take_all(queue, 5)
        queue.add(f"fresh-{number}")
        assert f"fresh-{number}" in await take_all(queue, 2), "one of a lower priority may go before it"


async def test_each_of_many_priorities_gets_its_turn() -> None:
    queue: WorkQueue[str] = WorkQueue(ageing=5)
    for priority in range(4):
        for number in range(100):
            queue.add(f"{priority}-{number}", priority)
    first = await take_all(queue, 60)
    shares = {priority: sum(item.startswith(str(priority)) for item in first) for priority in range(4)}
    assert min(shares.values()) >= 60 // (5 + 3)
    assert shares[3] > 30


async def test_more_priorities_than_ageing_do_not_starve_the_highest() -> None:
    queue: WorkQueue[str] = WorkQueue(ageing=1)
    for priority in range(5):
        for number in range(100):
            queue.add(f"{priority}-{number}", priority)
    assert [item[0] for item in await take_all(queue, 10)] == [*"43210", *"43210"]


@pytest.mark.parametrize("priority", [None, "5", 0.5, math.nan])
async def test_priority_must_be_a_whole_number(priority: Any) -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("processed")
    await queue.get()
    for item in ("a", "processed"):
        with pytest.raises(ConfigError, match="priority must be a whole number"):
            queue.add(item, priority)
        with pytest.raises(ConfigError, match="priority must be a whole number"):
            queue.add_after(item, 10, priority)
    queue.done("processed")
    queue.add("b")
    assert await take_all(queue) == ["b"]
    assert (queue.state.depth, queue.state.delayed) == (0, 0)


async def test_unused_priorities_are_dropped() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for priority in range(1000):
        queue.add("a", priority)
        assert await take_all(queue) == ["a"]
    assert len(queue._buckets._order) < 20


async def test_outdated_entries_do_not_pile_up() -> None:
    queue: WorkQueue[str] = WorkQueue(ageing=10**9)
    queue.add("first", LOW)
    for _ in range(10_000):
        queue.add("a", LOW)
        queue.add("a", 0)
        assert await take_all(queue, 1) == ["a"]
    assert len(queue._buckets._buckets[LOW].line) < 200
    queue.add("last", LOW)
    assert await take_all(queue) == ["first", "last"]


@pytest.mark.parametrize("ageing", [0, -1, 1.5, True, "2"])
def test_ageing_must_be_at_least_one(ageing: int) -> None:
    with pytest.raises(ConfigError, match="ageing"):
        WorkQueue[str](ageing=ageing)


async def test_priorities_alternate_with_ageing_one() -> None:
    queue: WorkQueue[str] = WorkQueue(ageing=1)
    for number in range(3):
        queue.add(f"low-{number}", LOW)
        queue.add(f"high-{number}")
    assert await take_all(queue) == ["high-0", "low-0", "high-1", "low-1", "high-2", "low-2"]
