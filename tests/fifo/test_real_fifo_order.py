"""fifo/real_fifo.py: every event, in the order of its coming. Corners C16, C17 and C30."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from aioinformer import RealFIFO
from aioinformer.cache import Delta, ExplicitKey
from aioinformer.errors import KeyFuncError, RequeueError, TransformError

from ..samples import pod
from .samples import ADDED, DELETED, Deltas, by_default, drained, known, obj, raising, real, told, tombstone


async def test_nothing_is_merged_and_keys_keep_their_order_c16() -> None:
    """C16 TestRealFIFO_addUpdate, TestRealFIFO_detectLineJumpers."""
    fifo = real(known())
    await fifo.add(obj("a", 1))
    await fifo.add(obj("b", 2))
    await fifo.update(obj("a", 3))
    await fifo.delete(obj("a", 4))
    await fifo.add(obj("a", 5))
    popped = await drained(fifo)
    assert [len(deltas) for deltas in popped] == [1] * 5
    assert told([delta for deltas in popped for delta in deltas]) == [
        "Added a 1", "Added b 2", "Updated a 3", "Deleted a 4", "Added a 5",
    ]  # fmt: skip


async def test_a_deletion_is_queued_whether_known_or_not_c17() -> None:
    """C17 TestRealFIFO_enqueueingNoLister, TestRealFIFO_enqueueingWithLister."""
    for fifo in (real(known()), real(known(obj("a"))), by_default()):
        await fifo.delete(obj("a", 2))
        await fifo.delete(obj("a", 3))
        await fifo.delete(tombstone("a", None))
        assert [delta.object for (delta,) in await drained(fifo)] == [
            obj("a", 2), obj("a", 3), tombstone("a", None),
        ]  # fmt: skip


async def test_add_if_not_present() -> None:
    fifo = by_default()
    await fifo.add(obj("a", 1))
    deltas = await fifo.pop(lambda deltas, initial: None)
    await fifo.bookmark("1")
    await fifo.add(obj("b", 2))
    await fifo.add_if_not_present(tuple(deltas))  # any sequence of them
    assert told(fifo.queued) == ["Bookmark 1", "Added b 2", "Added a 1"]
    await fifo.add_if_not_present([Delta(DELETED, obj("b", 1))])
    await fifo.replace([obj("c", 3)], "3")
    await fifo.add_if_not_present([Delta(ADDED, obj("d", 1))])  # which the list has not
    assert told(fifo.queued) == ["Bookmark 1", "Added b 2", "Added a 1", "ReplacedAll 3 [c 3]"]
    for wrong in ([], [Delta(ADDED, {})], fifo.queued[:1]):
        with pytest.raises(KeyFuncError):
            await fifo.add_if_not_present(wrong)


class Anything:
    """Can be referred to weakly."""

    def __init__(self, key: str) -> None:
        self.key = key


async def test_what_was_popped_is_not_kept_c30() -> None:
    fifo = RealFIFO(lambda what: str(what.key), atomic_events=True)
    objects = [Anything(str(number)) for number in range(50)]
    alive = weakref.WeakSet(objects)
    await fifo.apply([Delta(ADDED, each) for each in objects])
    objects.clear()
    for left in (49, 48):
        await fifo.pop(lambda deltas, initial: None)
        gc.collect()
        assert len(alive) == left
    while len(fifo):
        await fifo.pop_batch(lambda deltas, initial: None, lambda deltas, initial: None)
    gc.collect()
    assert not alive


async def test_what_is_queued_can_be_read() -> None:
    fifo = by_default()
    await fifo.add(obj("a"))
    fifo.queued.clear()
    assert fifo.queued == [Delta(ADDED, obj("a"))]
    assert len(fifo) == fifo.unfinished == fifo.high_water == 1


def test_keys_of_everything_that_is_queued() -> None:
    """TestRealFIFO_KeyOf."""
    fifo = by_default()
    for what in (obj("a"), tombstone("a", None), ExplicitKey("ns/a"), [Delta(ADDED, obj("a"))]):
        assert fifo.key_of(what) == "ns/a"
    with pytest.raises(KeyFuncError):
        fifo.key_of([])


async def test_what_has_no_key_stops_no_other() -> None:
    fifo = by_default()
    with pytest.raises(KeyFuncError) as caught:
        await fifo.apply(
            [Delta(ADDED, {}), Delta(ADDED, obj("a")), Delta(DELETED, None), Delta(ADDED, obj("b"))]
        )
    assert len(caught.value.all()) == 2
    assert told(fifo.queued) == ["Added a 1", "Added b 1"]


async def test_what_is_transformed_and_what_is_not() -> None:
    """TestRealFIFO_transformer."""
    calls: list[str] = []

    def transform(what: Any) -> Any:
        calls.append(what.name)
        return pod(what.name, version="T")

    fifo = real(known(obj("gone"), obj("synced")), transformer=transform)
    await fifo.resync()
    await fifo.replace([obj("a"), obj("synced")], "1")
    await fifo.add(obj("b"))
    await fifo.update(obj("b"))
    await fifo.delete(obj("b"))
    await fifo.delete(tombstone("b", obj("b")))
    assert calls == ["a", "synced", "b", "b", "b"]
    assert told(fifo.queued) == [
        "Sync gone 1", "Sync synced 1", "Deleted tombstone gone 1", "Replaced a T", "Replaced synced T",
        "Added b T", "Updated b T", "Deleted b T", "Deleted tombstone b 1",
    ]  # fmt: skip


@pytest.mark.parametrize("wrong", ["raises", "None"])
async def test_a_transformer_that_fails_loses_neither_deletions_nor_others(wrong: str) -> None:
    def transform(what: Any) -> Any:
        if what.name == "bad" and wrong == "raises":
            raise ValueError
        return None if what.name == "bad" else what

    fifo = by_default(transformer=transform)
    with pytest.raises(TransformError, match="transforming ns/bad at 2 failed") as caught:
        await fifo.apply([Delta(ADDED, obj("bad", 2)), Delta(ADDED, obj("a")), Delta(DELETED, obj("bad", 3))])
    assert len(caught.value.all()) == 2
    assert told(fifo.queued) == ["Added a 1", "Deleted bad 3"]


class TestPuttingBack:
    """Nothing that was put back is overtaken by anything newer, or overtakes it."""

    async def test_it_goes_to_the_front(self) -> None:
        fifo = by_default()
        await fifo.apply([Delta(ADDED, obj("a", 1)), Delta(ADDED, obj("b", 2)), Delta(ADDED, obj("a", 3))])

        def process(deltas: Deltas, initial: bool) -> None:
            deltas.clear()  # its own copy
            raise RequeueError

        for _ in range(3):
            assert told(await fifo.pop(process)) == ["Added a 1"]
        assert await fifo.pop_batch(process) == 1
        assert told(fifo.queued) == ["Added a 1", "Added b 2", "Added a 3"]

    async def test_what_came_meanwhile_comes_after_it(self) -> None:
        fifo = by_default()
        await fifo.add(obj("a", 1))

        async def process(deltas: Deltas, initial: bool) -> None:
            await fifo.update(obj("a", 2))
            raise RequeueError(KeyError("why"))

        with pytest.raises(KeyError):
            await fifo.pop(process)
        assert told(fifo.queued) == ["Added a 1", "Updated a 2"]

    async def test_an_error_takes_the_delta_with_it(self) -> None:
        fifo = by_default()
        await fifo.apply([Delta(ADDED, obj("a")), Delta(ADDED, obj("b"))])
        with pytest.raises(ValueError):
            await fifo.pop(raising(ValueError()))
        assert told(fifo.queued) == ["Added b 1"]
