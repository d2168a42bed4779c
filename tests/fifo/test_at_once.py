"""fifo/queue.py: few items are worked off in the step that adds them, if somebody waits who can do so."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

from aioinformer import Delta, DeltaType, FIFOClosedError, RequeueError
from aioinformer.fifo.queue import MOST_AT_ONCE
from aioinformer.tasks import finish

from ..samples import pod
from ..steps import turns
from .queues import KINDS, Deltas, Fifo, Gate, ignore, is_free

ADDED = DeltaType.ADDED


@pytest.fixture(params=[*KINDS])
def fifo(request: pytest.FixtureRequest) -> Fifo:
    return KINDS[request.param]()


async def waiting(fifo: Fifo, at_once: Any) -> asyncio.Task[int]:
    popping = asyncio.create_task(fifo.pop_batch(ignore, ignore, at_once))
    await turns(2)
    return popping


async def test_they_are_worked_off_when_apply_returns(fifo: Fifo) -> None:
    seen: list[str] = []
    popping = await waiting(fifo, lambda deltas, initial: seen.extend(each.object.name for each in deltas))
    await fifo.apply([Delta(ADDED, pod("a")), Delta(ADDED, pod("b"))])
    assert seen == ["a", "b"]
    assert (len(fifo), fifo.unfinished, fifo.worked_off, fifo.high_water) == (0, 0, 2, 2)
    await turns(2)
    await fifo.add(pod("c"))
    assert seen == ["a", "b", "c"]
    assert fifo.worked_off == 3
    fifo.close()
    with pytest.raises(FIFOClosedError):
        await popping


async def test_what_is_put_back_is_left_to_the_pop(fifo: Fifo) -> None:
    def refuse(deltas: list[Delta], is_in_initial_list: bool) -> None:
        deltas.clear()
        raise RequeueError

    def process(deltas: list[Delta], is_in_initial_list: bool) -> None:
        seen.extend(each.object.name for each in deltas)

    seen: list[str] = []
    popping = asyncio.create_task(fifo.pop_batch(process, process, refuse))
    await turns(2)
    await fifo.apply([Delta(ADDED, pod("a")), Delta(ADDED, pod("b"))])
    assert len(fifo) == 2
    assert await popping == 2
    assert seen == ["a", "b"]
    assert fifo.worked_off == 4  # what went back counts each time
    assert await is_free(fifo)


async def test_one_of_many_that_wait(fifo: Fifo) -> None:
    seen: list[int] = []
    poppers = [
        asyncio.create_task(fifo.pop_batch(ignore, ignore, at_once))
        for at_once in [lambda deltas, initial, n=n: seen.append(n) for n in range(3)]
    ]
    await turns(2)
    await fifo.add(pod("a"))
    assert seen == [0]
    poppers[0].cancel()
    await turns(2)
    await fifo.add(pod("b"))
    await turns(4)
    # It is left to the others; as of CPython 3.13 the end of the one has woken another, which takes it at once.
    wakes_another = sys.version_info >= (3, 13)
    assert seen == ([0, 1] if wakes_another else [0])
    assert [popper.done() for popper in poppers[1:]].count(True) == (0 if wakes_another else 1)
    await finish(*poppers)
    assert await is_free(fifo)


async def test_many_are_left_to_the_pop(fifo: Fifo) -> None:
    popping = await waiting(fifo, lambda deltas, initial: pytest.fail("they are many"))
    count = MOST_AT_ONCE + 1
    await fifo.apply([Delta(ADDED, pod(f"p{number}")) for number in range(count)])
    assert len(fifo) == count
    assert await popping == count


async def test_while_another_processes_they_are_left(fifo: Fifo) -> None:
    gate = Gate()
    await fifo.add(pod("a"))
    first = asyncio.create_task(fifo.pop(gate))
    await gate.entered.wait()
    second = asyncio.create_task(fifo.pop_batch(ignore, ignore, lambda deltas, initial: None))
    adding = asyncio.create_task(fifo.add(pod("b")))
    await turns(4)
    assert not adding.done()
    gate.let_go.set()
    await asyncio.gather(first, adding)
    await turns(4)
    assert fifo.worked_off == 2
    await finish(second)


async def test_a_list_is_left_to_the_pop(fifo: Fifo) -> None:
    popping = await waiting(fifo, lambda deltas, initial: pytest.fail("it is a list"))
    await fifo.replace([pod("a")], "1")
    assert await popping == 1
    assert fifo.has_synced()


@pytest.mark.parametrize("count", range(4))
async def test_cancelled_what_was_done_stays_done(fifo: Fifo, count: int) -> None:
    seen: list[str] = []
    popping = await waiting(fifo, lambda deltas, initial: seen.extend(each.object.name for each in deltas))
    await fifo.add(pod("a"))
    await turns(count)
    popping.cancel()
    await asyncio.wait([popping])
    assert seen == ["a"]
    assert len(fifo) == fifo.unfinished == 0
    assert await is_free(fifo)


async def test_what_it_raises_leaves_the_queue_free(fifo: Fifo) -> None:
    def fail(deltas: Deltas, initial: bool) -> None:
        raise ZeroDivisionError

    popping = await waiting(fifo, fail)
    with pytest.raises(ZeroDivisionError):
        await fifo.add(pod("a"))
    assert len(fifo) == fifo.unfinished == 0
    await finish(popping)
    assert await is_free(fifo)
