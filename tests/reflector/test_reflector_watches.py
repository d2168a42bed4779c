"""What the reflector does after a watch has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from random import Random

import pytest

from aioinformer.errors import DamagedError, IdleTimeoutError, TransportError

from ..virtual_time import virtual_time
from .running import Errors, reflector, run_for
from .scripted import (
    FOREVER,
    RecordingStore,
    Scripted,
    Step,
    added,
    bookmark,
    error_event,
    expired_error,
    page,
    too_many_requests,
)


class TestEndsOfWatches:
    @virtual_time
    async def test_ordinary_end_watches_again_at_once_from_the_last_version(self) -> None:
        server = Scripted([page(version=10)], [[added("a", 11), 300.0], [300.0]])
        await run_for(reflector(server), 700)
        assert server.versions() == [("list", "0"), ("watch", "10"), ("watch", "11"), ("watch", "11")]
        assert server.delays() == pytest.approx([0, 300, 300])
        server.assert_closed()

    @pytest.mark.parametrize("error", [too_many_requests(), TransportError("refused")])
    @virtual_time
    async def test_watch_that_cannot_be_opened_is_retried_without_a_list(self, error: Exception) -> None:
        """C70: one list, five watches; the error handler is called."""
        errors = Errors()
        server = Scripted([page(version=10)], [error] * 4)
        await run_for(reflector(server, watch_error_handler=errors), 300)
        assert server.versions() == [("list", "0")] + [("watch", "10")] * 5
        assert server.delays() == pytest.approx([0, 0.8, 1.6, 3.2, 6.4])
        assert errors.errors == [error] * 4

    @virtual_time
    async def test_retry_after_of_a_watch_applies_once(self) -> None:
        """The next wait is an ordinary one."""
        server = Scripted([page(version=10)], [too_many_requests(retry_after=40), too_many_requests()])
        await run_for(reflector(server), 100)
        assert server.delays() == pytest.approx([0, 40, 1.6])

    @virtual_time
    async def test_expiry_at_the_start_of_a_watch_relists(self) -> None:
        """C73: the error handler is called, and the reflector relists at the last version."""
        errors = Errors()
        server = Scripted([page(version=10), page(version=20)], [expired_error()])
        await run_for(reflector(server, watch_error_handler=errors), 60)
        assert server.versions() == [("list", "0"), ("watch", "10"), ("list", "10"), ("watch", "20")]
        assert [str(error) for error in errors.errors] == ["410 Expired: too old resource version"]

    @virtual_time
    async def test_expiry_in_the_stream_relists_at_the_last_version(self) -> None:
        """C72. Difference from upstream: the watch error handler also gets errors in the stream."""
        errors = Errors()
        server = Scripted(
            [page(version=10), page(version=20)],
            [[added("a", 11), error_event(410, "Expired", "too old"), FOREVER]],
        )
        await run_for(reflector(server, watch_error_handler=errors), 60)
        assert server.versions() == [("list", "0"), ("watch", "10"), ("list", "11"), ("watch", "20")]
        assert str(errors) == "410 Expired: too old"
        server.assert_closed()

    @virtual_time
    async def test_expiry_after_an_outage_relists_at_once(self) -> None:
        """The reflector has already waited. A version that expires right after its list would do so repeatedly."""
        server = Scripted(
            [page(version=10), page(version=20), page(version=30)],
            [
                [6.0, TransportError("cut")],
                TransportError("refused"),
                [error_event(410, "Gone")],
                [error_event(410, "Gone")],
            ],
        )
        await run_for(reflector(server), 60)
        assert server.versions() == [
            ("list", "0"), *[("watch", "10")] * 3, ("list", "10"), ("watch", "20"), ("list", "20"), ("watch", "30"),
        ]  # fmt: skip
        assert server.delays() == pytest.approx([0, 6, 0.8, 0, 0, 1.6, 0])

    @virtual_time
    async def test_repeated_expiry_relists_at_once_only_sometimes(self) -> None:
        """Upstream backs off between any two lists."""
        server = Scripted([page(version=10)] * 600, [[1.0], [error_event(410, "Gone")]] * 600)
        await run_for(reflector(server), 600)
        lists = [time for verb, _, time in server.calls if verb == "list"]
        pauses = [later - earlier for earlier, later in pairwise(lists)]
        assert pauses[:6] == pytest.approx([1, 1.8, 2.6, 4.2, 7.4, 13.8])
        assert len(lists) < 50

    @virtual_time
    async def test_events_before_the_error_are_stored(self) -> None:
        store = RecordingStore()
        server = Scripted([page(version=10)], [[[added("a", 11), error_event(410, "Gone"), added("b", 12)]]])
        subject = reflector(server, store)
        await run_for(subject, 1)
        assert store.verbs[1:] == [("add", "default/a")]
        assert subject.last_sync_resource_version == "11"

    @virtual_time
    async def test_very_short_empty_watch_relists_after_a_backoff(self) -> None:
        """C74. A watch that always closes empty is no hot loop."""
        server = Scripted([page(version=10)] * 100, [()] * 100)
        await run_for(reflector(server), 60)
        assert server.versions()[:4] == [("list", "0"), ("watch", "10"), ("list", "10"), ("watch", "10")]
        assert server.delays()[1::2] == pytest.approx([0.8, 1.6, 3.2, 6.4, 12.8, 25.6])

    @virtual_time
    async def test_a_watch_that_closes_after_one_event_backs_off(self) -> None:
        """W3, C74: upstream asks 328,000 times a second."""
        server = Scripted([page(version=10)], [[added("a", 11)]] * 200)
        await run_for(reflector(server), 3600)
        assert server.versions().count(("list", "0")) == len(server.lists) == 1
        assert len(server.watches) < 135
        assert server.delays()[:10] == pytest.approx([0] * 6 + [0.8, 1.6, 3.2, 6.4])

    @pytest.mark.parametrize("end", [TransportError("cut"), 0.0])
    @virtual_time
    async def test_watches_with_events_cut_each_second_are_reopened_at_once(self, end: Step) -> None:
        """As upstream does."""
        server = Scripted([page(version=10)], [[added("a", 11), 1.0, end]] * 50)
        await run_for(reflector(server), 49)
        assert server.delays() == pytest.approx([0] + [1.0] * 48, abs=1e-6)

    @virtual_time
    async def test_damaged_stream_backs_off(self) -> None:
        """Damage repeats; upstream also backs off."""
        watches: list[Sequence[Step]] = [[added("a", 11), 1.0, DamagedError("a bit was turned")]] * 5
        server = Scripted([page(version=10)], watches)
        await run_for(reflector(server), 10)
        assert server.versions() == [("list", "0"), ("watch", "10"), *[("watch", "11")] * 3]
        assert server.delays() == pytest.approx([0, 1.8, 2.6, 4.2])

    @virtual_time
    async def test_silent_watches_that_a_proxy_ends_are_reopened_at_once(self) -> None:
        server = Scripted([page(version=10)], [[3.0]] * 100)
        await run_for(reflector(server), 100)
        assert server.delays() == pytest.approx([0] + [3.0] * 33)

    @virtual_time
    async def test_a_healthy_watch_resets_the_backoff(self) -> None:
        short: list[Step] = [2.0, too_many_requests()]
        watches: list[Sequence[Step]] = [short, short, short, short, [added("a", 12), 6.0], short]
        server = Scripted([page(version=10)], watches)
        await run_for(reflector(server), 300)
        assert server.delays() == pytest.approx([0, 2.8, 3.6, 5.2, 8.4, 6.0, 2.8])

    @virtual_time
    async def test_a_long_outage_does_not_reset_the_backoff(self) -> None:
        """W1: upstream goes back to 0.8 s every two minutes."""
        server = Scripted([TransportError("refused")] * 1000)
        await run_for(reflector(server), 3600)
        assert server.delays()[6:] == pytest.approx([30.0] * (len(server.delays()) - 6))

    @virtual_time
    async def test_end_of_a_watch_requested_to_be_short_is_healthy(self) -> None:
        server = Scripted([page(version=10)], [[1.0]] * 10)
        await run_for(reflector(server, min_watch_timeout=1.0), 9.5)
        assert server.delays() == pytest.approx([0] + [1.0] * 9)

    @virtual_time
    async def test_server_timeout_is_at_least_a_second(self) -> None:
        server = Scripted([page(version=10)])
        await run_for(reflector(server, min_watch_timeout=0.1), 1)
        assert server.watches[0].timeout_seconds == 1

    @virtual_time
    async def test_429_in_the_stream_backs_off_and_watches_again(self) -> None:
        server = Scripted([page(version=10)], [[error_event(429, "TooManyRequests", retryAfterSeconds=7)]])
        await run_for(reflector(server), 60)
        assert server.versions() == [("list", "0"), ("watch", "10"), ("watch", "10")]
        assert server.delays() == pytest.approx([0, 7])

    @virtual_time
    async def test_internal_errors_relist_by_default(self) -> None:
        """C71."""
        server = Scripted([page(version=10), page(version=11)], [[10.0, error_event(500, "InternalError")]])
        await run_for(reflector(server), 60)
        assert server.versions() == [("list", "0"), ("watch", "10"), ("list", "10"), ("watch", "11")]

    @virtual_time
    async def test_internal_errors_are_retried_for_as_long_as_the_option_says(self) -> None:
        """C71."""
        watches: list[Sequence[Step]] = [[error_event(500, "InternalError")]] * 20
        server = Scripted([page(version=10), page(version=11)], watches)
        await run_for(reflector(server, max_internal_error_retry_duration=10.0), 40)
        # At 0, 0.8, 2.4, 5.6: watched on; at 12: more than 10 s since the first, listed.
        assert server.versions()[:7] == [("list", "0"), *[("watch", "10")] * 5, ("list", "10")]

    @virtual_time
    async def test_each_list_restarts_the_time_for_internal_errors(self) -> None:
        """C71 TestRetryInternalError: the deadline is a watch's, and a list begins another."""
        lists = [page(version=10), page(version=11), page(version=12)]
        gone: list[Step] = [error_event(410, "Gone")]
        failing: list[Sequence[Step]] = [[8.0, error_event(500, "InternalError")]] * 2
        server = Scripted(lists, [[error_event(500, "InternalError")], gone, *failing])
        await run_for(reflector(server, max_internal_error_retry_duration=10.0), 25)
        called = [verb for verb, _ in server.versions()]
        assert called == ["list", "watch", "watch", "list", "watch", "watch", "watch"]

    @virtual_time
    async def test_silent_watch_is_reopened_from_the_last_version(self) -> None:
        """By default, also before the first bookmark. The server may have none, so this is not an error."""
        errors = Errors()
        server = Scripted([page(version=10)], [[20.0, added("a", 11), FOREVER]])
        subject = reflector(server, watch_error_handler=errors, max_silence=0)
        await run_for(subject, 600)
        assert server.versions() == [("list", "0"), ("watch", "10"), *[("watch", "11")] * 7]
        assert server.delays() == pytest.approx([0, 95, *[75] * 6])
        assert errors.errors == []
        assert subject.state.last_error is None
        server.assert_closed()

    @virtual_time
    async def test_watches_opened_together_are_reopened_apart(self) -> None:
        servers = [Scripted([page(version=10)]) for _ in range(20)]
        subjects = [reflector(server, max_silence=0, random=Random(n)) for n, server in enumerate(servers)]
        await asyncio.gather(*(run_for(subject, 100) for subject in subjects))
        silences = [server.delays()[1] for server in servers]
        assert 75 <= min(silences) < max(silences) <= 80
        assert len(set(silences)) == 20

    @pytest.mark.parametrize(("max_silence", "silence"), [(5, 60.0), (200, 200.0)])
    @virtual_time
    async def test_a_server_without_bookmarks_is_asked_once_a_minute_at_most(
        self, max_silence: float, silence: float
    ) -> None:
        server = Scripted([page(version=10)])
        await run_for(reflector(server, max_silence=max_silence), 500)
        assert set(server.delays()[1:]) == {silence}

    @virtual_time
    async def test_watch_open_beyond_its_timeout_is_half_open(self) -> None:
        errors = Errors()
        server = Scripted([page(version=10)])
        await run_for(reflector(server, watch_error_handler=errors), 400)
        assert server.versions() == [("list", "0"), ("watch", "10"), ("watch", "10")]
        assert server.delays() == pytest.approx([0, 305])
        assert [type(error) for error in errors.errors] == [IdleTimeoutError]
        server.assert_closed()

    @pytest.mark.parametrize(("max_silence", "silence"), [(0, 75.0), (90, 90.0)])
    @virtual_time
    async def test_missing_bookmarks_end_the_watch(self, max_silence: float, silence: float) -> None:
        """Also in a later watch. Upstream has HTTP/2 pings."""
        errors = Errors()
        watches: list[Sequence[Step]] = [[60.0, bookmark(11), 60.0, bookmark(12), 30.0], [FOREVER]]
        server = Scripted([page(version=10)], watches)
        await run_for(reflector(server, watch_error_handler=errors, max_silence=max_silence), 300)
        assert server.delays()[:3] == pytest.approx([0, 150, silence])
        assert server.versions()[-1] == ("watch", "12")
        assert [str(error) for error in errors.errors] == [
            f"the watch is open but nothing has arrived for {silence:g} s"
        ]
        server.assert_closed()

    @virtual_time
    async def test_watch_without_an_answer_times_out(self) -> None:
        errors = Errors()
        server = Scripted([page(version=10)], [FOREVER])
        await run_for(reflector(server, watch_error_handler=errors, list_timeout=20.0), 60)
        assert server.versions() == [("list", "0"), ("watch", "10"), ("watch", "10")]
        assert str(errors) == "no answer to a watch for 20 s"

    @virtual_time
    async def test_unknown_error_ends_the_watch_and_calls_the_handler(self) -> None:
        errors = Errors()
        server = Scripted([page(version=10)] * 2, [[ZeroDivisionError("a stream of a user's")]])
        await run_for(reflector(server, watch_error_handler=errors), 10)
        assert str(errors) == "a stream of a user's"
        assert [verb for verb, _ in server.versions()] == ["list", "watch"] * 2
        server.assert_closed()
