"""RetryWatcher: one watch that survives disconnects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import pytest

from aioinformer import (
    ApiError,
    Client,
    ConfigError,
    KubeObject,
    ListOptions,
    ListWatch,
    Resource,
    RetryWatcher,
    TransportError,
    WatchEvent,
)
from aioinformer.cache import DeletedFinalStateUnknown, ListResult, UndecodableObject
from aioinformer.errors import ClientClosedError, DecodeError

from ..reflector.running import NoJitter
from ..reflector.scripted import (
    FOREVER,
    Scripted,
    Stream,
    added,
    bookmark,
    deleted,
    error_event,
    expired_error,
    modified,
    raw_pod,
    too_many_requests,
)
from ..virtual_time import settle, virtual_time


def watcher(server: Scripted, version: str = "10", **options: Any) -> RetryWatcher[KubeObject]:
    return RetryWatcher(server, version, random=NoJitter(), **options)


def make_scripted(*watches: Any) -> Scripted:
    return Scripted([], watches)


def summarize(event: WatchEvent) -> str:
    if event.type == "ERROR":
        return f"ERROR {event.object['code']} {event.object['reason']}"
    return f"{event.type} {event.object.name} {event.object.resource_version}"


async def all_of(subject: RetryWatcher[Any]) -> list[str]:
    """Collect all events until the end."""
    return [summarize(event) async for event in subject]


async def first(count: int, subject: RetryWatcher[Any]) -> list[str]:
    return [summarize(await anext(subject)) for _ in range(count)]


class TestGoingOn:
    @virtual_time
    async def test_new_watch_continues_from_the_last_version(self) -> None:
        server = make_scripted(
            [added("a", 11), [modified("a", 12), deleted("a", 13)]], [added("b", 14), FOREVER]
        )
        async with watcher(server) as subject:
            assert await first(4, subject) == ["ADDED a 11", "MODIFIED a 12", "DELETED a 13", "ADDED b 14"]
            assert subject.resource_version == "14"
        assert server.watches == [
            ListOptions(resource_version=version, allow_watch_bookmarks=True, timeout_seconds=300)
            for version in ("10", "13")
        ]
        assert not server.lists
        server.assert_closed()

    @virtual_time
    async def test_bookmarks_move_the_version_and_are_not_returned(self) -> None:
        server = make_scripted([bookmark(15)], [added("a", 16), FOREVER])
        async with watcher(server) as subject:
            assert await first(1, subject) == ["ADDED a 16"]
        assert server.versions() == [("watch", "10"), ("watch", "15")]

    @virtual_time
    async def test_objects_have_the_requested_type(self) -> None:
        server = make_scripted([added("a", 11), bookmark(12), FOREVER])
        async with RetryWatcher(server, "10", dict[str, Any]) as subject:
            event = await anext(subject)
            assert event.object["metadata"]["name"] == "a"

    @pytest.mark.parametrize(
        "trouble",
        [
            TransportError("refused"),
            ApiError(500, "InternalError"),
            ApiError(404, "NotFound"),
            [TransportError("cut")],
            OSError("of a lister that is no ListWatch"),
            TimeoutError("likewise"),
            aiohttp.ClientError("likewise"),
            [OSError("likewise, in the stream")],
            [error_event(500, "InternalError")],
            [error_event(504, "Timeout")],
            [error_event(418, "Teapot")],
            [error_event(401, "Unauthorized")],
            [error_event(403, "Forbidden")],
            [WatchEvent("", b"upstream timed out")],
            [WatchEvent("ERROR", b"<html>")],
        ],
    )
    @virtual_time
    async def test_transient_errors_are_retried(self, trouble: Any) -> None:
        server = make_scripted(trouble, trouble, [added("a", 11), FOREVER])
        async with watcher(server) as subject:
            assert await first(1, subject) == ["ADDED a 11"]
        assert server.versions() == [("watch", "10")] * 3
        server.assert_closed()

    @virtual_time
    async def test_watches_start_at_most_once_a_second(self) -> None:
        """Counted from the start of a watch: a long watch is followed by the next one at once."""
        server = make_scripted([added("a", 11)], [0.7], [30.0], TransportError("refused"), [added("b", 12)])
        async with watcher(server) as subject:
            await first(2, subject)
        assert server.delays() == pytest.approx([1, 1, 30, 1])

    @virtual_time
    async def test_minimum_restart_delay_is_configurable(self) -> None:
        server = make_scripted([added("a", 11)], [added("b", 12), FOREVER])
        async with watcher(server, min_restart_delay=5.0) as subject:
            await first(2, subject)
        assert server.delays() == pytest.approx([5])

    @virtual_time
    async def test_retry_after_is_respected_on_opening_and_in_the_stream(self) -> None:
        server = make_scripted(
            too_many_requests(retry_after=7),
            [3.0, error_event(429, "TooManyRequests", retryAfterSeconds=9)],
            [added("b", 12), FOREVER],
        )
        async with watcher(server) as subject:
            await first(1, subject)
        assert server.delays() == pytest.approx([7, 12])

    @pytest.mark.parametrize(("status", "reason"), [(401, "Unauthorized"), (403, "Forbidden")])
    @virtual_time
    async def test_retry_after_of_a_refusal_in_the_stream_is_respected(
        self, status: int, reason: str
    ) -> None:
        server = make_scripted(
            [3.0, error_event(status, reason, retryAfterSeconds=9)], [added("b", 12), FOREVER]
        )
        async with watcher(server) as subject:
            await first(1, subject)
        assert server.delays() == pytest.approx([12])

    @pytest.mark.parametrize(
        ("watches", "delays"),
        [
            ([], [1.0] * 4),
            ([TransportError("refused")] * 5, [1.0] * 4),
            ([too_many_requests(retry_after=3)], [3.0, 1.0]),
        ],
    )
    @virtual_time
    async def test_restart_delay_holds_for_reads_with_short_timeouts(
        self, watches: list[Any], delays: list[float]
    ) -> None:
        server = make_scripted(*watches)
        async with watcher(server) as subject:
            for _ in range(49):
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await anext(subject)
        assert server.delays() == pytest.approx(delays, abs=0.01)
        server.assert_closed()

    @pytest.mark.parametrize("patience", [0.5, 0.25, 0.1])
    @virtual_time
    async def test_cancelled_opening_causes_no_delay(self, patience: float) -> None:
        """Otherwise a read with a short timeout would be cancelled before its watch opens, each time."""

        class Slow(Scripted):
            async def watch(self, options: ListOptions) -> Stream:
                await asyncio.sleep(0.03)
                return await super().watch(options)

        server = Slow([], [[FOREVER], [added("a", 11), FOREVER]])
        looks = 0
        async with watcher(server) as subject:
            while True:
                looks += 1
                try:
                    async with asyncio.timeout(patience):
                        assert summarize(await anext(subject)) == "ADDED a 11"
                    break
                except TimeoutError:
                    assert looks < 20
        server.assert_closed()

    @virtual_time
    async def test_silence_beyond_the_requested_timeout_reopens_the_watch(self) -> None:
        server = make_scripted([FOREVER], [added("a", 11), FOREVER])
        async with watcher(server, min_watch_timeout=60.0) as subject:
            assert await first(1, subject) == ["ADDED a 11"]
        assert server.delays() == pytest.approx([65])
        server.assert_closed()

    @virtual_time
    async def test_silence_by_default_opens_another_watch_from_the_last_version(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Logged as a warning only if bookmarks arrived before: a server may not send any."""
        bookmarks = [60.0, bookmark(11), 60.0, bookmark(12), FOREVER]
        server = make_scripted([FOREVER], bookmarks, [added("a", 13), FOREVER])
        async with watcher(server) as subject:
            assert await first(1, subject) == ["ADDED a 13"]
        assert server.versions() == [("watch", "10"), ("watch", "10"), ("watch", "12")]
        assert server.delays() == pytest.approx([75, 195])
        assert [record.message for record in caplog.records if record.levelname == "WARNING"] == [
            "scripted pods at 12: the watch is open but nothing has arrived for 75 s; retrying"
        ]
        server.assert_closed()

    @virtual_time
    async def test_watch_without_an_answer_times_out(self) -> None:
        server = make_scripted(FOREVER, [added("a", 11), FOREVER])
        async with watcher(server) as subject:
            assert await first(1, subject) == ["ADDED a 11"]
        assert server.delays() == pytest.approx([60])

    @virtual_time
    async def test_outage_is_logged_once(self, caplog: pytest.LogCaptureFixture) -> None:
        server = make_scripted(
            *[TransportError("refused")] * 5, [added("a", 11)], TransportError("again"), []
        )
        async with watcher(server) as subject:
            await first(1, subject)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1.5):
                    await anext(subject)
        assert [record.message for record in caplog.records if record.levelname == "WARNING"] == [
            "scripted pods at 10: refused; retrying",
            "scripted pods at 11: again; retrying",
        ]


