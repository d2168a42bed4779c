"""fifo/real_fifo.py: every event, in its order of arrival. Corners C16, C17 and C30."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from aioinformer import RealFIFO
from aioinformer.cache import Delta, ExplicitKey
from aioinformer.errors import KeyFuncError, RequeueError, TransformError

from ..samples import pod
from .samples import (
    ADDED,
    DELETED,
    Deltas,
    by_default,
    describe,
    drain,
    obj,
    raise_error,
    real,
    store_of,
    tombstone,
)


async def test_deltas_are_not_merged_and_keep_their_order_c16() -> None:
    """C16 TestRealFIFO_addUpdate, TestRealFIFO_detectLineJumpers."""
    fifo = real(store_of())
    await fifo.add(obj("a", 1))
    await fifo.add(obj("b", 2))
    await fifo.update(obj("a", 3))
    await fifo.delete(obj("a", 4))
    await fifo.add(obj("a", 5))
    popped = await drain(fifo)
    assert [len(deltas) for deltas in popped] == [1] * 5
    assert describe([delta for deltas in popped for delta in deltas]) == [
        "Added a 1", "Added b 2", "Updated a 3", "Deleted a 4", "Added a 5",
    ]  # fmt: skip


async def test_deletion_is_queued_for_known_and_unknown_keys_c17() -> None:
    """C17 TestRealFIFO_enqueueingNoLister, TestRealFIFO_enqueueingWithLister."""
    for fifo in (real(store_of()), real(store_of(obj("a"))), by_default()):
        await fifo.delete(obj("a", 2))
        await fifo.delete(obj("a", 3))
        await fifo.delete(tombstone("a", None))
        assert [delta.object for (delta,) in await drain(fifo)] == [
            obj("a", 2), obj("a", 3), tombstone("a", None),
        ]  # fmt: skip


async def test_add_if_not_present() -> None:
    fifo = by_default()
    await fifo.add(obj("a", 1))
    deltas = await fifo.pop(lambda deltas, initial: None)
    await fifo.bookmark("1")
    await fifo.add(obj("b", 2))
    await fifo.add_if_not_present(tuple(deltas))  # any sequence of them
    assert describe(fifo.queued) == ["Bookmark 1", "Added b 2", "Added a 1"]
    await fifo.add_if_not_present([Delta(DELETED, obj("b", 1))])
    await fifo.replace([obj("c", 3)], "3")
    await fifo.add_if_not_present([Delta(ADDED, obj("d", 1))])  # not in the list
    assert describe(fifo.queued) == ["Bookmark 1", "Added b 2", "Added a 1", "ReplacedAll 3 [c 3]"]
    for wrong in ([], [Delta(ADDED, {})], fifo.queued[:1]):
        with pytest.raises(KeyFuncError):
            await fifo.add_if_not_present(wrong)


class Anything:
    """An object that supports weak references."""

    def __init__(self, key: str) -> None:
        self.key = key


async def test_popped_objects_are_released_c30() -> None:
    fifo = RealFIFO(lambda what: str(what.key), atomic_events=True)
    objects = [Anything(str(number)) for number in range(50)]
    alive = weakref.WeakSet(objects)
    await fifo.apply([Delta(ADDED, weak) for weak in objects])
    objects.clear()
    for remaining in (49, 48):
        await fifo.pop(lambda deltas, initial: None)
        gc.collect()
        assert len(alive) == remaining
    while len(fifo):
        await fifo.pop_batch(lambda deltas, initial: None, lambda deltas, initial: None)
    gc.collect()
    assert not alive


async def test_queued_returns_a_copy() -> None:
    fifo = by_default()
    await fifo.add(obj("a"))
    fifo.queued.clear()
    assert fifo.queued == [Delta(ADDED, obj("a"))]
    assert len(fifo) == fifo.unfinished == fifo.high_water == 1


def test_key_of_each_kind_of_item() -> None:
    """TestRealFIFO_KeyOf."""
    fifo = by_default()
    for what in (obj("a"), tombstone("a", None), ExplicitKey("ns/a"), [Delta(ADDED, obj("a"))]):
        assert fifo.key_of(what) == "ns/a"
    with pytest.raises(KeyFuncError):
        fifo.key_of([])


async def test_objects_without_key_do_not_stop_others() -> None:
    fifo = by_default()
    with pytest.raises(KeyFuncError) as caught:
        await fifo.apply(
            [Delta(ADDED, {}), Delta(ADDED, obj("a")), Delta(DELETED, None), Delta(ADDED, obj("b"))]
        )
    assert len(caught.value.all()) == 2
    assert describe(fifo.queued) == ["Added a 1", "Added b 1"]


async def test_tombstones_and_resyncs_are_not_transformed() -> None:
    """TestRealFIFO_transformer."""
    calls: list[str] = []

    def transform(what: Any) -> Any:
        calls.append(what.name)
        return pod(what.name, version="T")

    fifo = real(store_of(obj("gone"), obj("synced")), transformer=transform)
    await fifo.resync()
    await fifo.replace([obj("a"), obj("synced")], "1")
    await fifo.add(obj("b"))
    await fifo.update(obj("b"))
    await fifo.delete(obj("b"))
    await fifo.delete(tombstone("b", obj("b")))
    assert calls == ["a", "synced", "b", "b", "b"]
    assert describe(fifo.queued) == [
        "Sync gone 1", "Sync synced 1", "Deleted tombstone gone 1", "Replaced a T", "Replaced synced T",
        "Added b T", "Updated b T", "Deleted b T", "Deleted tombstone b 1",
    ]  # fmt: skip


@pytest.mark.parametrize("wrong", ["raises", "None"])
async def test_failing_transformer_keeps_deletions_and_other_objects(wrong: str) -> None:
    def transform(what: Any) -> Any:
        if what.name == "bad" and wrong == "raises":
            raise ValueError
        return None if what.name == "bad" else what

    fifo = by_default(transformer=transform)
    with pytest.raises(TransformError, match="transforming ns/bad at 2 failed") as caught:
        await fifo.apply([Delta(ADDED, obj("bad", 2)), Delta(ADDED, obj("a")), Delta(DELETED, obj("bad", 3))])
    assert len(caught.value.all()) == 2
    assert describe(fifo.queued) == ["Added a 1", "Deleted bad 3"]


class TestRequeue:
    """A requeued delta keeps its place in the order."""

    async def test_requeued_delta_goes_to_the_front(self) -> None:
        fifo = by_default()
        await fifo.apply([Delta(ADDED, obj("a", 1)), Delta(ADDED, obj("b", 2)), Delta(ADDED, obj("a", 3))])

        def process(deltas: Deltas, initial: bool) -> None:
            deltas.clear()  # its own copy
            raise RequeueError

        for _ in range(3):
            assert describe(await fifo.pop(process)) == ["Added a 1"]
        assert await fifo.pop_batch(process) == 1
        assert describe(fifo.queued) == ["Added a 1", "Added b 2", "Added a 3"]

    async def test_deltas_added_meanwhile_follow_the_requeued_one(self) -> None:
        fifo = by_default()
        await fifo.add(obj("a", 1))

        async def process(deltas: Deltas, initial: bool) -> None:
            await fifo.update(obj("a", 2))
            raise RequeueError(KeyError("why"))

        with pytest.raises(KeyError):
            await fifo.pop(process)
        assert describe(fifo.queued) == ["Added a 1", "Updated a 2"]

    async def test_error_drops_the_delta(self) -> None:
        fifo = by_default()
        await fifo.apply([Delta(ADDED, obj("a")), Delta(ADDED, obj("b"))])
        with pytest.raises(ValueError):
            await fifo.pop(raise_error(ValueError()))
        assert describe(fifo.queued) == ["Added b 1"]
