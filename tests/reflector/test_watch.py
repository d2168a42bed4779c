"""What a watch's end means, and when one is late: the rules, and the stream around which they stand."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from aioinformer.errors import ApiError, DamagedError, IdleTimeoutError, TransportError
from aioinformer.objects.meta import ListOptions
from aioinformer.reflector.watch import (
    Allowance,
    InternalErrorRetries,
    Next,
    OpenWatch,
    Pulse,
    after_end,
    after_failed_start,
    open_watch,
)

from ..virtual_time import virtual_time
from .scripted import FOREVER, Scripted, Stream, added, bookmark, expired, too_many_requests

INTERNAL = ApiError(500, "InternalError", "etcd is away")


class TestAfterFailedStart:
    @pytest.mark.parametrize(
        "error", [too_many_requests(), TransportError("refused"), IdleTimeoutError("silent")]
    )
    def test_overload_and_refusal_say_nothing_about_the_version(self, error: Exception) -> None:
        """C70: watch again, no relist."""
        assert after_failed_start(error) is Next.BACK_OFF_AND_REWATCH

    @pytest.mark.parametrize(
        "error", [expired(), ApiError(403, "Forbidden"), INTERNAL, ValueError("anything")]
    )
    def test_all_else_lists_again(self, error: Exception) -> None:
        """C73: a 410 at the start is an error of list_and_watch."""
        assert after_failed_start(error) is Next.RELIST


class TestAfterEnd:
    def after(
        self,
        error: Exception | None,
        lived: float = 300.0,
        events: int = 10,
        healthy: bool = True,
        retry_internal_error: bool = False,
        allowance: Allowance | None = None,
    ) -> Next:
        return after_end(
            error,
            lived,
            events,
            healthy=healthy,
            retry_internal_error=retry_internal_error,
            allowance=allowance or Allowance(),
        )

    def test_an_ordinary_end_watches_on_at_once(self) -> None:
        assert self.after(None) is Next.REWATCH

    def test_a_cut_of_a_healthy_watch_watches_on_at_once(self) -> None:
        assert self.after(TransportError("reset by peer")) is Next.REWATCH

    def test_a_very_short_empty_watch_lists_again(self) -> None:
        """C74: less than a second, no event: VeryShortWatchError upstream."""
        assert self.after(None, lived=0.99, events=0, healthy=False) is Next.RELIST
        assert self.after(TransportError("cut"), lived=0.5, events=0, healthy=False) is Next.RELIST

    def test_a_short_watch_with_events_is_opened_again_at_once(self) -> None:
        assert self.after(None, lived=0.1, events=1, healthy=False) is Next.REWATCH
        assert self.after(TransportError("cut"), lived=0.1, events=1, healthy=False) is Next.REWATCH

    def test_so_is_one_that_was_silent_for_a_second(self) -> None:
        """Upstream's rule, too."""
        assert self.after(None, lived=1.0, events=0, healthy=False) is Next.REWATCH
        assert self.after(TransportError("cut"), lived=1.0, events=0, healthy=False) is Next.REWATCH

    def test_not_one_of_damaged_bytes(self) -> None:
        damaged = DamagedError("a bit was turned")
        assert self.after(damaged, lived=4.9, events=9, healthy=False) is Next.BACK_OFF_AND_REWATCH

    def test_short_watches_do_not_spin(self) -> None:
        """W3: upstream re-watches 300,000 times a second against a server that closes after one event."""
        allowance = Allowance()
        steps = [
            self.after(None, lived=0.01, events=1, healthy=False, allowance=allowance) for _ in range(20)
        ]
        assert steps == [Next.REWATCH] * 5 + [Next.BACK_OFF_AND_REWATCH] * 15
        assert self.after(None, lived=60, events=1, allowance=allowance) is Next.REWATCH
        assert self.after(None, lived=0.01, events=1, healthy=False, allowance=allowance) is Next.REWATCH

    def test_expiry_lists_again(self) -> None:
        """C72."""
        assert self.after(expired()) is Next.RELIST
        assert self.after(ApiError(410, "Gone")) is Next.RELIST

    def test_429_in_the_stream_backs_off(self) -> None:
        assert self.after(too_many_requests()) is Next.BACK_OFF_AND_REWATCH

    def test_internal_errors_are_ridden_out_only_when_asked(self) -> None:
        """C71."""
        assert self.after(INTERNAL) is Next.RELIST
        assert self.after(INTERNAL, retry_internal_error=True) is Next.BACK_OFF_AND_REWATCH

    def test_a_store_that_fails_lists_again(self) -> None:
        assert self.after(ValueError("the store")) is Next.RELIST


