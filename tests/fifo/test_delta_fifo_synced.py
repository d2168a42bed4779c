"""fifo/delta_fifo.py: when the first list counts as processed. Corners C12 and C13."""

from __future__ import annotations

import pytest

from aioinformer import DeltaFIFO
from aioinformer.errors import RequeueError

from .samples import Deltas, drain, obj, queue_with, raise_error, store_of


async def test_has_synced_after_last_item_of_first_list_c12() -> None:
    """C12 TestDeltaFIFO_HasSynced: listed objects and deletions count."""
    fifo = await queue_with(obj("a"), obj("b"), known_objects=store_of(obj("x")))
    initial: list[bool] = []
    for remaining in (2, 1, 0):
        assert not fifo.has_synced()
        await fifo.pop(lambda deltas, is_initial: initial.append(is_initial))
        assert len(fifo) == remaining
    assert fifo.has_synced()
    await fifo.add(obj("c"))
    await fifo.pop(lambda deltas, is_initial: initial.append(is_initial))
    assert initial == [True, True, True, False]
    await fifo.wait_synced()


async def test_deletions_of_first_list_count_c12() -> None:
    """C12 TestDeltaFIFO_HasSyncedCorrectOnDeletion."""
    fifo = DeltaFIFO(known_objects=store_of(obj("x"), obj("y")))
    await fifo.replace([obj("a")], "1")
    await drain(fifo)
    assert fifo.has_synced()


async def test_not_synced_while_the_last_item_is_processed_w2() -> None:
    """Where we differ: upstream has synced before that."""
    fifo = await queue_with(obj("a"))
    seen: list[bool] = []
    await fifo.pop(lambda deltas, initial: seen.append(fifo.has_synced()))
    assert seen == [False]
    assert fifo.has_synced()


async def test_empty_first_list_is_synced_c13() -> None:
    fifo = await queue_with()
    assert fifo.has_synced()
    await fifo.wait_synced()


@pytest.mark.parametrize("verb", ["add", "update", "delete"])
async def test_synced_if_first_verb_is_not_replace(verb: str) -> None:
    fifo = DeltaFIFO()
    await getattr(fifo, verb)(obj("a"))
    await fifo.replace([obj("a"), obj("b")], "1")
    assert fifo.has_synced()


async def test_later_lists_keep_it_synced() -> None:
    fifo = await queue_with(obj("a"))
    await drain(fifo)
    await fifo.replace([obj("a"), obj("b")], "2")
    assert fifo.has_synced()


async def test_second_list_before_the_first_was_processed() -> None:
    fifo = await queue_with(obj("a"), obj("b"))
    await fifo.replace([obj("b"), obj("c")], "2")
    await fifo.pop(lambda deltas, initial: None)
    assert not fifo.has_synced()
    await fifo.pop(lambda deltas, initial: None)
    assert fifo.has_synced()


async def test_requeued_item_still_counts_and_new_items_do_not() -> None:
    fifo = await queue_with(obj("a"), obj("b"))
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


async def test_failed_item_counts_as_processed() -> None:
    fifo = await queue_with(obj("a"))
    with pytest.raises(ValueError):
        await fifo.pop(raise_error(ValueError()))
    assert fifo.has_synced()
