"""fifo/delta_fifo.py: which deletions are kept. Corners C1 to C4."""

from __future__ import annotations

from typing import Any

from aioinformer import DeltaFIFO, Store
from aioinformer.cache import Delta

from .samples import ADDED, DELETED, drained, known, obj, tombstone


async def test_of_two_real_deletions_the_older_stays_c1() -> None:
    fifo = DeltaFIFO()
    await fifo.add(obj("a"))
    await fifo.delete(obj("a", 2))
    await fifo.delete(obj("a", 3))
    assert await drained(fifo) == [[Delta(ADDED, obj("a")), Delta(DELETED, obj("a", 2))]]


async def test_a_tombstone_gives_way_to_a_real_deletion_c1() -> None:
    fifo = DeltaFIFO()
    await fifo.add(obj("a"))
    await fifo.delete(tombstone("a", obj("a")))
    await fifo.delete(obj("a", 2))
    await fifo.delete(obj("a", 3))
    assert await drained(fifo) == [[Delta(ADDED, obj("a")), Delta(DELETED, obj("a", 2))]]


async def test_a_tombstone_after_a_real_deletion_is_dropped_c1() -> None:
    fifo = DeltaFIFO()
    await fifo.add(obj("a"))
    await fifo.delete(obj("a", 2))
    await fifo.delete(tombstone("a", obj("a")))
    assert await drained(fifo) == [[Delta(ADDED, obj("a")), Delta(DELETED, obj("a", 2))]]


async def test_deletions_apart_both_stay_c1() -> None:
    fifo = DeltaFIFO()
    for verb in (fifo.add, fifo.delete, fifo.add, fifo.delete):
        await verb(obj("a"))
    assert [delta.type for delta in (await drained(fifo))[0]] == [ADDED, DELETED, ADDED, DELETED]


async def test_deleting_what_nobody_knows_queues_nothing_c2() -> None:
    """C2 TestDeltaFIFO_enqueueingNoLister."""
    for known_objects in (None, known(obj("b"))):
        fifo = DeltaFIFO(known_objects=known_objects)
        assert not fifo.has_synced()
        await fifo.delete(obj("a"))
        await fifo.delete(tombstone("a", None))
        assert len(fifo) == 0
        assert fifo.has_synced()  # it counts as populated all the same


async def test_deleting_what_is_only_known_c3() -> None:
    """C3 TestDeltaFIFO_enqueueingWithLister."""
    fifo = DeltaFIFO(known_objects=known(obj("a")))
    await fifo.delete(obj("a", 2))
    assert await drained(fifo) == [[Delta(DELETED, obj("a", 2))]]


async def test_deleting_what_is_only_queued_c4() -> None:
    """C4 TestDeltaFIFO_DeleteExistingNonPropagated."""
    fifo = DeltaFIFO(known_objects=known())
    await fifo.add(obj("a", 1))
    await fifo.delete(obj("a", 2))
    assert await drained(fifo) == [[Delta(ADDED, obj("a", 1)), Delta(DELETED, obj("a", 2))]]


async def test_where_known_objects_fail_the_deletion_is_kept() -> None:
    class Broken(Store[Any]):
        def get_by_key(self, key: str) -> Any:
            raise ConnectionError

    fifo = DeltaFIFO(known_objects=Broken())
    await fifo.apply([Delta(ADDED, obj("a")), Delta(DELETED, obj("b")), Delta(ADDED, obj("c"))])
    assert fifo.list_keys() == ["ns/a", "ns/b", "ns/c"]


async def test_a_plain_string_is_a_type_as_well() -> None:
    fifo = DeltaFIFO()
    await fifo.apply([Delta("Deleted", obj("a"))])  # type: ignore[arg-type]
    assert len(fifo) == 0
    await fifo.apply([Delta("Added", obj("a")), *[Delta("Deleted", obj("a", n)) for n in (2, 3)]])  # type: ignore[arg-type]
    assert await drained(fifo) == [[Delta(ADDED, obj("a")), Delta(DELETED, obj("a", 2))]]
