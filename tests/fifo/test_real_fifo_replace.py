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
    drained,
    known,
    obj,
    real,
    told,
    tombstone,
)


class TestOneByOne:
    async def test_tombstones_come_before_what_is_there_c18(self) -> None:
        """C18 TestRealFIFO_ReplaceMakesDeletions."""
        fifo = real(known(obj("x", 1), obj("a", 1)))
        await fifo.add(obj("queued", 2))
        await fifo.replace([obj("b", 5), obj("a", 6)], "10")
        assert told(fifo.queued) == [
            "Added queued 2",
            "Deleted tombstone queued 2", "Deleted tombstone x 1", "Replaced b 5", "Replaced a 6",
        ]  # fmt: skip

    async def test_a_tombstone_prefers_the_queue_to_known_objects_c18(self) -> None:
        fifo = real(known(obj("a", 1)))
        await fifo.update(obj("a", 2))
        await fifo.update(obj("a", 3))
        await fifo.replace([], "4")
        assert told(fifo.queued)[2:] == ["Deleted tombstone a 3"]

    async def test_what_is_queued_as_deleted_is_not_deleted_again_c19(self) -> None:
        """C19 TestRealFIFOW_ReplaceMakesDeletionsForObjectsOnlyInQueue."""
        fifo = real(known(obj("a", 1), obj("b", 1)))
        await fifo.delete(obj("a", 2))
        await fifo.delete(tombstone("b", obj("b", 1)))
        for version in ("3", "4"):
            await fifo.replace([], version)
        assert told(fifo.queued) == ["Deleted a 2", "Deleted tombstone b 1"]

    async def test_unless_it_was_added_since_c19(self) -> None:
        fifo = real(known(obj("a", 1)))
        await fifo.delete(obj("a", 2))
        await fifo.add(obj("a", 3))
        await fifo.replace([], "4")
        assert told(fifo.queued) == ["Deleted a 2", "Added a 3", "Deleted tombstone a 3"]

    async def test_after_a_queued_deletion_the_object_is_queued_again(self) -> None:
        """TestRealFIFO_replaceWithDeleteDeltaIn."""
        fifo = real(known(obj("a", 1)))
        await fifo.delete(obj("a", 2))
        await fifo.replace([obj("a", 3)], "3")
        assert told(fifo.queued) == ["Deleted a 2", "Replaced a 3"]

    @pytest.mark.parametrize("error", [None, ConnectionError()], ids=["misses", "raises"])
    async def test_where_known_objects_cannot_say_the_tombstone_is_empty(self, error: Any) -> None:
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

    async def test_a_resync_skips_what_has_anything_queued(self) -> None:
        """TestRealFIFO_UpdateResyncRace, TestRealFIFO_ResyncNonExisting: a Sync never follows newer news."""
        fifo = real(known(obj("a", 1), obj("b", 1), obj("c", 1)))
        await fifo.update(obj("a", 2))
        await fifo.delete(obj("b", 2))
        await fifo.resync()
        await fifo.resync()
        assert told(fifo.queued) == ["Updated a 2", "Deleted b 2", "Sync c 1"]

    async def test_a_bad_one_stops_no_other_and_is_not_deleted(self) -> None:
        fifo = real(known(obj("bad", 1), obj("x", 1), obj("kept", 1)), transformer=bad_fails)
        with pytest.raises(KeyFuncError) as caught:
            await fifo.replace([{}, obj("a"), obj("bad", 2), ExplicitKey("ns/kept"), obj("b")], "3")
        assert [type(error) for error in caught.value.all()] == [KeyFuncError, TransformError]
        assert told(fifo.queued) == ["Deleted tombstone x 1", "Replaced a 1", "Replaced b 1"]
        await drained(fifo)
        assert fifo.has_synced()

    async def test_a_key_function_that_forgets_stops_nothing(self) -> None:
        forgotten: set[str] = set()

        def key_func(what: Any) -> str:
            if what.name in forgotten:
                raise ValueError
            return str(what.key)

        fifo = RealFIFO(key_func, known(obj("x", 1)))
        await fifo.add(obj("a", 1))
        forgotten.add("a")
        await fifo.resync()
        await fifo.replace([obj("b", 2)], "2")
        assert told(fifo.queued) == ["Added a 1", "Sync x 1", "Deleted tombstone x 1", "Replaced b 2"]


class TestWhole:
    async def test_a_list_is_one_delta_with_what_was_transformed_and_its_version_c20(self) -> None:
        """C20 TestRealFIFO_ReplaceAtomic, TestRealFIFO_ReplaceAtomicPop."""
        fifo = real(transformer=lambda what: pod(what.name, version="T"))
        await fifo.add(obj("queued"))
        await fifo.replace([obj("b", 5), obj("a", 6)], "10")
        everything = Delta(REPLACED_ALL, ReplacedAllInfo("10", [obj("b", "T"), obj("a", "T")]))
        assert await drained(fifo) == [[Delta(ADDED, obj("queued", "T"))], [everything]]

    async def test_a_bad_one_stops_no_other_and_leaves_its_key_c20(self) -> None:
        """Difference from upstream, where nothing is queued."""
        fifo = real(transformer=bad_fails)
        with pytest.raises(KeyFuncError) as caught:
            await fifo.replace([{}, obj("a"), obj("bad", 2), ExplicitKey("ns/kept")], "3")
        assert [type(error) for error in caught.value.all()] == [KeyFuncError, TransformError]
        assert told(fifo.queued) == ["ReplacedAll 3 [a 1, key ns/bad, key ns/kept]"]

    async def test_the_list_is_the_queues_own_c20(self) -> None:
        objects = [obj("a")]
        fifo = real()
        await fifo.replace(objects, "1")
        objects.clear()
        assert told(fifo.queued) == ["ReplacedAll 1 [a 1]"]

    async def test_a_resync_is_one_delta_in_its_place_c24(self) -> None:
        """C24 TestRealFIFO_ResyncAtomic: ordering makes it safe, so nothing is left out."""
        fifo = by_default()
        await fifo.update(obj("a", 2))
        await fifo.resync()
        await fifo.resync()
        assert fifo.queued == [Delta(UPDATED, obj("a", 2))] + [Delta(SYNC_ALL, SyncAllInfo())] * 2

    async def test_a_long_list_is_short_in_messages(self) -> None:
        info = ReplacedAllInfo("7", [obj("a")] * 100_000)
        assert repr(info) == "ReplacedAllInfo(resource_version='7', 100000 objects)"


def bad_fails(what: Any) -> Any:
    if what.name == "bad":
        raise ValueError("no")
    return what


@pytest.mark.parametrize("count", range(14))
@pytest.mark.parametrize("whole", [False, True])
async def test_cancelled_it_has_done_all_or_nothing(
    count: int, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aioinformer._core.coop.SLICE", -1.0)  # a pause at each step
    for verb in ("replace", "resync"):
        fifo = by_default() if whole else real(known(obj("x"), obj("y")))
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