class TestTheEnd:
    @pytest.mark.parametrize("version", ["", "0", "007", "a\nb"])
    def test_invalid_versions_are_refused(self, version: str) -> None:
        with pytest.raises(ConfigError, match=r"resource_version must be .* with an object or a list"):
            watcher(Scripted(), version)

    async def test_object_without_watch_is_refused(self) -> None:
        client = Client.from_url("http://127.0.0.1:1")
        with pytest.raises(
            ConfigError, match=r"list_watch must be one such as ListWatch\..*, which has no watch"
        ):
            RetryWatcher(Resource(client, "v1", "pods"), "10")  # type: ignore[call-overload]

    @pytest.mark.parametrize("option", ["min_restart_delay", "min_watch_timeout"])
    def test_invalid_durations_are_refused(self, option: str) -> None:
        with pytest.raises(ConfigError, match=option):
            RetryWatcher(Scripted(), "10", **{option: float("nan")})  # type: ignore[call-overload]

    @virtual_time
    async def test_expiry_in_the_stream_is_returned_and_ends_the_events(self) -> None:
        server = make_scripted([added("a", 11), error_event(410, "Expired"), added("b", 12)])
        assert await all_of(watcher(server)) == ["ADDED a 11", "ERROR 410 Expired"]
        server.assert_closed()

    @virtual_time
    async def test_unreadable_event_is_returned_as_error_and_ends_the_events(self) -> None:
        """A retry would receive the same endless line again."""
        server = make_scripted([added("a", 11), DecodeError("more than 9 bytes have come")])
        assert await all_of(watcher(server)) == ["ADDED a 11", "ERROR 500 InternalError"]
        server.assert_closed()

    @virtual_time
    async def test_expiry_on_opening_ends_the_events_w22(self) -> None:
        """Upstream retries the same version each second, for ever."""
        server = make_scripted([added("a", 11)], expired_error())
        subject = watcher(server)
        assert await all_of(subject) == ["ADDED a 11", "ERROR 410 Expired"]
        assert server.versions() == [("watch", "10"), ("watch", "11")]
        with pytest.raises(StopAsyncIteration):
            await anext(subject)

    @pytest.mark.parametrize(
        "refusal", [ApiError(403, "Forbidden", "no"), ApiError(401, "Unauthorized", "who")]
    )
    @pytest.mark.parametrize("of_a_generator", [False, True])
    @virtual_time
    async def test_forbidden_watch_is_returned_and_ends_the_events(
        self, refusal: ApiError, of_a_generator: bool
    ) -> None:
        """A generator sends its request when its first event is read."""
        events = [event async for event in watcher(make_scripted([refusal] if of_a_generator else refusal))]
        assert [event.type for event in events] == ["ERROR"]
        assert events[0].object == {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": refusal.message,
            "reason": refusal.reason,
            "details": {},
            "code": refusal.status,
        }
        assert str(ApiError.from_status(events[0].object)) == str(refusal)

    @pytest.mark.parametrize(
        ("event", "said"),
        [
            (added("a", ""), "without a resourceVersion"),
            (bookmark(""), "without a resourceVersion"),
            (WatchEvent("ADDED", b"[]"), "not a Kubernetes object"),
            (WatchEvent("DRAINED", raw_pod("a", 11)), "unknown type 'DRAINED'"),
        ],
    )
    @virtual_time
    async def test_object_without_a_version_ends_the_events(self, event: WatchEvent, said: str) -> None:
        """Events might get lost."""
        server = make_scripted([added("b", 11), event, added("c", 12), FOREVER])
        events = [event async for event in watcher(server)]
        assert [event.type for event in events] == ["ADDED", "ERROR"]
        assert events[1].object["code"] == 500
        assert said in events[1].object["message"]
        server.assert_closed()

    @virtual_time
    async def test_object_that_does_not_fit_its_type_does_not_end_the_events(self) -> None:
        bad = [added("a", 11), modified("a", 12), deleted("a", 13)]
        watch: RetryWatcher[Any] = RetryWatcher(make_scripted([*bad, 1.0], [FOREVER]), "10", Narrow)
        unfit, changed, gone = [await anext(watch) for _ in range(3)]
        for event, version in ((unfit, "11"), (changed, "12")):
            assert event.type == "UNDECODABLE"
            assert isinstance(event.object, UndecodableObject)
            assert (event.object.key, event.object.resource_version) == ("default/a", version)
            assert "not a Narrow" in str(event.object.error)
        assert gone.type == "DELETED"
        assert isinstance(gone.object, DeletedFinalStateUnknown)
        assert (gone.object.key, gone.object.obj) == ("default/a", None)
        assert gone.object.undecodable.resource_version == watch.resource_version == "13"
        await watch.aclose()

    @virtual_time
    async def test_object_without_a_readable_name_ends_the_events(self) -> None:
        for unreadable in (b"[]", b'{"metadata": {}}'):
            server = make_scripted([WatchEvent("ADDED", unreadable), FOREVER])
            events = [event async for event in RetryWatcher(server, "10", Narrow)]
            assert [event.type for event in events] == ["ERROR"]
            assert "not a Narrow" in ApiError.from_status(events[0].object).message

    @virtual_time
    async def test_unexpected_errors_are_raised_and_end_the_events(self) -> None:
        for error in (ValueError("mine"), ClientClosedError("the client is closed")):
            for watch in (error, [error]):
                server = make_scripted(watch)
                subject = watcher(server)
                with pytest.raises(type(error)):
                    await anext(subject)
                with pytest.raises(StopAsyncIteration):
                    await anext(subject)
                server.assert_closed()


