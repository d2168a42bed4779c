"""The reflector on a server that streams the initial state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from aioinformer.api import NOT_OLDER_THAN, ListOptions
from aioinformer.errors import ApiError, TransportError

from ..virtual_time import virtual_time
from .running import Errors, reflector, run_for
from .scripted import (
    FOREVER,
    Recorder,
    Scripted,
    Step,
    added,
    bookmark,
    closing_bookmark,
    error_event,
    expired,
    page,
    pod,
    too_large,
    too_many_requests,
)


class TestWatchList:
    def server(self, *watches: Any, lists: Sequence[Any] = ()) -> Scripted:
        return Scripted(lists, watches, watch_list_semantics=True)

    @virtual_time
    async def test_the_stream_is_the_initial_state_and_then_the_watch(self) -> None:
        """C61, C67."""
        store = Recorder()
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
    async def test_off_and_on_by_option(self) -> None:
        server = self.server(lists=[page(version=1)])
        await run_for(reflector(server, use_watch_list=False), 1)
        assert server.versions() == [("list", "0"), ("watch", "1")]
        server = Scripted([], [[closing_bookmark(9), FOREVER]])
        await run_for(reflector(server, use_watch_list=True), 1)
        assert server.versions() == [("watch", "")]

    @virtual_time
    async def test_broken_off_before_the_bookmark_it_begins_anew(self) -> None:
        """C69: with nothing of the first try. W3: after a backoff."""
        store = Recorder()
        server = self.server([added("a", 1)], [added("b", 2), closing_bookmark(9), FOREVER])
        await run_for(reflector(server, store), 60)
        assert store.verbs == [("replace", (["default/b"], "9"))]
        assert server.delays() == pytest.approx([0.8])
        server.assert_closed()

    @virtual_time
    async def test_broken_off_again_and_again_the_state_comes_by_a_list(self) -> None:
        """W20: streams that are always ended early; the next attempt streams again."""
        server = self.server(
            [added("a", 1)], [added("a", 1), TransportError("cut")], [added("a", 1)], [6.0, error_event(410, "Gone")],
            [closing_bookmark(9), FOREVER], lists=[page(pod("a"), version=5)],
        )  # fmt: skip
        await run_for(reflector(server), 60)
        assert server.versions() == [*[("watch", "")] * 3, ("list", "0"), ("watch", "5"), ("watch", "5")]
        assert server.watches[-1].send_initial_events
        server.assert_closed()

    @virtual_time
    async def test_ended_after_the_bookmark_it_is_an_ordinary_watch(self) -> None:
        """C69: no relist."""
        server = self.server([closing_bookmark(9), added("a", 10), 300.0])
        await run_for(reflector(server), 400)
        assert server.versions() == [("watch", ""), ("watch", "10")]
        assert server.watches[1].send_initial_events is None

    @pytest.mark.parametrize("error", [expired(), too_large()])
    @virtual_time
    async def test_a_refused_version_gives_way_at_once_to_the_most_recent(self, error: Exception) -> None:
        server = self.server(
            [closing_bookmark(9), 10.0, error_event(410, "Gone")], error, [closing_bookmark(12), FOREVER]
        )
        await run_for(reflector(server), 60)
        assert server.versions() == [("watch", ""), ("watch", "9"), ("watch", "")]
        assert server.delays()[1] == 0

    @virtual_time
    async def test_after_a_success_versions_are_asked_for_again(self) -> None:
        """C62: the flag is cleared."""
        gone = error_event(410, "Gone")
        server = self.server(expired(), [closing_bookmark(12), 10.0, gone], [closing_bookmark(15), FOREVER])
        await run_for(reflector(server), 60)
        assert server.versions() == [("watch", ""), ("watch", ""), ("watch", "12")]

    @virtual_time
    async def test_a_retry_after_that_a_list_went_around_is_forgotten(self) -> None:
        refused = ApiError(503, "ServiceUnavailable", "", {"retryAfterSeconds": 25})
        server = self.server(refused, [added("a", 6)], lists=[page(version=5)])
        await run_for(reflector(server), 60)
        assert server.versions() == [("watch", ""), ("list", "0"), ("watch", "5"), ("watch", "6")]
        assert server.delays() == pytest.approx([0, 0, 0.8])

    @virtual_time
    async def test_versions_that_are_always_refused_do_not_spin(self) -> None:
        server = self.server(*[expired()] * 50)
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
    async def test_without_the_closing_bookmark_it_lists_and_remembers(self) -> None:
        """W4: upstream waits for ever. W20: upstream asks again each time."""
        server = self.server(
            [added("a", 1), bookmark(3), 4.0, bookmark(4), 4.0, bookmark(5), 4.0, bookmark(6), FOREVER],
            [6.0, error_event(410, "Gone")],
            lists=[page(pod("a"), version=5), page(pod("a"), version=6)],
        )
        await run_for(reflector(server), 100)
        assert server.versions() == [
            ("watch", ""), ("list", "0"), ("watch", "5"), ("list", "5"), ("watch", "6"),
        ]  # fmt: skip
        assert server.delays()[0] == pytest.approx(10)
        assert server.watches[-1].send_initial_events is None
        server.assert_closed()

    @virtual_time
    async def test_a_server_that_knows_no_such_thing_is_remembered(self) -> None:
        server = self.server(
            ApiError(422, "Invalid"),
            [6.0, error_event(410, "Gone")],
            lists=[page(version=5), page(version=6)],
        )
        await run_for(reflector(server), 100)
        assert [verb for verb, _ in server.versions()] == ["watch", "list", "watch", "list", "watch"]

    @virtual_time
    async def test_any_other_error_lists_this_time_only(self) -> None:
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
        """W6: upstream leaves it open."""

        class Full(Recorder):
            async def replace(self, objects: Sequence[Any], resource_version: str) -> None:
                raise OSError("disk full")

        errors = Errors()
        server = self.server([closing_bookmark(9), FOREVER], [closing_bookmark(9), FOREVER])
        await run_for(reflector(server, Full(), watch_error_handler=errors), 1)
        assert str(errors) == "disk full; disk full"
        server.assert_closed()

    @virtual_time
    async def test_changes_behind_the_bookmark_with_an_error(self) -> None:
        store = Recorder()
        server = self.server(
            [[closing_bookmark(9), added("a", 10), error_event(410, "Gone")]], [closing_bookmark(12), FOREVER]
        )
        await run_for(reflector(server, store), 10)
        assert store.verbs == [("replace", ([], "9")), ("add", "default/a"), ("replace", ([], "12"))]
        server.assert_closed()

    @virtual_time
    async def test_a_slow_stream_of_objects_is_not_given_up(self) -> None:
        steps: list[Step] = []
        for n in range(10):
            steps += [added(str(n), n), 8.0]
        store = Recorder()
        server = self.server([*steps, closing_bookmark(20), FOREVER])
        await run_for(reflector(server, store), 200)
        assert len(server.watches) == 1
        assert len(store.verbs[0][1][0]) == 10
