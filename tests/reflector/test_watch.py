"""What a watch's end means, and when one is late: the rules, and the stream around which they stand."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer.errors import ApiError, IdleTimeoutError, TransportError
from aioinformer.reflector.watch import InternalErrorRetries, Next, OpenWatch, after_end, after_failed_start

from ..virtual_time import virtual_time
from .scripted import FOREVER, Stream, added, expired, too_many_requests

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
    ) -> Next:
        return after_end(error, lived, events, healthy=healthy, retry_internal_error=retry_internal_error)

    def test_an_ordinary_end_watches_on_at_once(self) -> None:
        assert self.after(None) is Next.REWATCH

    def test_a_cut_of_a_healthy_watch_watches_on_at_once(self) -> None:
        assert self.after(TransportError("reset by peer")) is Next.REWATCH

    def test_a_very_short_empty_watch_lists_again(self) -> None:
        """C74: less than a second, no event: VeryShortWatchError upstream."""
        assert self.after(None, lived=0.99, events=0, healthy=False) is Next.RELIST
        assert self.after(TransportError("cut"), lived=0.5, events=0, healthy=False) is Next.RELIST

    def test_a_short_watch_with_one_event_does_not_spin(self) -> None:
        """W3: upstream re-watches 300,000 times a second against a server that closes after one event."""
        assert self.after(None, lived=0.1, events=1, healthy=False) is Next.BACK_OFF_AND_REWATCH
        assert self.after(None, lived=4.9, events=0, healthy=False) is Next.BACK_OFF_AND_REWATCH

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
        watch = OpenWatch(Stream(FOREVER), started, 300)
        with pytest.raises(IdleTimeoutError):
            await watch.next_batch()
        assert loop.time() - started == pytest.approx(305)

    @virtual_time
    async def test_each_arrival_begins_the_silence_anew(self) -> None:
        watch = OpenWatch(Stream(200.0, added("a", 1), 200.0, added("b", 2), 200.0), 0, 300)
        assert await watch.next_batch()
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