class TestClosing:
    @virtual_time
    async def test_leaving_closes_the_watch_and_ends_the_events(self) -> None:
        server = make_scripted([added("a", 11), added("b", 12), FOREVER])
        async with watcher(server) as subject:
            async for _ in subject:
                break
            assert server.streams[0].closed == 0
        server.assert_closed()
        await subject.aclose()
        with pytest.raises(StopAsyncIteration):
            await anext(subject)

    @virtual_time
    async def test_watcher_closed_before_its_first_event_sends_no_request(self) -> None:
        async with watcher(server := Scripted()):
            pass
        assert not server.watches

    @pytest.mark.parametrize("steps", range(8))
    @virtual_time
    async def test_leaving_ends_the_events_of_waiting_tasks(self, steps: int) -> None:
        server = make_scripted([added("a", 11), FOREVER])
        async with watcher(server) as subject:
            readers = [asyncio.create_task(all_of(subject)) for _ in range(2)]
            await settle(steps)
        server.assert_closed()
        seen = [event for reader in readers for event in await reader]
        assert seen == ["ADDED a 11"][: len(seen)], "not twice"

    @virtual_time
    async def test_task_cancelled_during_close_is_cancelled(self) -> None:
        server = make_scripted([added("a", 11), FOREVER])
        subject = watcher(server)
        reader = asyncio.create_task(all_of(subject))
        await settle()
        closing = asyncio.create_task(subject.aclose())
        await asyncio.sleep(0)
        reader.cancel()
        await closing
        server.assert_closed()
        with pytest.raises(asyncio.CancelledError):
            await reader

    @pytest.mark.parametrize("steps", range(6))
    @virtual_time
    async def test_second_close_waits_for_the_first(self, steps: int) -> None:
        async def watch(options: ListOptions) -> AsyncIterator[WatchEvent]:
            try:
                yield added("a", 11)
                await asyncio.get_running_loop().create_future()
            finally:
                await asyncio.sleep(1)
                closed.append(options.resource_version)

        closed: list[str] = []
        subject = RetryWatcher(ListWatch(lambda options: ListResult([]), watch), "10")
        reader = asyncio.create_task(all_of(subject))
        await asyncio.sleep(0.1)
        first = asyncio.create_task(subject.aclose())
        await settle(steps)
        await subject.aclose()
        assert closed == ["10"]
        await first
        assert await reader == ["ADDED a 11"]

    async def test_abandoned_iterator_is_closed(self) -> None:
        server = make_scripted([added("a", 11), added("b", 12), FOREVER])
        async for _ in watcher(server):
            break
        await settle()
        server.assert_closed()

    @virtual_time
    async def test_repeated_reads_with_timeouts_lose_no_event(self) -> None:
        server = make_scripted(
            [0.5, added("a", 11), FOREVER],
            [1.5, added("b", 12), FOREVER],
            [0.1, [added("b", 12), added("c", 13)], FOREVER],
        )
        seen: list[str] = []
        async with watcher(server) as subject:
            while len(seen) < 3:
                try:
                    async with asyncio.timeout(1):
                        seen.append(summarize(await anext(subject)))
                except TimeoutError:
                    pass
        assert seen == ["ADDED a 11", "ADDED b 12", "ADDED c 13"]
        server.assert_closed()


class NarrowMeta(msgspec.Struct, rename="camel"):
    name: str
    resource_version: str


class Narrow(msgspec.Struct):
    metadata: NarrowMeta
    status: dict[str, str]
