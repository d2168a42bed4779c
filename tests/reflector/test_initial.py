"""WatchList: the initial state as a stream."""

from __future__ import annotations

import asyncio
import time
from itertools import chain
from typing import Any

import pytest

from aioinformer._core.coop import SLICE
from aioinformer.errors import ApiError, ClientClosedError, DecodeError, IdleTimeoutError, TransportError
from aioinformer.objects.keys import meta_namespace_key_func
from aioinformer.objects.kube_object import KubeObject
from aioinformer.objects.meta import NO_EVENT, WatchEvent
from aioinformer.reflector.initial import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    STREAM_TRIES,
    AfterStream,
    InitialEvents,
    Streaming,
    is_closing,
)

from ..virtual_time import virtual_time
from .scripted import added, bookmark, closing_bookmark, deleted, error_event, modified

UNSUPPORTED = ApiError(422, "Invalid", "sendInitialEvents: Forbidden")


def decode(event: WatchEvent) -> Any:
    return KubeObject.from_bytes(event.object)


def gather_objects(initial: InitialEvents) -> list[Any]:
    return list(chain.from_iterable(initial.take_all()))


def keys_at(initial: InitialEvents) -> dict[str, str]:
    return {obj.key: obj.resource_version for obj in gather_objects(initial)}


class TestInitialEvents:
    @virtual_time
    async def test_collects_until_the_closing_bookmark_and_returns_the_rest(self) -> None:
        initial = InitialEvents(10, meta_namespace_key_func)
        assert await initial.add([added("a", 1), added("b", 2)], decode) == []
        assert initial.resource_version == ""
        rest = await initial.add([added("c", 3), closing_bookmark(9), added("d", 10)], decode)
        assert rest == [added("d", 10)]
        assert initial.is_complete
        assert initial.resource_version == "9"
        assert keys_at(initial) == {"default/a": "1", "default/b": "2", "default/c": "3"}

    @virtual_time
    async def test_changes_and_deletions_before_the_bookmark_apply(self) -> None:
        """C68."""
        initial = InitialEvents(10, meta_namespace_key_func)
        await initial.add(
            [added("a", 1), added("b", 2), modified("a", 3), deleted("b", 4), deleted("c", 5)], decode
        )
        assert keys_at(initial) == {"default/a": "3"}

    @pytest.mark.parametrize("value", [None, "false", ""])
    @virtual_time
    async def test_other_bookmarks_do_not_close(self, value: str | None) -> None:
        """C67: the annotation must say "true"."""
        initial = InitialEvents(10, meta_namespace_key_func)
        await initial.add([bookmark(5, value)], decode)
        assert not initial.is_complete

    async def test_other_tasks_run_while_a_large_batch_is_added(self) -> None:
        def slow(event: WatchEvent) -> Any:
            time.sleep(2 * SLICE)
            return decode(event)

        others: list[int] = []
        initial = InitialEvents(10, meta_namespace_key_func)
        asyncio.get_running_loop().call_soon(lambda: others.append(len(initial)))
        await initial.add([added(str(number), 1) for number in range(5)], slow)
        assert others == [1]

    async def test_other_tasks_run_while_small_batches_of_a_stream_that_never_waits_are_added(self) -> None:
        def slow(event: WatchEvent) -> Any:
            time.sleep(SLICE / 2)
            return decode(event)

        others: list[int] = []
        initial = InitialEvents(10, meta_namespace_key_func)
        asyncio.get_running_loop().call_soon(lambda: others.append(len(initial)))
        for number in range(10):
            await initial.add([added(str(number), 1)], slow)
        assert others
        assert others[0] < 10

    @virtual_time
    async def test_an_error_event_is_raised(self) -> None:
        with pytest.raises(ApiError, match="Expired"):
            await InitialEvents(10, meta_namespace_key_func).add([error_event(410, "Expired")], decode)

    @virtual_time
    async def test_objects_extend_the_deadline_and_bookmarks_do_not(self) -> None:
        """W4: a server that sends only other bookmarks runs into the deadline."""
        initial = InitialEvents(10, meta_namespace_key_func)
        first = initial.deadline()
        await asyncio.sleep(4)
        await initial.add([bookmark(5)], decode)
        assert initial.deadline() == first
        await initial.add([added("a", 1)], decode)
        assert initial.deadline() == pytest.approx(first + 4)

    @virtual_time
    async def test_objects_without_a_key_are_left_for_the_queue_to_reject(self) -> None:
        initial = InitialEvents(10, meta_namespace_key_func)
        await initial.add([WatchEvent("ADDED", 1), WatchEvent("ADDED", 2)], lambda event: event.object)
        assert gather_objects(initial) == [1, 2]

    @pytest.mark.parametrize(
        "event",
        [
            WatchEvent(NO_EVENT, b'{"type":"ADDED","obj'),
            WatchEvent("BOOKMARK", b"no json"),
            WatchEvent("BOOKMARK", b'{"metadata":{"annotations":[]}}'),
            closing_bookmark(""),
        ],
        ids=["line", "bookmark", "annotations", "version"],
    )
    @virtual_time
    async def test_unreadable_event_is_a_decode_error(self, event: WatchEvent) -> None:
        """It may be an object or the closing bookmark: without it the list may be incomplete."""
        with pytest.raises(DecodeError):
            await InitialEvents(10, meta_namespace_key_func).add([added("a", 1), event], decode)


