"""fifo/delta_fifo.py: lists and resyncs. Corners C5 to C10."""

from __future__ import annotations

import asyncio
from time import process_time
from typing import Any

import pytest

from aioinformer import DeltaFIFO, Store
from aioinformer.cache import Delta, ExplicitKey
from aioinformer.errors import KeyFuncError

from .samples import DELETED, REPLACED, SYNC, UPDATED, drain, obj, queue_with, store_of, tombstone


async def test_emit_delta_type_replaced_selects_the_type() -> None:
    for emit, expected in ((True, REPLACED), (False, SYNC)):
        fifo = DeltaFIFO(emit_delta_type_replaced=emit)
        await fifo.replace([obj("a")], "1")
        assert await drain(fifo) == [[Delta(expected, obj("a"))]]


async def test_replace_accepts_any_iterable() -> None:
    fifo = DeltaFIFO(emit_delta_type_replaced=True)
    await fifo.replace((obj(name) for name in "ab"), "1")
    assert await drain(fifo) == [[Delta(REPLACED, obj("a"))], [Delta(REPLACED, obj("b"))]]


async def test_replace_queues_an_object_after_its_queued_deletion_c5() -> None:
    """C5 TestDeltaFIFO_replaceWithDeleteDeltaIn (kubernetes #83810)."""
    fifo = DeltaFIFO(known_objects=store_of(obj("a")), emit_delta_type_replaced=True)
    await fifo.delete(obj("a", 2))
    await fifo.replace([obj("a", 3)], "3")
    assert await drain(fifo) == [[Delta(DELETED, obj("a", 2)), Delta(REPLACED, obj("a", 3))]]


@pytest.mark.parametrize("known_objects", [None, store_of()], ids=["alone", "with known objects"])
async def test_queued_key_gets_a_tombstone_with_its_newest_state_c6(known_objects: Any) -> None:
    """C6 TestDeltaFIFOW_ReplaceMakesDeletionsForObjectsOnlyInQueue."""
    fifo = DeltaFIFO(known_objects=known_objects)
    await fifo.add(obj("a", 1))
    await fifo.update(obj("a", 2))
    await fifo.replace([], "3")
    assert (await drain(fifo))[0][-1] == Delta(DELETED, tombstone("a", obj("a", 2)))


async def test_tombstones_are_never_nested_c6() -> None:
    fifo = DeltaFIFO(known_objects=store_of(obj("a")))
    for version in ("2", "3", "4"):
        await fifo.replace([], version)
    assert await drain(fifo) == [[Delta(DELETED, tombstone("a", obj("a")))]]


async def test_queued_real_deletion_is_kept_c6() -> None:
    fifo = DeltaFIFO(known_objects=store_of(obj("a")))
    await fifo.delete(obj("a", 2))
    await fifo.replace([], "3")
    assert await drain(fifo) == [[Delta(DELETED, obj("a", 2))]]


async def test_tombstone_prefers_queued_state_to_known_objects_c7() -> None:
    """C7 TestDeltaFIFO_ReplaceMakesDeletions."""
    fifo = DeltaFIFO(known_objects=store_of(obj("a", 1), obj("b", 1)))
    await fifo.update(obj("a", 2))
    await fifo.replace([], "3")
    assert await drain(fifo) == [
        [Delta(UPDATED, obj("a", 2)), Delta(DELETED, tombstone("a", obj("a", 2)))],
        [Delta(DELETED, tombstone("b", obj("b", 1)))],
    ]


@pytest.mark.parametrize("error", [None, ConnectionError()], ids=["misses", "raises"])
async def test_tombstone_is_empty_if_known_objects_miss_or_raise_c8(error: Any) -> None:
    class Forgetful(Store[Any]):
        def get_by_key(self, key: str) -> Any:
            if error is not None:
                raise error

    store = Forgetful()
    store.add(obj("a"))
    fifo = await queue_with(known_objects=store)
    assert await drain(fifo) == [[Delta(DELETED, tombstone("a", None))]]


