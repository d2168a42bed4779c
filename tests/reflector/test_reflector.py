"""The reflector: lists, versions, stores, resyncs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from random import Random
from typing import Any

import pytest

from aioinformer.deltas import DeletedFinalStateUnknown, DeltaType
from aioinformer.errors import AlreadyStartedError, ApiError, IdleTimeoutError, TransportError
from aioinformer.fifo import DeltaFIFO
from aioinformer.listwatch import ListWatch
from aioinformer.objects.kube_object import KubeObject
from aioinformer.objects.meta import ListOptions, ListResult, WatchEvent
from aioinformer.reflector import Phase, Reflector
from aioinformer.store import Store

from ..steps import until
from ..virtual_time import virtual_time
from .running import Errors, content, plain_store, reflector, run_for
from .scripted import (
    FOREVER,
    RecordingStore,
    Scripted,
    Step,
    added,
    bookmark,
    closing_bookmark,
    deleted,
    error_event,
    expired_error,
    modified,
    page,
    raw_pod,
    too_large,
    too_many_requests,
)


@virtual_time
async def test_second_run_at_the_same_time_is_an_error() -> None:
    server = Scripted([page(raw_pod("a"), version=10), page(raw_pod("b"), version=20)])
    subject = reflector(server, store := plain_store())
    async with subject:
        await until(lambda: subject.state.phase is Phase.WATCHING)
        with pytest.raises(AlreadyStartedError, match="<Reflector scripted pods> is running already"):
            await subject.run()
        assert subject.state.phase is Phase.WATCHING
    await run_for(subject, 1)  # later is another matter
    assert store.list_keys() == ["default/b"]


class TestListing:
    @virtual_time
    async def test_first_list_and_the_watch_after_it(self) -> None:
        """C61: a list at "0" in pages of 500, then a watch from its version, with bookmarks and a random timeout."""
        server = Scripted([page(raw_pod("a"), version=10)])
        store = RecordingStore()
        await run_for(reflector(server, store, random=Random(1)), 60)
        assert server.lists == [ListOptions(resource_version="0", limit=500)]
        (watch,) = server.watches
        assert (watch.resource_version, watch.allow_watch_bookmarks) == ("10", True)
        assert watch.send_initial_events is None
        assert watch.timeout_seconds is not None
        assert 300 <= watch.timeout_seconds < 600
        assert store.verbs == [("replace", (["default/a"], "10"))]
        server.assert_closed()

    @virtual_time
    async def test_expired_version_relists_at_once_at_the_most_recent(self) -> None:
        """C62: "0", "10", ""; afterwards the versions are used again."""
        server = Scripted(
            [page(version=10), expired_error(), page(version=12), page(version=14)],
            [[5.0, error_event(410, "Expired")], [5.0, error_event(410, "Expired")]],
        )
        await run_for(reflector(server), 60)
        assert [listing.resource_version for listing in server.lists] == ["0", "10", "", "12"]
        assert [listing.limit for listing in server.lists] == [500, 0, 500, 0]
        assert server.calls[3][2] == server.calls[2][2]

    @virtual_time
    async def test_expired_page_relists_in_full_at_the_same_version_c63(self) -> None:
        """C63, TestReflectorFullListIfExpired: "0", "10", "", "10"; the version is kept."""
        server = Scripted(
            [page(raw_pod("a", 1), version=10), page(raw_pod("a", 1), version=12, token="more"), expired_error(),
             page(raw_pod("a", 1), raw_pod("b", 11), version=13), page(version=14)],
            [[6.0, error_event(410, "Gone")], [6.0, error_event(410, "Gone")]],
        )  # fmt: skip
        store = plain_store()
        await run_for(reflector(server, store, page_size=4), 9)
        assert [listing.resource_version for listing in server.lists] == ["0", "10", "", "10"]
        assert [listing.limit for listing in server.lists] == [4, 4, 4, 0]
        assert content(store) == {"default/a": "1", "default/b": "11"}
        assert server.versions()[-1] == ("watch", "13")
        server.assert_closed()

    @pytest.mark.parametrize("status", [400, 422])
    @virtual_time
    async def test_invalid_version_is_dropped(self, status: int) -> None:
        """As from a damaged event. Otherwise every list would be refused."""
        server = Scripted(
            [page(version=10), ApiError(status, "BadRequest"), page(version=12)],
            [[added("a", "x1"), 6.0, error_event(410, "Gone")]],
        )
        await run_for(reflector(server), 60)
        assert server.versions() == [
            ("list", "0"),
            ("watch", "10"),
            ("list", "x1"),
            ("list", ""),
            ("watch", "12"),
        ]

    @virtual_time
    async def test_invalid_selector_does_not_drop_the_version(self) -> None:
        server = Scripted([ApiError(400, "BadRequest", "unable to parse requirement"), page(version=1)])
        await run_for(reflector(server), 10)
        assert server.versions() == [("list", "0"), ("list", "0"), ("watch", "1")]

    @virtual_time
    async def test_too_large_version_relists_at_the_most_recent(self) -> None:
        """C62, TestReflectorFullListIfTooLarge."""
        server = Scripted(
            [page(version=10), too_large(), page(version=12)], [[5.0, error_event(410, "Gone")]]
        )
        await run_for(reflector(server), 60)
        assert [listing.resource_version for listing in server.lists] == ["0", "10", ""]

    @virtual_time
    async def test_a_refused_version_is_remembered_until_a_list_succeeds(self) -> None:
        server = Scripted([expired_error(), TransportError("refused"), page(version=12)])
        await run_for(reflector(server), 60)
        assert [listing.resource_version for listing in server.lists] == ["0", "", ""]

    @virtual_time
    async def test_pages_stick_after_a_paged_list_at_any_version(self) -> None:
        """C82."""
        server = Scripted(
            [page(version=10, token="more"), page(version=10), page(version=12)],
            [[5.0, error_event(410, "Gone")]],
        )
        await run_for(reflector(server), 60)
        assert server.lists[-1] == ListOptions(resource_version="10", limit=500)

    @virtual_time
    async def test_a_list_in_pages_may_be_newer_than_the_last_one(self) -> None:
        """Otherwise a restarted watch cache would return an old state from which no watch can continue."""
        server = Scripted(
            [page(version=10), page(version=12, token="more"), page(version=12)],
            [[5.0, error_event(410, "Gone")]],
        )
        await run_for(reflector(server, page_size=7), 60)
        asked = [
            (listing.resource_version, listing.resource_version_match, listing.limit)
            for listing in server.lists
        ]
        assert asked[:3] == [("0", "", 7), ("10", "NotOlderThan", 7), ("", "", 7)]

    @virtual_time
    async def test_list_error_calls_the_handler_and_is_retried_with_backoff(self) -> None:
        errors = Errors()
        server = Scripted([ValueError("a user's list function"), ApiError(403, "Forbidden"), page(version=1)])
        await run_for(reflector(server, watch_error_handler=errors), 60)
        assert [type(error) for error in errors.errors] == [ValueError, ApiError]
        assert server.delays()[:2] == pytest.approx([0.8, 1.6])

    @virtual_time
    async def test_cancelled_user_function_is_an_error_and_is_retried(self) -> None:
        """A user's function that awaits a cancelled task must not end the reflector silently."""

        class Cancelling(Scripted):
            async def list_chunks(self, options: ListOptions) -> AsyncIterator[ListResult]:
                if not self.lists:
                    self.lists.append(options)
                    raise asyncio.CancelledError
                async for piece in super().list_chunks(options):
                    yield piece

        errors = Errors()
        server = Cancelling([page(version=1)])
        await run_for(reflector(server, watch_error_handler=errors), 10)
        assert "user code raised CancelledError" in str(errors)
        assert server.versions() == [("list", "0"), ("watch", "1")]

    @pytest.mark.parametrize("resync_period", [0.0, 3.0])
    @pytest.mark.parametrize("where", ["open", "stream", "store"])
    @virtual_time
    async def test_watch_with_cancelled_user_function_is_retried(
        self, where: str, resync_period: float
    ) -> None:
        async def watch(options: ListOptions) -> AsyncIterator[WatchEvent]:
            versions.append(options.resource_version)
            cancel_first("open")
            return stream()

        async def stream() -> AsyncIterator[WatchEvent]:
            cancel_first("stream")
            yield added("a", 5)
            await asyncio.get_running_loop().create_future()

        def cancel_first(here: str) -> None:
            if where == here and not cancelled:
                cancelled.append(here)
                raise asyncio.CancelledError

        class Cancelling(RecordingStore):
            async def add(self, obj: Any) -> None:
                cancel_first("store")
                await super().add(obj)

        versions: list[str] = []
        cancelled: list[str] = []
        errors = Errors()
        source: Any = ListWatch(lambda options: ListResult([], "1"), watch)
        store = Cancelling()
        await run_for(reflector(source, store, resync_period, watch_error_handler=errors), 10)
        assert "user code raised CancelledError" in str(errors)
        assert versions == ["1", "1"]

    @virtual_time
    async def test_cancelled_watch_error_handler_does_not_end_the_reflector(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        async def cancelled_elsewhere(reflector: object, error: Exception) -> None:
            raise asyncio.CancelledError

        server = Scripted([OSError("down"), page(version=1)])
        await run_for(reflector(server, watch_error_handler=cancelled_elsewhere), 10)
        assert server.versions() == [("list", "0"), ("list", "0"), ("watch", "1")]
        assert "the watch error handler raised an exception for: down" in caplog.text

    @virtual_time
    async def test_list_without_an_answer_times_out(self) -> None:
        errors = Errors()
        server = Scripted([1000.0])
        await run_for(reflector(server, watch_error_handler=errors, list_timeout=20.0), 61)
        assert [type(error) for error in errors.errors] == [IdleTimeoutError] * 2
        assert server.delays() == pytest.approx([20.8, 21.6])
        server.assert_closed()

    @virtual_time
    async def test_retry_after_applies_once(self) -> None:
        """Later waits ignore it."""
        server = Scripted(
            [too_many_requests(retry_after=25), page(version=1), page(version=2)],
            [[0.5], [6.0, error_event(410, "Gone")]],
        )
        await run_for(reflector(server), 100)
        assert server.versions()[:4] == [("list", "0"), ("list", "0"), ("watch", "1"), ("list", "1")]
        assert server.delays()[:3] == pytest.approx([25, 0, 0.5 + 1.6])

    @virtual_time
    async def test_list_that_stops_between_pages_replaces_nothing(self) -> None:
        """The cache keeps its objects."""
        store = plain_store()
        store.add(KubeObject.from_bytes(raw_pod("kept", 3)))
        server = Scripted([page(raw_pod("a"), version=10, token="more"), TransportError("cut"), FOREVER])
        await run_for(reflector(server, store), 30)
        assert content(store) == {"default/kept": "3"}


class TestVersions:
    @virtual_time
    async def test_the_version_is_that_of_the_last_event_even_backwards(self) -> None:
        """C64: 55 then 32 is 32."""
        subject = reflector(
            server := Scripted([page(version=10)], [[added("a", 55), added("b", 32), FOREVER]])
        )
        await run_for(subject, 10)
        assert subject.last_sync_resource_version == "32"
        assert server.versions()[-1] == ("watch", "10")

    @virtual_time
    async def test_an_event_without_a_version_leaves_it(self) -> None:
        subject = reflector(Scripted([page(version=10)], [[added("a", 11), added("b", ""), FOREVER]]))
        await run_for(subject, 10)
        assert subject.last_sync_resource_version == "11"

    @virtual_time
    async def test_initial_adds_of_a_watch_from_any_version_do_not_advance_the_version(self) -> None:
        """C65: they are the collection, in any order, until the first event of another kind."""
        stream: list[Step] = [added("a", 5), 1.0, bookmark(7), 1.0, added("b", 8), FOREVER]
        subject = reflector(Scripted([page(version="")], [stream]))
        task = asyncio.create_task(subject.run())
        seen = []
        for _ in range(3):
            await asyncio.sleep(0.9)
            seen.append(subject.last_sync_resource_version)
        task.cancel()
        await asyncio.wait({task})
        assert seen == ["", "7", "8"]

    @virtual_time
    async def test_bookmark_advances_the_version_and_writes_nothing(self) -> None:
        """C66."""
        store = RecordingStore()
        server = Scripted([page(version=10)], [[bookmark(20), 10.0]])
        subject = reflector(server, store)
        await run_for(subject, 30)
        assert server.versions() == [("list", "0"), ("watch", "10"), ("watch", "20")]
        assert store.verbs == [("replace", ([], "10"))]

    @virtual_time
    async def test_an_unreadable_bookmark_is_dropped_and_counted(self) -> None:
        subject = reflector(
            Scripted([page(version=10)], [[WatchEvent("BOOKMARK", b"{"), bookmark(12), FOREVER]])
        )
        await run_for(subject, 5)
        assert subject.last_sync_resource_version == "12"
        assert subject.state.rejected == 1

    @virtual_time
    async def test_version_is_never_ahead_of_the_store(self) -> None:
        """After the store fails, the same events arrive again."""

        class Failing(RecordingStore):
            failing = True

            async def update(self, obj: Any) -> None:
                if self.failing:
                    self.failing = False
                    raise OSError("disk full")
                await super().update(obj)

        store = Failing()
        errors = Errors()
        server = Scripted(
            [page(version=10), page(version=10)],
            [[[added("a", 11), modified("a", 12)]], [modified("a", 12), FOREVER]],
        )
        subject = reflector(server, store, watch_error_handler=errors)
        await run_for(subject, 20)
        assert str(errors) == "disk full"
        assert server.versions() == [("list", "0"), ("watch", "10"), ("list", "10"), ("watch", "10")]
        assert subject.last_sync_resource_version == "12"
        server.assert_closed()


class TestTargets:
    """A Reflector works without an informer."""

    @virtual_time
    async def test_writes_to_a_plain_store(self) -> None:
        store = plain_store()
        events = [added("b", 11), modified("a", 12), deleted("c", 13), FOREVER]
        await run_for(
            reflector(Scripted([page(raw_pod("a", 1), raw_pod("c", 2), version=10)], [events]), store), 10
        )
        assert content(store) == {"default/a": "12", "default/b": "11"}

    @virtual_time
    async def test_object_type_none_passes_objects_through(self) -> None:
        """Objects of any type."""
        store: Store[Any] = Store(lambda obj: obj[0])
        server = Scripted(
            [ListResult([("a", 1)], "10")],
            [[WatchEvent("ADDED", ("b", 2)), WatchEvent("DELETED", ("a", 1)), FOREVER]],
        )
        await run_for(Reflector(server, None, store), 10)
        assert store.list() == [("b", 2)]

    @virtual_time
    async def test_list_function_may_change_its_list_later(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The watch reports changes made while the list is read."""
        monkeypatch.setattr("aioinformer._core.coop.SLICE", -1.0)  # a pause at each step
        objects = [raw_pod("a", 1), raw_pod("b", 2), raw_pod("c", 3), raw_pod("d", 4)]

        async def listed(options: ListOptions) -> ListResult:
            asyncio.get_running_loop().call_soon(objects.pop, 0)
            return ListResult(objects, "10")

        async def watched(options: ListOptions) -> AsyncIterator[WatchEvent]:
            yield deleted("a", 11)
            await asyncio.Event().wait()

        store = plain_store()
        await run_for(Reflector(ListWatch(listed, watched), KubeObject, store), 10)
        assert content(store) == {"default/b": "2", "default/c": "3", "default/d": "4"}

    @virtual_time
    async def test_a_bare_queue_without_known_objects_loses_deletions_missed(self) -> None:
        queue = DeltaFIFO()
        server = Scripted(
            [page(raw_pod("a", 1), raw_pod("b", 2), version=10), page(raw_pod("b", 2), version=20)],
            [[6.0, error_event(410, "Gone")]],
        )
        task = asyncio.create_task(reflector(server, queue).run())
        await asyncio.sleep(3)
        popped = [await queue.pop(lambda deltas, initial: None) for _ in range(2)]
        await asyncio.sleep(30)
        assert queue.list_keys() == ["default/b"]
        assert len(popped) == 2
        task.cancel()
        await asyncio.wait({task})

    @virtual_time
    async def test_queue_with_known_objects_finds_missed_deletions(self) -> None:
        """C77: the relist removes objects deleted while no watch was open."""
        known = plain_store()
        queue = DeltaFIFO(known_objects=known)
        server = Scripted(
            [page(raw_pod("a", 1), raw_pod("b", 2), version=10), page(raw_pod("b", 2), version=20)],
            [[6.0, error_event(410, "Gone")]],
        )
        task = asyncio.create_task(reflector(server, queue).run())
        await asyncio.sleep(3)
        for _ in range(2):
            await queue.pop(lambda deltas, initial: known.add(deltas[-1].object))
        await asyncio.sleep(30)
        deltas = queue.get_by_key("default/a")
        assert deltas is not None
        (delta,) = deltas
        assert delta.type is DeltaType.DELETED
        assert delta.object == DeletedFinalStateUnknown("default/a", known.get_by_key("default/a"))
        task.cancel()
        await asyncio.wait({task})

    @virtual_time
    async def test_unsafe_delete_error_is_not_retried_as_internal_error_c77(self) -> None:
        """It is not an internal error (apierrors ``knownReasons``)."""
        server = Scripted([page(version=10), page(version=20)], [[error_event(500, "StorageReadError")]])
        await run_for(reflector(server, max_internal_error_retry_duration=60.0), 5)
        assert server.versions() == [("list", "0"), ("watch", "10"), ("list", "10"), ("watch", "20")]

    @pytest.mark.parametrize("watch_list", [False, True])
    @virtual_time
    async def test_relist_removes_an_unreadable_deleted_object_c77(self, watch_list: bool) -> None:
        """C77, TestReflectorReplacesStoreOnUnsafeDelete: the watch only reports that it cannot read the object."""
        unsafe = error_event(
            500, "StorageReadError", "failed to prepare current and previous objects: corrupt object"
        )
        first, then = [raw_pod("corrupt", 1), raw_pod("kept", 2)], [raw_pod("kept", 2)]
        if watch_list:
            begin: list[Step] = [*[WatchEvent("ADDED", item) for item in first], closing_bookmark(10)]
            again: list[Step] = [WatchEvent("ADDED", then[0]), closing_bookmark(20), FOREVER]
            server = Scripted([], [[*begin, added("b", 11), unsafe], again], watch_list_semantics=True)
        else:
            server = Scripted([page(*first, version=10), page(*then, version=20)], [[added("b", 11), unsafe]])
        errors, known = Errors(), plain_store()
        queue = DeltaFIFO(known_objects=known)
        task = asyncio.create_task(reflector(server, queue, watch_error_handler=errors).run())
        popped: list[Any] = []
        for _ in range(5):
            (delta, *_) = await queue.pop(lambda deltas, initial: None)
            popped.append((delta.type, queue.key_of([delta])))
            if delta.type is not DeltaType.DELETED:
                known.add(delta.object)
            else:
                known.delete(delta.object)
        task.cancel()
        await asyncio.wait({task})
        assert set(popped[3:]) == {(DeltaType.SYNC, "default/kept"), (DeltaType.DELETED, "default/corrupt")}
        assert known.get_by_key("default/corrupt") is None
        assert "StorageReadError" in str(errors)
        server.assert_closed()

    @virtual_time
    async def test_a_transformer_that_fails_drops_that_object_only(self) -> None:
        """C79. Difference from upstream, where the whole Replace fails in LIST mode."""

        def transform(obj: KubeObject) -> KubeObject:
            if obj.name == "bad":
                raise ValueError("cannot")
            return obj

        queue = DeltaFIFO(transformer=transform)
        server = Scripted(
            [page(raw_pod("bad"), raw_pod("good"), version=10)], [[added("bad", 11), added("b", 12), FOREVER]]
        )
        subject = reflector(server, queue)
        await run_for(subject, 10)
        assert queue.list_keys() == ["default/good", "default/b"]
        assert subject.state.rejected == 2
        assert subject.last_sync_resource_version == "12"


class TestResync:
    @virtual_time
    async def test_resync_each_period(self) -> None:
        store = RecordingStore()
        await run_for(reflector(Scripted([page(version=1)]), store, 10.0), 35)
        assert store.resyncs == 3

    @virtual_time
    async def test_first_list_that_takes_longer_than_the_period_is_not_followed_by_a_resync(self) -> None:
        store = RecordingStore()
        await run_for(reflector(Scripted([13.0, page(version=1)]), store, 10.0), 25)
        assert store.resyncs == 1, "13 + 10 s, not 13 s"

    @virtual_time
    async def test_should_resync_decides(self) -> None:
        store = RecordingStore()
        answers = iter([True, False, True])
        await run_for(
            reflector(Scripted([page(version=1)]), store, 10.0, should_resync=lambda: next(answers)), 35
        )
        assert store.resyncs == 2

    @pytest.mark.parametrize("failure", [OSError, asyncio.CancelledError])
    @pytest.mark.parametrize("asks", [True, False])
    @virtual_time
    async def test_next_resync_after_a_failure_is_a_period_later(
        self, failure: type[BaseException], asks: bool
    ) -> None:
        """Otherwise the next round would end at once, and so on."""

        def fail() -> bool:
            raise failure("full")

        class Failing(RecordingStore):
            async def resync(self) -> None:
                fail()

        server = Scripted([page(version=1)] * 9)
        store = RecordingStore() if asks else Failing()
        await run_for(reflector(server, store, 10.0, should_resync=fail if asks else None), 35)
        assert len(server.lists) == 4

    @virtual_time
    async def test_relists_do_not_delay_a_resync(self) -> None:
        """C50: upstream's timer restarts with each list."""
        store = RecordingStore()
        watches: list[Sequence[Step]] = [[6.0, error_event(410, "Gone")]] * 20
        await run_for(reflector(Scripted([page(version=1)] * 20, watches), store, 10.0), 65)
        assert store.resyncs >= 5

    @virtual_time
    async def test_second_run_does_an_overdue_resync(self) -> None:
        store = RecordingStore()
        subject = reflector(Scripted([page(version=1)] * 2), store, 10.0)
        await run_for(subject, 15)
        await asyncio.sleep(20)
        await run_for(subject, 5)
        assert store.resyncs == 2

    @virtual_time
    async def test_failed_resync_ends_list_and_watch_without_an_error_c83(self) -> None:
        """C83, TestReflectorResync: it returns after exactly two."""

        class Failing(RecordingStore):
            async def resync(self) -> None:
                await super().resync()
                if self.resyncs == 2:
                    raise OSError("full")

        store, server = Failing(), Scripted([page(version=1)])
        await reflector(server, store, 10.0).list_and_watch()
        assert store.resyncs == 2
        assert server.versions() == [("list", "0"), ("watch", "1")]
        server.assert_closed()

    @virtual_time
    async def test_failed_resync_ends_the_watch(self) -> None:
        """C83: the reflector relists and reports the errors."""

        class Failing(RecordingStore):
            async def resync(self) -> None:
                await super().resync()
                if self.resyncs == 2:
                    raise OSError("full")

        store = Failing()
        errors = Errors()
        server = Scripted([page(version=1)] * 2)
        await run_for(reflector(server, store, 10.0, watch_error_handler=errors), 29)
        assert [verb for verb, _ in server.versions()] == ["list", "watch"] * 2
        assert str(errors) == "full"
        assert server.delays() == pytest.approx([0, 20.8, 0])
        server.assert_closed()


async def test_list_and_watch_on_real_loops() -> None:
    store = plain_store()
    server = Scripted([page(raw_pod("a", 1), version=10)], [[added("b", 11), FOREVER]])
    task = asyncio.create_task(Reflector(server, KubeObject, store, 0.01).run())
    async with asyncio.timeout(10):
        await until(lambda: len(store) == 2)
    task.cancel()
    await asyncio.wait({task})
    server.assert_closed()
