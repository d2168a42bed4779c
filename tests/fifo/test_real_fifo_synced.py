"""fifo/real_fifo.py: when the first list counts as processed. Corners C21, C22 and C28."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from aioinformer import RealFIFO
from aioinformer.errors import RequeueError

from ..steps import turns
from .samples import Deltas, by_default, obj, raise_error, real, store_of

KINDS: dict[str, Callable[[], RealFIFO]] = {
    "one by one": lambda: real(store_of()),
    "whole": real,
    "default": by_default,
}


@pytest.fixture(params=[*KINDS.values()], ids=[*KINDS])
def fifo(request: pytest.FixtureRequest) -> RealFIFO:
    made: RealFIFO = request.param()
    return made


async def pop_one(fifo: RealFIFO) -> bool:
    """Pop a delta, and return whether it was in the initial list."""
    initial: list[bool] = []
    await fifo.pop(lambda deltas, is_initial: initial.append(is_initial))
    return initial[0]


async def test_not_synced_before_the_first_write(fifo: RealFIFO) -> None:
    assert not fifo.has_synced()
    await fifo.resync()
    assert not fifo.has_synced()


@pytest.mark.parametrize("verb", ["add", "update", "delete"])
async def test_synced_if_first_verb_is_not_replace(fifo: RealFIFO, verb: str) -> None:
    """TestRealFIFO_HasSynced."""
    await getattr(fifo, verb)(obj("a"))
    assert fifo.has_synced()
    await fifo.replace([obj("a")], "1")
    assert fifo.has_synced()
    assert [await pop_one(fifo) for _ in range(len(fifo))] == [False] * 2


async def test_empty_list_one_by_one_is_synced_at_once_c21() -> None:
    """C21 TestRealFIFO_HasSynced."""
    fifo = real(store_of())
    await fifo.replace([], "1")
    assert fifo.has_synced()


@pytest.mark.parametrize("make", [real, by_default])
async def test_empty_whole_list_is_synced_after_processing_c21(
    make: Callable[[], RealFIFO],
) -> None:
    """C21."""
    fifo = make()
    await fifo.replace([], "1")
    assert not fifo.has_synced()
    assert await pop_one(fifo)
    assert fifo.has_synced()
    await fifo.wait_synced()


async def test_deletions_of_first_list_count() -> None:
    """TestRealFIFO_HasSyncedCorrectOnDeletion."""
    fifo = real(store_of(obj("x")))
    await fifo.replace([obj("a")], "1")
    for _ in range(2):
        assert not fifo.has_synced()
        assert await pop_one(fifo)
    assert fifo.has_synced()


async def test_object_listed_twice_is_two_deltas() -> None:
    """TestRealFIFO_HasSynced: difference from DeltaFIFO."""
    fifo = real(store_of())
    await fifo.replace([obj("a", 1), obj("a", 2)], "1")
    assert [await pop_one(fifo) for _ in range(2)] == [True, True]
    assert fifo.has_synced()


async def test_bookmark_before_the_first_list_counts_as_initial_c22() -> None:
    """C22: it does not populate the queue, and it counts."""
    fifo = by_default()
    await fifo.bookmark("1")
    assert not fifo.has_synced()
    await fifo.replace([obj("a")], "2")
    await fifo.bookmark("3")
    for _ in range(2):
        assert not fifo.has_synced()
        assert await pop_one(fifo)
    assert fifo.has_synced()
    assert not await pop_one(fifo)


async def test_bookmark_processed_before_the_first_list_does_not_sync_c22() -> None:
    fifo = by_default()
    await fifo.bookmark("1")
    assert await pop_one(fifo)
    assert not fifo.has_synced()
    await fifo.replace([], "2")
    assert not fifo.has_synced()
    assert await pop_one(fifo)
    assert fifo.has_synced()


async def test_first_list_during_the_processing_of_a_bookmark_c22() -> None:
    fifo = by_default()
    await fifo.bookmark("1")

    async def process(deltas: Deltas, initial: bool) -> None:
        assert initial
        await fifo.replace([obj("a")], "2")

    await fifo.pop(process)
    assert not fifo.has_synced()
    assert await pop_one(fifo)
    assert fifo.has_synced()


@pytest.mark.parametrize("is_async", [False, True])
async def test_not_synced_before_process_has_returned_c28(fifo: RealFIFO, is_async: bool) -> None:
    """C28 TestRealFIFO_HasSynced."""
    seen: list[bool] = []

    def process(deltas: Deltas, initial: bool) -> None:
        seen.extend((initial, fifo.has_synced()))

    async def process_later(deltas: Deltas, initial: bool) -> None:
        process(deltas, initial)
        await asyncio.sleep(0)
        process(deltas, initial)

    await fifo.replace([obj("a")], "1")
    waiting = asyncio.create_task(fifo.wait_synced())
    await fifo.pop(process_later if is_async else process)
    assert seen == [True, False] * (2 if is_async else 1)
    assert fifo.has_synced()
    await waiting


async def test_deltas_added_meanwhile_are_not_initial_c28() -> None:
    fifo = by_default()
    await fifo.replace([obj("a")], "1")

    async def process(deltas: Deltas, initial: bool) -> None:
        await fifo.add(obj("b"))
        await fifo.replace([obj("c")], "2")

    await fifo.pop(process)
    assert fifo.has_synced()
    assert [await pop_one(fifo) for _ in range(2)] == [False, False]


async def test_requeued_delta_still_counts(fifo: RealFIFO) -> None:
    await fifo.replace([obj("a")], "1")
    await fifo.add(obj("b"))
    for error in (RequeueError(), RequeueError(ValueError())):
        try:
            await fifo.pop(raise_error(error))
        except ValueError:
            assert error.cause is not None
        assert not fifo.has_synced()
    popping = asyncio.create_task(fifo.pop(lambda deltas, initial: asyncio.sleep(1)))
    await turns(3)
    popping.cancel()
    await asyncio.wait({popping})
    assert not fifo.has_synced()
    assert await pop_one(fifo)
    assert fifo.has_synced()


async def test_failed_delta_counts_as_processed(fifo: RealFIFO) -> None:
    await fifo.replace([obj("a")], "1")
    with pytest.raises(ValueError):
        await fifo.pop(raise_error(ValueError()))
    assert fifo.has_synced()


async def test_later_lists_keep_it_synced(fifo: RealFIFO) -> None:
    await fifo.replace([obj("a")], "1")
    assert await pop_one(fifo)
    await fifo.replace([obj("a"), obj("b")], "2")
    assert fifo.has_synced()
    initial: list[Any] = [await pop_one(fifo) for _ in range(len(fifo))]
    assert not any(initial)
