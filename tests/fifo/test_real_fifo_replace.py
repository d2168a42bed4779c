"""fifo/real_fifo.py: lists and resyncs, one by one or whole. Corners C18 to C20 and C24."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioinformer import RealFIFO, Store
from aioinformer.cache import Delta, ExplicitKey, ReplacedAllInfo, SyncAllInfo
from aioinformer.errors import KeyFuncError, TransformError

from ..samples import pod
from ..steps import turns
from .samples import (
    ADDED,
    REPLACED_ALL,
    SYNC_ALL,
    UPDATED,
    by_default,
    describe,
    drain,
    obj,
    real,
    store_of,
    tombstone,
)


class TestOneByOne:
    async def test_tombstones_come_before_listed_objects_c18(self) -> None:
        """C18 TestRealFIFO_ReplaceMakesDeletions."""
        fifo = real(store_of(obj("x", 1), obj("a", 1)))
        await fifo.add(obj("queued", 2))
        await fifo.replace([obj("b", 5), obj("a", 6)], "10")
        assert describe(fifo.queued) == [
            "Added queued 2",
            "Deleted tombstone queued 2", "Deleted tombstone x 1", "Replaced b 5", "Replaced a 6",
        ]  # fmt: skip

    async def test_tombstone_prefers_queued_state_to_known_objects_c18(self) -> None:
        fifo = real(store_of(obj("a", 1)))
        await fifo.update(obj("a", 2))
        await fifo.update(obj("a", 3))
        await fifo.replace([], "4")
        assert describe(fifo.queued)[2:] == ["Deleted tombstone a 3"]

    async def test_key_with_queued_deletion_gets_no_tombstone_c19(self) -> None:
        """C19 TestRealFIFOW_ReplaceMakesDeletionsForObjectsOnlyInQueue."""
        fifo = real(store_of(obj("a", 1), obj("b", 1)))
        await fifo.delete(obj("a", 2))
        await fifo.delete(tombstone("b", obj("b", 1)))
        for version in ("3", "4"):
            await fifo.replace([], version)
        assert describe(fifo.queued) == ["Deleted a 2", "Deleted tombstone b 1"]

    async def test_key_added_after_queued_deletion_gets_a_tombstone_c19(self) -> None:
        fifo = real(store_of(obj("a", 1)))
        await fifo.delete(obj("a", 2))
        await fifo.add(obj("a", 3))
        await fifo.replace([], "4")
        assert describe(fifo.queued) == ["Deleted a 2", "Added a 3", "Deleted tombstone a 3"]

    async def test_replace_queues_an_object_after_its_queued_deletion(self) -> None:
        """TestRealFIFO_replaceWithDeleteDeltaIn."""
        fifo = real(store_of(obj("a", 1)))
        await fifo.delete(obj("a", 2))
        await fifo.replace([obj("a", 3)], "3")
        assert describe(fifo.queued) == ["Deleted a 2", "Replaced a 3"]

    @pytest.mark.parametrize("error", [None, ConnectionError()], ids=["misses", "raises"])
    async def test_tombstone_is_empty_if_known_objects_miss_or_raise(self, error: Any) -> None:
        class Forgetful(Store[Any]):
            def get_by_key(self, key: str) -> Any:
                if error is not None:
                    raise error

        store = Forgetful()
        store.add(obj("a"))
        fifo = real(store)
        await fifo.replace([], "1")
        assert [delta.object for delta in fifo.queued] == [tombstone("a", None)]
        fifo = real(store)
        await fifo.resync()
        assert len(fifo) == 0

    async def test_resync_skips_queued_keys(self) -> None:
        """TestRealFIFO_UpdateResyncRace, TestRealFIFO_ResyncNonExisting: a Sync never follows a newer delta."""
        fifo = real(store_of(obj("a", 1), obj("b", 1), obj("c", 1)))
        await fifo.update(obj("a", 2))
        await fifo.delete(obj("b", 2))
        await fifo.resync()
        await fifo.resync()
        assert describe(fifo.queued) == ["Updated a 2", "Deleted b 2", "Sync c 1"]

    async def test_failing_objects_do_not_stop_others_and_are_not_deleted(self) -> None:
        fifo = real(store_of(obj("bad", 1), obj("x", 1), obj("kept", 1)), transformer=bad_fails)
        with pytest.raises(KeyFuncError) as caught:
            await fifo.replace([{}, obj("a"), obj("bad", 2), ExplicitKey("ns/kept"), obj("b")], "3")
        assert [type(error) for error in caught.value.all()] == [KeyFuncError, TransformError]
        assert describe(fifo.queued) == ["Deleted tombstone x 1", "Replaced a 1", "Replaced b 1"]
        await drain(fifo)
        assert fifo.has_synced()

    async def test_key_function_that_fails_later_does_not_stop_others(self) -> None:
        forgotten: set[str] = set()

        def key_func(what: Any) -> str:
            if what.name in forgotten:
                raise ValueError
            return str(what.key)

        fifo = RealFIFO(key_func, store_of(obj("x", 1)))
        await fifo.add(obj("a", 1))
        forgotten.add("a")
        await fifo.resync()
        await fifo.replace([obj("b", 2)], "2")
        assert describe(fifo.queued) == ["Added a 1", "Sync x 1", "Deleted tombstone x 1", "Replaced b 2"]


class TestWhole:
    async def test_list_is_one_delta_with_transformed_objects_and_version_c20(self) -> None:
        """C20 TestRealFIFO_ReplaceAtomic, TestRealFIFO_ReplaceAtomicPop."""
        fifo = real(transformer=lambda what: pod(what.name, version="T"))
        await fifo.add(obj("queued"))
        await fifo.replace([obj("b", 5), obj("a", 6)], "10")
        everything = Delta(REPLACED_ALL, ReplacedAllInfo("10", [obj("b", "T"), obj("a", "T")]))
        assert await drain(fifo) == [[Delta(ADDED, obj("queued", "T"))], [everything]]

    async def test_failing_objects_leave_their_keys_in_the_list_c20(self) -> None:
        """Difference from upstream, where nothing is queued."""
        fifo = real(transformer=bad_fails)
        with pytest.raises(KeyFuncError) as caught:
            await fifo.replace([{}, obj("a"), obj("bad", 2), ExplicitKey("ns/kept")], "3")
        assert [type(error) for error in caught.value.all()] == [KeyFuncError, TransformError]
        assert describe(fifo.queued) == ["ReplacedAll 3 [a 1, key ns/bad, key ns/kept]"]

    async def test_queue_copies_the_given_list_c20(self) -> None:
        objects = [obj("a")]
        fifo = real()
        await fifo.replace(objects, "1")
        objects.clear()
        assert describe(fifo.queued) == ["ReplacedAll 1 [a 1]"]

    async def test_resync_is_one_delta_in_order_c24(self) -> None:
        """C24 TestRealFIFO_ResyncAtomic: the order makes it safe, so no key is skipped."""
        fifo = by_default()
        await fifo.update(obj("a", 2))
        await fifo.resync()
        await fifo.resync()
        assert fifo.queued == [Delta(UPDATED, obj("a", 2))] + [Delta(SYNC_ALL, SyncAllInfo())] * 2

    async def test_repr_of_a_long_list_is_short(self) -> None:
        info = ReplacedAllInfo("7", [obj("a")] * 100_000)
        assert repr(info) == "ReplacedAllInfo(resource_version='7', 100000 objects)"


def bad_fails(what: Any) -> Any:
    if what.name == "bad":
        raise ValueError("no")
    return what


@pytest.mark.parametrize("count", range(14))
@pytest.mark.parametrize("whole", [False, True])
async def test_cancelled_verb_does_all_or_nothing(
    count: int, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aioinformer._core.coop.SLICE", -1.0)  # a pause at each step
    for verb in ("replace", "resync"):
        fifo = by_default() if whole else real(store_of(obj("x"), obj("y")))
        await fifo.add(obj("queued"))
        task = asyncio.create_task(
            fifo.replace([obj("a"), obj("b")], "1") if verb == "replace" else fifo.resync()
        )
        await turns(count)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        full = {"replace": 1 if whole else 5, "resync": 1 if whole else 2}[verb]
        assert len(fifo) == 1 + (0 if task.cancelled() else full)
        await fifo.add(obj("free"))
