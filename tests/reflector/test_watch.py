"""An open watch: its events, its end and its limit of silence."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from aioinformer.errors import IdleTimeoutError, TransportError
from aioinformer.objects.meta import ListOptions
from aioinformer.reflector.watch import (
    OpenWatch,
    Pulse,
    open_watch,
)

from ..virtual_time import virtual_time
from .scripted import FOREVER, Scripted, Stream, added, bookmark


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
    async def test_each_event_restarts_the_silence(self) -> None:
        watch = OpenWatch(Stream(70.0, added("a", 1), 70.0, [], 70.0, added("b", 2), 70.0), 0, 300)
        assert await watch.next_batch()
        assert await watch.next_batch() == []
        assert await watch.next_batch()
        assert await watch.next_batch() is None

    @virtual_time
    async def test_deadline_replaces_the_limit_of_silence(self) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        with pytest.raises(IdleTimeoutError):
            await OpenWatch(Stream(FOREVER), started, 300).next_batch(deadline=started + 10)
        assert loop.time() - started == pytest.approx(10)

    @virtual_time
    async def test_timeout_raised_by_the_stream_is_a_transport_error(self) -> None:
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
    async def test_stream_that_does_not_close_is_left_after_a_while(self) -> None:
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
    async def test_missing_regular_bookmarks_mean_a_half_open_connection(self) -> None:
        loop, pulse = asyncio.get_running_loop(), Pulse()
        started = loop.time()
        watch = OpenWatch(Stream(60.0, bookmark(1), 60.0, bookmark(2), FOREVER), started, 600, pulse=pulse)
        for _ in range(2):
            assert await watch.next_batch()
            watch.record_bookmark(loop.time())
        with pytest.raises(IdleTimeoutError):
            await watch.next_batch()
        assert loop.time() - started == pytest.approx(60 + 60 + 75)
        # They may not come any more: that is learned again.
        assert await OpenWatch(Stream(FOREVER), started, 600, pulse=pulse).next_batch() is None
        assert loop.time() - started == pytest.approx(195 + 75)

    @virtual_time
    async def test_later_watches_expect_bookmarks_too(self) -> None:
        pulse = Pulse()
        pulse.record_interval(60)
        with pytest.raises(IdleTimeoutError):
            await OpenWatch(Stream(FOREVER), 0, 600, pulse=pulse).next_batch()

    @virtual_time
    async def test_silence_without_bookmarks_is_an_ordinary_end(self) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        watch = OpenWatch(Stream(60.0, bookmark(1), FOREVER), started, 600, pulse=Pulse(90))
        assert await watch.next_batch()
        watch.record_bookmark(loop.time())
        assert await watch.next_batch() is None
        assert loop.time() - started == pytest.approx(60 + 90)


class TestPulse:
    def test_bookmarks_rarer_than_the_limit_are_not_expected(self) -> None:
        pulse = Pulse(90)
        pulse.record_interval(91)
        assert not pulse.record_silence()
        pulse.record_interval(89)
        assert (pulse.record_silence(), pulse.record_silence()) == (True, False)

    def test_limit_below_a_minute_applies_if_bookmarks_arrive(self) -> None:
        pulse = Pulse(30)
        assert pulse.longest_silence == 60
        pulse.record_interval(20)
        assert pulse.longest_silence == 30


class TestOpening:
    """With any ListerWatcher. Network errors are TransportError."""

    @pytest.mark.parametrize(
        "error",
        [OSError("of the network"), TimeoutError("of the network"), aiohttp.ClientError("of the network")],
    )
    @virtual_time
    async def test_network_error_is_a_transport_error(self, error: Exception) -> None:
        with pytest.raises(TransportError, match="of the network") as caught:
            await open_watch(Scripted(watches=[error]), ListOptions(resource_version="1"), 60)
        assert caught.value.__cause__ is error
        watch = await open_watch(Scripted(watches=[[error]]), ListOptions(resource_version="1"), 60)
        with pytest.raises(TransportError, match="of the network") as caught:
            await watch.next_batch()
        assert caught.value.__cause__ is error

    @virtual_time
    async def test_other_errors_are_passed_on(self) -> None:
        with pytest.raises(ZeroDivisionError):
            await open_watch(Scripted(watches=[ZeroDivisionError()]), ListOptions(), 60)

    @virtual_time
    async def test_opening_without_an_answer_times_out(self) -> None:
        with pytest.raises(TransportError, match="no answer to a watch for 20 s"):
            await open_watch(Scripted(watches=[FOREVER]), ListOptions(), 20)

    @pytest.mark.parametrize(("version", "from_any"), [("", True), ("0", True), ("7", False)])
    @virtual_time
    async def test_from_any_is_true_for_empty_and_zero_versions(self, version: str, from_any: bool) -> None:
        watch = await open_watch(Scripted(), ListOptions(resource_version=version), 60)
        assert watch.from_any is from_any