class TestAllowance:
    def test_a_second_of_life_each(self) -> None:
        allowance = Allowance()
        assert all(allowance.take(1.0) for _ in range(100))
        assert [allowance.take(0.5) for _ in range(14)] == [True] * 8 + [False, True] * 3


class TestInternalErrorRetries:
    def test_off_by_default(self) -> None:
        """C71: 0 means no retries."""
        assert not InternalErrorRetries(0).allow(1.0)

    def test_thirty_seconds_at_one_second_steps_are_31(self) -> None:
        """C71."""
        retries = InternalErrorRetries(30)
        assert [retries.allow(100.0 + second) for second in range(33)] == [True] * 31 + [False] * 2

    def test_a_quiet_minute_begins_anew(self) -> None:
        retries = InternalErrorRetries(30)
        assert retries.allow(0.0)
        assert not retries.allow(31.0)
        assert retries.allow(91.0)

    def test_errors_without_a_quiet_minute_do_not(self) -> None:
        retries = InternalErrorRetries(30)
        assert [retries.allow(50.0 * n) for n in range(4)] == [True, False, False, False]


class TestOpenWatch:
    @virtual_time
    async def test_events_come_as_lists(self) -> None:
        watch = OpenWatch(Stream(added("a", 1), [added("b", 2), added("c", 3)]), 0, 300)
        assert await watch.next_batch() == [added("a", 1)]
        assert await watch.next_batch() == [added("b", 2), added("c", 3)]
        assert await watch.next_batch() is None

    @virtual_time
    async def test_silence_beyond_the_servers_timeout_is_a_half_open_connection(self) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        watch = OpenWatch(Stream(FOREVER), started, 30)
        with pytest.raises(IdleTimeoutError):
            await watch.next_batch()
        assert loop.time() - started == pytest.approx(35)

    @virtual_time
    async def test_each_arrival_begins_the_silence_anew(self) -> None:
        watch = OpenWatch(Stream(70.0, added("a", 1), 70.0, [], 70.0, added("b", 2), 70.0), 0, 300)
        assert await watch.next_batch()
        assert await watch.next_batch() == []
        assert await watch.next_batch()
        assert await watch.next_batch() is None

    @virtual_time
    async def test_an_earlier_deadline(self) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        with pytest.raises(IdleTimeoutError):
            await OpenWatch(Stream(FOREVER), started, 300).next_batch(deadline=started + 10)
        assert loop.time() - started == pytest.approx(10)

    @virtual_time
    async def test_a_timeout_of_the_streams_own_is_a_transport_error(self) -> None:
        with pytest.raises(TransportError, match="timed out") as caught:
            await OpenWatch(Stream(TimeoutError("read")), 0, 300).next_batch()
        assert not isinstance(caught.value, IdleTimeoutError)

    @virtual_time
    async def test_closing_happens_once(self) -> None:
        """C75."""
        stream = Stream(FOREVER)
        watch = OpenWatch(stream, 0, 300)
        await watch.aclose()
        await watch.aclose()
        assert stream.closed == 1
        assert await watch.next_batch() is None

    @virtual_time
    async def test_a_stream_that_cannot_be_closed_is_left(self) -> None:
        class Endless:
            def __aiter__(self) -> Endless:
                return self

            async def __anext__(self) -> list[object]:
                return []

        await OpenWatch(Endless(), 0, 300).aclose()  # type: ignore[arg-type]

    def test_healthy_after_five_seconds_or_the_time_asked_for(self) -> None:
        watch = OpenWatch(Stream(), 100.0, 300)
        assert not watch.is_healthy(104.9)
        assert watch.is_healthy(105.0)
        assert OpenWatch(Stream(), 100.0, 1).is_healthy(101.0)

    @virtual_time
    async def test_where_bookmarks_come_regularly_their_absence_is_a_half_open_connection(self) -> None:
        loop, pulse = asyncio.get_running_loop(), Pulse()
        started = loop.time()
        watch = OpenWatch(Stream(60.0, bookmark(1), 60.0, bookmark(2), FOREVER), started, 600, pulse=pulse)
        for _ in range(2):
            assert await watch.next_batch()
            watch.bookmark_came(loop.time())
        with pytest.raises(IdleTimeoutError):
            await watch.next_batch()
        assert loop.time() - started == pytest.approx(60 + 60 + 75)
        # They may not come any more: that is learned again.
        assert await OpenWatch(Stream(FOREVER), started, 600, pulse=pulse).next_batch() is None
        assert loop.time() - started == pytest.approx(195 + 75)

    @virtual_time
    async def test_what_was_learned_is_known_to_the_watches_that_follow(self) -> None:
        pulse = Pulse()
        pulse.bookmarks_came(60)
        with pytest.raises(IdleTimeoutError):
            await OpenWatch(Stream(FOREVER), 0, 600, pulse=pulse).next_batch()

    @virtual_time
    async def test_where_none_come_silence_is_an_ordinary_end(self) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        watch = OpenWatch(Stream(60.0, bookmark(1), FOREVER), started, 600, pulse=Pulse(90))
        assert await watch.next_batch()
        watch.bookmark_came(loop.time())
        assert await watch.next_batch() is None
        assert loop.time() - started == pytest.approx(60 + 90)