async def test_listed_objects_come_before_deletions_c9() -> None:
    """C9 TestDeltaFIFO_ReplaceMakesDeletionsReplaced."""
    fifo = await queue_with(obj("c"), obj("b"), known_objects=store_of(obj("a"), obj("b")))
    assert await drain(fifo) == [
        [Delta(REPLACED, obj("c"))],
        [Delta(REPLACED, obj("b"))],
        [Delta(DELETED, tombstone("a", obj("a")))],
    ]


async def test_object_listed_twice_is_one_item() -> None:
    fifo = await queue_with(obj("a", 1), obj("a", 2))
    assert await drain(fifo) == [[Delta(REPLACED, obj("a", 1)), Delta(REPLACED, obj("a", 2))]]
    assert fifo.has_synced()


async def test_explicit_key_is_neither_queued_nor_deleted() -> None:
    fifo = await queue_with(ExplicitKey("ns/a"), obj("b"), known_objects=store_of(obj("a"), obj("c")))
    assert fifo.list_keys() == ["ns/b", "ns/c"]


async def test_objects_without_key_do_not_stop_others() -> None:
    fifo = DeltaFIFO(known_objects=store_of(obj("x")))
    with pytest.raises(KeyFuncError) as caught:
        await fifo.replace([{}, obj("a"), None, obj("b")], "1")
    assert len(caught.value.all()) == 2
    assert fifo.list_keys() == ["ns/a", "ns/b", "ns/x"]
    await drain(fifo)
    assert fifo.has_synced()


async def test_resync_repeats_known_objects() -> None:
    fifo = DeltaFIFO(known_objects=store_of(obj("a"), obj("b")))
    await fifo.resync()
    assert await drain(fifo) == [[Delta(SYNC, obj("a"))], [Delta(SYNC, obj("b"))]]


async def test_resync_without_known_objects_does_nothing() -> None:
    fifo = DeltaFIFO()
    await fifo.resync()
    assert len(fifo) == 0
    assert not fifo.has_synced()


async def test_resync_skips_queued_keys_c10() -> None:
    """C10 TestDeltaFIFO_UpdateResyncRace, TestDeltaFIFO_ResyncNonExisting."""
    fifo = DeltaFIFO(known_objects=store_of(obj("a"), obj("b"), obj("c")))
    await fifo.update(obj("a", 2))
    await fifo.delete(obj("b", 2))
    await fifo.resync()
    await fifo.resync()
    assert await drain(fifo) == [
        [Delta(UPDATED, obj("a", 2))],
        [Delta(DELETED, obj("b", 2))],
        [Delta(SYNC, obj("c"))],
    ]


@pytest.mark.parametrize("failure", [ConnectionError, asyncio.CancelledError])
async def test_resync_skips_and_logs_failing_known_objects(
    failure: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Store[Any]):
        def get_by_key(self, key: str) -> Any:
            if key == "ns/a":
                raise failure
            return None if key == "ns/b" else super().get_by_key(key)

    store = Broken()
    store.replace([obj("a"), obj("b"), obj("c")])
    fifo = DeltaFIFO(known_objects=store)
    await fifo.resync()
    assert fifo.list_keys() == ["ns/c"]
    assert "known_objects.get_by_key('ns/a') raised" in caplog.text


async def test_replace_with_one_key_often_takes_linear_time() -> None:
    async def seconds(count: int) -> float:
        fifo, objects = DeltaFIFO(), [obj("a", number) for number in range(count)]
        begin = process_time()
        await fifo.replace(objects, "9")
        spent = process_time() - begin
        assert [delta.object for delta in (await drain(fifo))[0]] == objects
        return spent

    few = max(await seconds(10_000), 0.01)
    assert await seconds(80_000) < 24 * few  # quadratic time would be 64 times as much


async def test_abandoned_replace_with_one_key_often_keeps_the_queued_deltas() -> None:
    fifo = DeltaFIFO()
    for number in range(20):
        await fifo.update(obj("a", number))
    steps = fifo._deltas.replace([obj("a", 30), obj("a", 31)], "9")
    next(steps)
    next(steps)
    assert len(fifo.get_by_key("ns/a") or ()) == 20
