"""fifo/real_fifo.py: which deltas are processed together. Corners C25 to C27."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from aioinformer import RealFIFO
from aioinformer.cache import Delta
from aioinformer.errors import FIFOClosedError, RequeueError

from ..steps import cancel_after, turns
from .samples import ADDED, DELETED, UPDATED, Deltas, by_default, describe, make_filled, obj, real, store_of


class Processed:
    """Two process functions that record their calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[str], bool]] = []

    def single(self, deltas: Deltas, initial: bool) -> None:
        self.calls.append(("single", describe(deltas), initial))

    def batch(self, deltas: Deltas, initial: bool) -> None:
        self.calls.append(("batch", describe(deltas), initial))

    async def all_of(self, fifo: RealFIFO) -> list[tuple[str, list[str], bool]]:
        while len(fifo):
            before = len(fifo)
            assert await fifo.pop_batch(self.single, self.batch) == before - len(fifo)
        return self.calls


class TestBatchLimits:
    """C25 TestRealFIFO_PopMultipleDeltaInBatch."""

    async def test_batch_is_not_larger_than_batch_size_c25(self) -> None:
        fifo = await make_filled(*"abcdefg", batch_size=3)
        calls = await Processed().all_of(fifo)
        assert [(kind, len(deltas)) for kind, deltas, _ in calls] == [
            ("batch", 3),
            ("batch", 3),
            ("single", 1),
        ]

    async def test_batch_has_no_key_twice_c25(self) -> None:
        fifo = await make_filled("a", "b")
        await fifo.apply(
            [Delta(UPDATED, obj("a", 2)), Delta(DELETED, obj("b", 3)), Delta(UPDATED, obj("b", 4))]
        )
        assert await Processed().all_of(fifo) == [
            ("batch", ["Added a 1", "Added b 1"], False),
            ("batch", ["Updated a 2", "Deleted b 3"], False),
            ("single", ["Updated b 4"], False),
        ]

    async def test_batch_ends_with_the_initial_list_c25(self) -> None:
        fifo = real(store_of(obj("x")))
        await fifo.replace([obj("a"), obj("b")], "1")
        await fifo.add(obj("c"))
        await fifo.add(obj("d"))
        assert await Processed().all_of(fifo) == [
            ("batch", ["Deleted tombstone x 1", "Replaced a 1", "Replaced b 1"], True),
            ("batch", ["Added c 1", "Added d 1"], False),
        ]
        assert fifo.has_synced()

    async def test_batch_ends_with_the_initial_list_after_requeue_c25(self) -> None:
        fifo = real(store_of(), batch_size=2)
        await fifo.replace([obj("a"), obj("b"), obj("c")], "1")
        await fifo.add(obj("d"))

        def refuse(deltas: Deltas, initial: bool) -> None:
            raise RequeueError

        await fifo.pop_batch(refuse, refuse)
        await fifo.pop(refuse)
        assert await Processed().all_of(fifo) == [
            ("batch", ["Replaced a 1", "Replaced b 1"], True),
            ("single", ["Replaced c 1"], True),
            ("single", ["Added d 1"], False),
        ]

    async def test_whole_list_resync_and_bookmark_are_single_c25(self) -> None:
        fifo = await make_filled("a", "b")
        await fifo.replace([obj("c")], "5")
        await fifo.resync()
        await fifo.bookmark("7")
        await fifo.add(obj("d"))
        await fifo.add(obj("e"))
        assert await Processed().all_of(fifo) == [
            ("batch", ["Added a 1", "Added b 1"], False),
            ("single", ["ReplacedAll 5 [c 1]"], False),
            ("single", ["SyncAll everything"], False),
            ("single", ["Bookmark 7"], False),
            ("batch", ["Added d 1", "Added e 1"], False),
        ]

    async def test_delta_without_key_ends_its_batch_c26(self) -> None:
        """C26 TestRealFIFO_PopBrokenItemsInBatch: the key function worked when the delta was queued."""
        forgotten: set[str] = set()

        def key_func(what: Any) -> str:
            if what.name in forgotten:
                raise ValueError
            return str(what.key)

        fifo = RealFIFO(key_func, atomic_events=True)
        await fifo.apply([Delta(ADDED, obj(name)) for name in "abcde"])
        forgotten.update("bc")
        assert await Processed().all_of(fifo) == [
            ("batch", ["Added a 1", "Added b 1"], False),
            ("single", ["Added c 1"], False),
            ("batch", ["Added d 1", "Added e 1"], False),
        ]

    async def test_single_delta_is_not_a_batch_c27(self) -> None:
        fifo = await make_filled("a")
        assert await Processed().all_of(fifo) == [("single", ["Added a 1"], False)]

    @pytest.mark.usefixtures("long_slices")
    async def test_without_process_batch_deltas_are_processed_one_by_one(self) -> None:
        fifo = await make_filled("a", "b", "a")
        processed = Processed()
        assert await fifo.pop_batch(processed.single) == 3
        assert [deltas for _, deltas, _ in processed.calls] == [["Added a 1"], ["Added b 1"], ["Added a 1"]]


