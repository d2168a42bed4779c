"""fifo/delta_fifo.py: when the first list counts as worked off. Corners C12 and C13."""

from __future__ import annotations

import pytest

from aioinformer import DeltaFIFO
from aioinformer.errors import RequeueError

from .samples import Deltas, drained, known, obj, raising, replacing


async def test_synced_after_the_last_of_the_first_list_c12() -> None:
    """C12 TestDeltaFIFO_HasSynced: list and deletions count."""
    fifo = await replacing(obj("a"), obj("b"), known_objects=known(obj("x")))
    initial: list[bool] = []
    for left in (2, 1, 0):
        assert not fifo.has_synced()
        await fifo.pop(lambda deltas, is_initial: initial.append(is_initial))
        assert len(fifo) == left
    assert fifo.has_synced()
    await fifo.add(obj("c"))
    await fifo.pop(lambda deltas, is_initial: initial.append(is_initial))
    assert initial == [True, True, True, False]
    await fifo.wait_synced()


async def test_a_queued_deletion_counts_too_c12() -> None:
    """C12 TestDeltaFIFO_HasSyncedCorrectOnDeletion."""
    fifo = DeltaFIFO(known_objects=known(obj("x"), obj("y")))
    await fifo.replace([obj("a")], "1")
    await drained(fifo)
    assert fifo.has_synced()


async def test_not_synced_before_the_last_item_was_worked_off_w2() -> None:
    """Where we differ: upstream turns true before it."""
    fifo = await replacing(obj("a"))
    seen: list[bool] = []
    await fifo.pop(lambda deltas, initial: seen.append(fifo.has_synced()))
    assert seen == [False]
    assert fifo.has_synced()


async def test_an_empty_first_list_is_synced_c13() -> None:
    fifo = await replacing()
    assert fifo.has_synced()
    await fifo.wait_synced()


@pytest.mark.parametrize("verb", ["add", "update", "delete"])
async def test_any_other_first_verb_is_synced(verb: str) -> None:
    fifo = DeltaFIFO()
    await getattr(fifo, verb)(obj("a"))
    await fifo.replace([obj("a"), obj("b")], "1")
    assert fifo.has_synced()


async def test_later_lists_change_nothing() -> None:
    fifo = await replacing(obj("a"))
    await drained(fifo)
    await fifo.replace([obj("a"), obj("b")], "2")
    assert fifo.has_synced()


async def test_a_second_list_before_the_first_was_worked_off() -> None:
    fifo = await replacing(obj("a"), obj("b"))
    await fifo.replace([obj("b"), obj("c")], "2")
    await fifo.pop(lambda deltas, initial: None)
    assert not fifo.has_synced()
    await fifo.pop(lambda deltas, initial: None)
    assert fifo.has_synced()


async def test_what_comes_meanwhile_does_not_stand_in_for_what_was_put_back() -> None:
    fifo = await replacing(obj("a"), obj("b"))
    await fifo.add(obj("new"))
    refused = 0

    def process(deltas: Deltas, initial: bool) -> None:
        nonlocal refused
        if deltas[0].object.name == "a" and not refused:
            refused += 1
            raise RequeueError

    for _ in range(3):
        await fifo.pop(process)
        assert not fifo.has_synced()
    assert fifo.list_keys() == ["ns/a"]
    await fifo.pop(process)
    assert fifo.has_synced()


async def test_an_item_that_failed_counts_as_worked_off() -> None:
    fifo = await replacing(obj("a"))
    with pytest.raises(ValueError):
        await fifo.pop(raising(ValueError()))
    assert fifo.has_synced()
