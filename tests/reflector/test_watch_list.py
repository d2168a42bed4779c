"""The reflector on a server that streams the initial state."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from aioinformer.errors import ApiError, DamagedError, DecodeError, TransportError
from aioinformer.objects.meta import (
    NO_EVENT,
    NOT_OLDER_THAN,
    ListOptions,
    WatchEvent,
)

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


class TestWatchList:
    def server(self, *watches: Any, lists: Sequence[Any] = ()) -> Scripted:
        return Scripted(lists, watches, watch_list_semantics=True)

    @virtual_time
    async def test_the_stream_is_the_initial_state_and_then_the_watch(self) -> None:
        """C61, C67."""
        store = RecordingStore()
        server = self.server(
            [added("a", 1), bookmark(2), [closing_bookmark(9), added("b", 10)], 1.0, added("c", 11), FOREVER]
        )
        subject = reflector(server, store)
        await run_for(subject, 60)
        (options,) = server.watches
        assert options == ListOptions(
            resource_version="",
            resource_version_match=NOT_OLDER_THAN,
            send_initial_events=True,
            allow_watch_bookmarks=True,
            timeout_seconds=300,
        )
        assert not server.lists
        assert store.verbs == [("replace", (["default/a"], "9")), ("add", "default/b"), ("add", "default/c")]
        assert subject.last_sync_resource_version == "11"
        server.assert_closed()

    @virtual_time
    async def test_a_bookmark_that_says_false_closes_nothing_c67(self) -> None:
        store = RecordingStore()
        server = self.server([added("a", 1), bookmark(5, "false"), 5.0, closing_bookmark(9), FOREVER])
        subject = reflector(server, store)
        task = asyncio.create_task(subject.run())
        await asyncio.sleep(4)
        assert (store.verbs, subject.last_sync_resource_version) == ([], "")
        await asyncio.sleep(4)
        assert store.verbs == [("replace", (["default/a"], "9"))]
        task.cancel()
        await asyncio.wait({task})

    @virtual_time
    async def test_changes_before_the_closing_bookmark_are_part_of_the_initial_state_c68(self) -> None:
        store = plain_store()
        server = self.server(
            [added("a", 1), added("b", 2), modified("a", 3), deleted("b", 4), deleted("never", 5), closing_bookmark(9),
             FOREVER]
        )  # fmt: skip
        subject = reflector(server, store)
        await run_for(subject, 5)
        assert content(store) == {"default/a": "3"}
        assert subject.last_sync_resource_version == "9"

    @virtual_time
    async def test_off_and_on_by_option(self) -> None:
        server = self.server(lists=[page(version=1)])
        await run_for(reflector(server, use_watch_list=False), 1)
        assert server.versions() == [("list", "0"), ("watch", "1")]
        server = Scripted([], [[closing_bookmark(9), FOREVER]])
        await run_for(reflector(server, use_watch_list=True), 1)
        assert server.versions() == [("watch", "")]

    @virtual_time
    async def test_stream_broken_before_the_bookmark_starts_again(self) -> None:
        """C69: without the objects of the first try. W3: after a backoff."""
        store = RecordingStore()
        server = self.server([added("a", 1)], [added("b", 2), closing_bookmark(9), FOREVER])
        await run_for(reflector(server, store), 60)
        assert store.verbs == [("replace", (["default/b"], "9"))]
        assert server.delays() == pytest.approx([0.8])
        server.assert_closed()

    @virtual_time
    async def test_repeatedly_broken_stream_falls_back_to_a_list(self) -> None:
        """W20: streams that are always ended early; the next attempt streams again."""
        server = self.server(
            [added("a", 1)], [added("a", 1), TransportError("cut")], [added("a", 1)], [6.0, error_event(410, "Gone")],
            [closing_bookmark(9), FOREVER], lists=[page(raw_pod("a"), version=5)],
        )  # fmt: skip
        await run_for(reflector(server), 60)
        assert server.versions() == [*[("watch", "")] * 3, ("list", "0"), ("watch", "5"), ("watch", "5")]
        assert server.watches[-1].send_initial_events
        server.assert_closed()

    @virtual_time
    async def test_end_after_the_bookmark_is_an_ordinary_end(self) -> None:
        """C69: no relist."""
        server = self.server([closing_bookmark(9), added("a", 10), 300.0])
        await run_for(reflector(server), 400)
        assert server.versions() == [("watch", ""), ("watch", "10")]
        assert server.watches[1].send_initial_events is None

    @pytest.mark.parametrize("code", [410, 429, 500])
    @virtual_time
    async def test_error_right_after_the_bookmark_ends_the_watch(self, code: int) -> None:
        """Also in the same chunk: the list is complete."""
        server = self.server([[added("a", 1), closing_bookmark(9), error_event(code, "")]])
        await run_for(reflector(server), 5)
        assert server.versions() == [("watch", ""), ("watch", "9")]
        assert server.watches[1].send_initial_events is (None if code == 429 else True)
        server.assert_closed()

    @virtual_time
    async def test_stream_that_ends_after_its_list_watches_again(self) -> None:
        """Upstream takes it for a very short watch, and relists."""
        server = self.server([added("a", 1), closing_bookmark(9)], [FOREVER])
        await run_for(reflector(server), 60)
        assert server.versions() == [("watch", ""), ("watch", "9")]
        assert server.watches[1].send_initial_events is None
        server.assert_closed()

    @pytest.mark.parametrize("error", [expired_error(), too_large()])
    @virtual_time
    async def test_refused_version_streams_at_once_at_the_most_recent(self, error: Exception) -> None:
        server = self.server(
            [closing_bookmark(9), 10.0, error_event(410, "Gone")], error, [closing_bookmark(12), FOREVER]
        )
        await run_for(reflector(server), 60)
        assert server.versions() == [("watch", ""), ("watch", "9"), ("watch", "")]
        assert server.delays()[1] == 0

    @virtual_time
    async def test_versions_are_used_again_after_a_success(self) -> None:
        """C62: the flag is cleared."""
        gone = error_event(410, "Gone")
        server = self.server(
            expired_error(), [closing_bookmark(12), 10.0, gone], [closing_bookmark(15), FOREVER]
        )
        await run_for(reflector(server), 60)
        assert server.versions() == [("watch", ""), ("watch", ""), ("watch", "12")]

    @virtual_time
    async def test_successful_list_clears_retry_after(self) -> None:
        refused = ApiError(503, "ServiceUnavailable", "", {"retryAfterSeconds": 25})
        server = self.server(refused, [2.0, DamagedError("a bit was turned")], lists=[page(version=5)])
        await run_for(reflector(server), 60)
        assert server.versions() == [("watch", ""), ("list", "0"), ("watch", "5"), ("watch", "5")]
        assert server.delays() == pytest.approx([0, 0, 2.8])

    @virtual_time
    async def test_versions_that_are_always_refused_do_not_spin(self) -> None:
        server = self.server(*[expired_error()] * 50)
        await run_for(reflector(server), 60)
        assert len(server.watches) <= 9

    @virtual_time
    async def test_overload_backs_off_and_streams_again(self) -> None:
        server = self.server(
            too_many_requests(retry_after=7), TransportError("refused"), [closing_bookmark(9), FOREVER]
        )
        await run_for(reflector(server), 60)
        assert server.versions() == [("watch", "")] * 3
        assert server.delays() == pytest.approx([7, 1.6])

    @virtual_time
    async def test_missing_closing_bookmark_falls_back_to_lists_w4(self) -> None:
        """W4: upstream waits forever. W20: upstream tries a stream each time."""
        server = self.server(
            [added("a", 1), bookmark(3), 4.0, bookmark(4), 4.0, bookmark(5), 4.0, bookmark(6), FOREVER],
            [6.0, error_event(410, "Gone")],
            lists=[page(raw_pod("a"), version=5), page(raw_pod("a"), version=6)],
        )
        await run_for(reflector(server), 100)
        assert server.versions() == [
            ("watch", ""), ("list", "0"), ("watch", "5"), ("list", "5"), ("watch", "6"),
        ]  # fmt: skip
        assert server.delays()[0] == pytest.approx(10)
        assert server.watches[-1].send_initial_events is None
        server.assert_closed()

    @virtual_time
    async def test_server_without_watch_list_is_remembered(self) -> None:
        server = self.server(
            ApiError(422, "Invalid"),
            [6.0, error_event(410, "Gone")],
            lists=[page(version=5), page(version=6)],
        )
        await run_for(reflector(server), 100)
        assert [verb for verb, _ in server.versions()] == ["watch", "list", "watch", "list", "watch"]

    @pytest.mark.parametrize(
        "first", [ApiError(422, "Invalid"), [added("a", 1), FOREVER]], ids=["refused", "lost"]
    )
    @virtual_time
    async def test_stream_is_tried_again_after_a_while(self, first: Any) -> None:
        """The bookmark may have been lost, or the server upgraded."""
        gone = error_event(410, "Gone")
        server = self.server(
            first, [200.0, gone], [200.0, gone], [closing_bookmark(9), 20.0, gone], [closing_bookmark(12), FOREVER],
            lists=[page(version=5), page(version=6)],
        )  # fmt: skip
        await run_for(reflector(server), 600)
        streamed = [bool(options.send_initial_events) for options in server.watches]
        assert [verb for verb, _ in server.versions()] == [
            "watch",
            "list",
            "watch",
            "list",
            "watch",
            "watch",
            "watch",
        ]
        assert streamed == [True, False, False, True, True]
        server.assert_closed()

    @pytest.mark.parametrize(
        "unreadable",
        [
            WatchEvent(NO_EVENT, b"half a li"),
            WatchEvent("ADDED", b'{"metadata":{"na'),
            WatchEvent("BOOKMARK", b"[]"),
            closing_bookmark(""),
        ],
    )
    @virtual_time
    async def test_unreadable_event_falls_back_to_a_list(self, unreadable: WatchEvent) -> None:
        """Without it a cached object would count as deleted."""
        errors, store = Errors(), plain_store()
        server = self.server(
            [added("a", 1), unreadable, closing_bookmark(9), FOREVER],
            lists=[page(raw_pod("a", 1), raw_pod("b", 2), version=5)],
        )
        subject = reflector(server, store, watch_error_handler=errors)
        await run_for(subject, 10)
        assert server.versions() == [("watch", ""), ("list", "0"), ("watch", "5")]
        assert content(store) == {"default/a": "1", "default/b": "2"}
        assert [type(error) for error in errors.errors] == [DecodeError]
        server.assert_closed()

    @virtual_time
    async def test_other_error_lists_this_time_only(self) -> None:
        """The next attempt streams again."""
        server = self.server(
            ApiError(500, "InternalError"), [6.0, error_event(410, "Gone")], [closing_bookmark(9), FOREVER],
            lists=[page(version=5)],
        )  # fmt: skip
        await run_for(reflector(server), 100)
        assert server.versions() == [("watch", ""), ("list", "0"), ("watch", "5"), ("watch", "5")]
        assert server.watches[-1].send_initial_events

    @virtual_time
    async def test_a_replace_that_fails_closes_the_stream(self) -> None:
        """W6: upstream leaves it open; C75."""

        class Full(RecordingStore):
            async def replace(self, objects: Sequence[Any], resource_version: str) -> None:
                raise OSError("disk full")

        errors = Errors()
        server = self.server([closing_bookmark(9), FOREVER], lists=[page(version=5)])
        await run_for(reflector(server, Full(), watch_error_handler=errors), 0.5)
        assert str(errors) == "disk full; disk full"
        assert server.versions() == [("watch", ""), ("list", "0")]
        server.assert_closed()

    @pytest.mark.parametrize("where", ["opening", "stream"])
    @virtual_time
    async def test_any_exception_of_a_watch_function_falls_back_to_a_list(self, where: str) -> None:
        """TestWatchList: "returning any other error … forces fallback"."""
        errors, surprise = Errors(), TypeError("unexpected keyword argument")
        server = self.server(surprise if where == "opening" else [surprise], lists=[page(version=5)])
        await run_for(reflector(server, watch_error_handler=errors), 10)
        assert server.versions() == [("watch", ""), ("list", "0"), ("watch", "5")]
        assert errors.errors == [surprise]
        server.assert_closed()

    @virtual_time
    async def test_changes_after_the_bookmark_are_kept_before_an_error(self) -> None:
        store = RecordingStore()
        server = self.server(
            [[closing_bookmark(9), added("a", 10), error_event(410, "Gone")]], [closing_bookmark(12), FOREVER]
        )
        await run_for(reflector(server, store), 10)
        assert store.verbs == [("replace", ([], "9")), ("add", "default/a"), ("replace", ([], "12"))]
        server.assert_closed()

    @virtual_time
    async def test_slow_stream_of_objects_does_not_time_out(self) -> None:
        steps: list[Step] = []
        for n in range(10):
            steps += [added(str(n), n), 8.0]
        store = RecordingStore()
        server = self.server([*steps, closing_bookmark(20), FOREVER])
        await run_for(reflector(server, store), 200)
        assert len(server.watches) == 1
        assert len(store.verbs[0][1][0]) == 10