def test_closing_bookmark() -> None:
    assert is_closing(decode(closing_bookmark(5)))
    assert not is_closing(decode(bookmark(5)))
    assert not is_closing(decode(bookmark("")))


class TestStreaming:
    def test_pause_doubles_up_to_a_day(self) -> None:
        streaming = Streaming(wanted=True)
        assert streaming.is_due(0.0)
        now, pauses = 0.0, []
        for _ in range(12):
            assert streaming.after(UNSUPPORTED, now) is AfterStream.LIST_FOR_A_WHILE
            pauses.append(streaming.pause)
            assert not streaming.is_due(now + pauses[-1] - 1)
            now += pauses[-1]
            assert streaming.is_due(now)
        assert pauses[:3] == [FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE]
        assert pauses[-1] == LONGEST_PAUSE

    def test_success_resets_the_pause(self) -> None:
        streaming = Streaming(wanted=True)
        streaming.after(UNSUPPORTED, 0.0)
        streaming.after(UNSUPPORTED, 1000.0)
        streaming.record_success()
        streaming.after(UNSUPPORTED, 2000.0)
        assert streaming.pause == FIRST_PAUSE

    def test_streams_can_be_turned_off(self) -> None:
        assert not Streaming(wanted=False).is_due(1e9)

    @pytest.mark.parametrize(
        ("errors", "step"),
        [
            ([ClientClosedError("closed")], AfterStream.FAIL),
            ([ApiError(403, "Forbidden")], AfterStream.FAIL),
            ([UNSUPPORTED], AfterStream.LIST_FOR_A_WHILE),
            ([ApiError(405, "MethodNotAllowed")], AfterStream.LIST_FOR_A_WHILE),
            ([ApiError(400, "BadRequest", "unable to parse requirement")], AfterStream.LIST),
            ([IdleTimeoutError("no bookmark came")], AfterStream.LIST_FOR_A_WHILE),
            ([ApiError(410, "Expired")], AfterStream.STREAM_AT_ONCE),
            ([ApiError(410, "Expired")] * 2, AfterStream.BACK_OFF_AND_STREAM),
            ([ApiError(429, "TooManyRequests")] * 9, AfterStream.BACK_OFF_AND_STREAM),
            ([ApiError(500, "InternalError")], AfterStream.LIST),
            ([DecodeError("no JSON")], AfterStream.LIST),
            ([TransportError("cut")] * (STREAM_TRIES - 1), AfterStream.BACK_OFF_AND_STREAM),
            ([TransportError("cut")] * STREAM_TRIES, AfterStream.LIST),
        ],
    )
    def test_what_follows_a_stream_that_failed(self, errors: list[Exception], step: AfterStream) -> None:
        streaming = Streaming(wanted=True)
        for _ in range(2):  # each initial state has its own tries
            streaming.begin()
            assert [streaming.after(error, 0.0) for error in errors][-1] is step

    def test_first_refusal_and_every_third_lead_to_a_list(self) -> None:
        streaming, lists = Streaming(wanted=True), []
        for _ in range(7):
            streaming.after(ApiError(403, "Forbidden"), 0.0)
            lists.append(not streaming.is_due(0.0))
            streaming.list_tried()
        assert lists == [True, False, False, True, False, False, True]