class TestPulse:
    def test_bookmarks_that_are_rarer_than_silence_may_last_are_not_expected(self) -> None:
        pulse = Pulse(90)
        pulse.bookmarks_came(91)
        assert not pulse.was_silent()
        pulse.bookmarks_came(89)
        assert (pulse.was_silent(), pulse.was_silent()) == (True, False)

    def test_less_than_a_minute_counts_where_bookmarks_come(self) -> None:
        pulse = Pulse(30)
        assert pulse.longest_silence() == 60
        pulse.bookmarks_came(20)
        assert pulse.longest_silence() == 30


class TestOpening:
    """By anybody's ListerWatcher: what the network raises is a TransportError."""

    @pytest.mark.parametrize(
        "error",
        [OSError("of the network"), TimeoutError("of the network"), aiohttp.ClientError("of the network")],
    )
    @virtual_time
    async def test_what_the_network_raises(self, error: Exception) -> None:
        with pytest.raises(TransportError, match="of the network") as caught:
            await open_watch(Scripted(watches=[error]), ListOptions(resource_version="1"), 60)
        assert caught.value.__cause__ is error
        watch = await open_watch(Scripted(watches=[[error]]), ListOptions(resource_version="1"), 60)
        with pytest.raises(TransportError, match="of the network") as caught:
            await watch.next_batch()
        assert caught.value.__cause__ is error

    @virtual_time
    async def test_errors_of_others_are_passed_on(self) -> None:
        with pytest.raises(ZeroDivisionError):
            await open_watch(Scripted(watches=[ZeroDivisionError()]), ListOptions(), 60)

    @virtual_time
    async def test_what_is_never_answered_is_given_up(self) -> None:
        with pytest.raises(TransportError, match="no answer to a watch for 20 s"):
            await open_watch(Scripted(watches=[FOREVER]), ListOptions(), 20)

    @pytest.mark.parametrize(("version", "from_any"), [("", True), ("0", True), ("7", False)])
    @virtual_time
    async def test_from_any_version(self, version: str, from_any: bool) -> None:
        watch = await open_watch(Scripted(), ListOptions(resource_version=version), 60)
        assert watch.from_any is from_any