class TestProcessBatch:
    async def test_requeue_puts_the_batch_back_in_order(self) -> None:
        fifo = await make_filled("a", "b", "c")

        async def refuse(deltas: Deltas, initial: bool) -> None:
            deltas.clear()
            await fifo.add(obj("d"))
            raise RequeueError(KeyError())

        with pytest.raises(KeyError):
            await fifo.pop_batch(refuse, refuse)
        assert describe(fifo.queued) == ["Added a 1", "Added b 1", "Added c 1", "Added d 1"]

    async def test_error_drops_the_batch(self) -> None:
        fifo = real(store_of())
        await fifo.replace([obj("a"), obj("b")], "1")

        def fail(deltas: Deltas, initial: bool) -> None:
            raise ValueError

        with pytest.raises(ValueError):
            await fifo.pop_batch(fail, fail)
        assert len(fifo) == 0
        assert fifo.has_synced()

    async def test_not_synced_while_the_batch_is_processed(self) -> None:
        fifo = real(store_of())
        await fifo.replace([obj("a"), obj("b")], "1")
        seen: list[bool] = []

        async def process(deltas: Deltas, initial: bool) -> None:
            await asyncio.sleep(0)
            seen.append(fifo.has_synced())

        await fifo.pop_batch(process, process)
        assert seen == [False]
        assert fifo.has_synced()

    @pytest.mark.parametrize("count", range(10))
    @pytest.mark.parametrize("unlocked", [False, True])
    async def test_cancel_puts_the_batch_back(self, count: int, unlocked: bool) -> None:
        fifo = real(unlock_while_processing=unlocked)
        await fifo.apply([Delta(ADDED, obj(name)) for name in "abc"])
        done: list[str] = []

        async def process(deltas: Deltas, initial: bool) -> None:
            await turns(3)
            done.extend(describe(deltas))

        await cancel_after(count, fifo.pop_batch(process, process))
        assert done + describe(fifo.queued) == ["Added a 1", "Added b 1", "Added c 1"]
        assert len(done) in (0, 3)
        await fifo.add(obj("free"))

    async def test_deltas_in_process_count_as_unfinished(self) -> None:
        fifo = await make_filled("a", "b", "a")
        seen: list[tuple[int, int]] = []

        def process(deltas: Deltas, initial: bool) -> None:
            seen.append((len(fifo), fifo.unfinished))

        await fifo.pop_batch(process, process)
        assert seen == [(1, 3)]
        assert fifo.unfinished == 1

    async def test_closed_and_empty_queue_raises(self) -> None:
        fifo = await make_filled("a", "b")
        fifo.close()
        processed = Processed()
        assert await fifo.pop_batch(processed.single, processed.batch) == 2
        with pytest.raises(FIFOClosedError):
            await fifo.pop_batch(processed.single, processed.batch)

    @pytest.mark.parametrize(("seconds", "warns"), [(0.25, False), (0.35, True)])
    async def test_slow_batch_logs_warning(
        self,
        seconds: float,
        warns: bool,
        caplog: pytest.LogCaptureFixture,
        pass_time: Callable[[float], None],
    ) -> None:
        """Section 1.1: 100 ms for each delta, with more than ten pending."""

        def slow(deltas: Deltas, initial: bool) -> None:
            pass_time(seconds)

        fifo = await make_filled(*(f"p{number}" for number in range(14)), batch_size=3)
        with caplog.at_level(logging.WARNING):
            await fifo.pop_batch(slow, slow)
        assert caplog.messages == (["processing 3 deltas took 350 ms, with 11 waiting"] if warns else [])

    async def test_whole_list_or_resync_logs_no_warning(
        self, caplog: pytest.LogCaptureFixture, pass_time: Callable[[float], None]
    ) -> None:
        """It is processed in slices, and its time is proportional to the number of objects."""

        def slow(deltas: Deltas, initial: bool) -> None:
            pass_time(2.0)

        fifo = by_default()
        await fifo.replace([obj("a")], "7")
        await fifo.resync()
        await fifo.apply([Delta(ADDED, obj(f"p{number}")) for number in range(11)])
        await fifo.pop(slow)
        await fifo.pop(slow)
        assert not caplog.messages

    async def test_slow_bookmark_logs_warning(
        self, caplog: pytest.LogCaptureFixture, pass_time: Callable[[float], None]
    ) -> None:
        def slow(deltas: Deltas, initial: bool) -> None:
            pass_time(0.2)

        fifo = by_default()
        await fifo.bookmark("7")
        await fifo.apply([Delta(ADDED, obj(f"p{number}")) for number in range(11)])
        await fifo.pop(slow)
        (message,) = caplog.messages
        assert message == "processing BookmarkInfo(resource_version='7') took 200 ms, with 11 waiting"
