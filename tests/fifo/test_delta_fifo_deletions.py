"""fifo/delta_fifo.py: which deletions the queue keeps. Corners C1 to C4."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioinformer import DeltaFIFO, Store
from aioinformer.cache import Delta

from .samples import ADDED, DELETED, drain, obj, store_of, tombstone


async def test_first_of_two_real_deletions_is_kept_c1() -> None:
    fifo = DeltaFIFO()
    await fifo.add(obj("a"))
    await fifo.delete(obj("a", 2))
    await fifo.delete(obj("a", 3))
    assert await drain(fifo) == [[Delta(ADDED, obj("a")), Delta(DELETED, obj("a", 2))]]


async def test_real_deletion_replaces_a_tombstone_c1() -> None:
    fifo = DeltaFIFO()
    await fifo.add(obj("a"))
    await fifo.delete(tombstone("a", obj("a")))
    await fifo.delete(obj("a", 2))
    await fifo.delete(obj("a", 3))
    assert await drain(fifo) == [[Delta(ADDED, obj("a")), Delta(DELETED, obj("a", 2))]]


async def test_tombstone_after_a_real_deletion_is_dropped_c1() -> None:
    fifo = DeltaFIFO()
    await fifo.add(obj("a"))
    await fifo.delete(obj("a", 2))
    await fifo.delete(tombstone("a", obj("a")))
    assert await drain(fifo) == [[Delta(ADDED, obj("a")), Delta(DELETED, obj("a", 2))]]


async def test_deletions_that_are_not_adjacent_are_both_kept_c1() -> None:
    fifo = DeltaFIFO()
    for verb in (fifo.add, fifo.delete, fifo.add, fifo.delete):
        await verb(obj("a"))
    assert [delta.type for delta in (await drain(fifo))[0]] == [ADDED, DELETED, ADDED, DELETED]


async def test_delete_of_unknown_key_queues_nothing_c2() -> None:
    """C2 TestDeltaFIFO_enqueueingNoLister."""
    for known_objects in (None, store_of(obj("b"))):
        fifo = DeltaFIFO(known_objects=known_objects)
        assert not fifo.has_synced()
        await fifo.delete(obj("a"))
        await fifo.delete(tombstone("a", None))
        assert len(fifo) == 0
        assert fifo.has_synced()  # the queue counts as populated


async def test_delete_of_known_key_is_queued_c3() -> None:
    """C3 TestDeltaFIFO_enqueueingWithLister."""
    fifo = DeltaFIFO(known_objects=store_of(obj("a")))
    await fifo.delete(obj("a", 2))
    assert await drain(fifo) == [[Delta(DELETED, obj("a", 2))]]


async def test_delete_of_queued_key_is_queued_c4() -> None:
    """C4 TestDeltaFIFO_DeleteExistingNonPropagated."""
    fifo = DeltaFIFO(known_objects=store_of())
    await fifo.add(obj("a", 1))
    await fifo.delete(obj("a", 2))
    assert await drain(fifo) == [[Delta(ADDED, obj("a", 1)), Delta(DELETED, obj("a", 2))]]


@pytest.mark.parametrize("failure", [ConnectionError, asyncio.CancelledError])
async def test_deletion_is_kept_if_known_objects_raise(failure: type[BaseException]) -> None:
    class Broken(Store[Any]):
        def get_by_key(self, key: str) -> Any:
            raise failure

    fifo = DeltaFIFO(known_objects=Broken())
    await fifo.apply([Delta(ADDED, obj("a")), Delta(DELETED, obj("b")), Delta(ADDED, obj("c"))])
    assert fifo.list_keys() == ["ns/a", "ns/b", "ns/c"]


async def test_delta_type_may_be_a_string() -> None:
    fifo = DeltaFIFO()
    await fifo.apply([Delta("Deleted", obj("a"))])  # type: ignore[arg-type]
    assert len(fifo) == 0
    await fifo.apply([Delta("Added", obj("a")), *[Delta("Deleted", obj("a", n)) for n in (2, 3)]])  # type: ignore[arg-type]
    assert await drain(fifo) == [[Delta(ADDED, obj("a")), Delta(DELETED, obj("a", 2))]]
