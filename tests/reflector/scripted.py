"""A ListerWatcher that answers from a script, and remembers what it was asked and when."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import pairwise
from typing import Any, Self

from aioinformer.errors import ApiError
from aioinformer.objects.meta import (
    ADDED,
    BOOKMARK,
    DELETED,
    ERROR,
    INITIAL_EVENTS_END,
    MODIFIED,
    ListOptions,
    ListResult,
    WatchEvent,
)

FOREVER = None
"""A step of a stream, or an answer, that never comes."""

Step = WatchEvent | list[WatchEvent] | Exception | float | None
"""Events to send, an error to raise, seconds to wait, or FOREVER."""

ListAnswer = ListResult | Sequence[ListResult] | Exception | float | None
"""A page, a page in pieces, an error, seconds to wait before the next answer, or FOREVER."""


def raw_pod(name: str, version: int | str = 1, namespace: str = "default", **fields: Any) -> bytes:
    """A pod as the server sends it; further fields go into its spec."""
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": str(version)}
    return json.dumps({"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": fields}).encode()


def page(*items: bytes, version: int | str, token: str = "") -> ListResult:
    return ListResult(items, str(version), token)


def added(name: str, version: int | str, **fields: Any) -> WatchEvent:
    return WatchEvent(ADDED, raw_pod(name, version, **fields))


def modified(name: str, version: int | str, **fields: Any) -> WatchEvent:
    return WatchEvent(MODIFIED, raw_pod(name, version, **fields))


def deleted(name: str, version: int | str, **fields: Any) -> WatchEvent:
    return WatchEvent(DELETED, raw_pod(name, version, **fields))


def bookmark(version: int | str, initial_events_end: str | None = None) -> WatchEvent:
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    if initial_events_end is not None:
        metadata["annotations"] = {INITIAL_EVENTS_END: initial_events_end}
    return WatchEvent(BOOKMARK, json.dumps({"kind": "Pod", "metadata": metadata}).encode())


def closing_bookmark(version: int | str) -> WatchEvent:
    return bookmark(version, "true")


def error_event(code: int, reason: str, message: str = "", **details: Any) -> WatchEvent:
    status = {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}
    return WatchEvent(ERROR, status)


GONE = error_event(410, "Gone")


def expired_error() -> ApiError:
    return ApiError(410, "Expired", "too old resource version")


def too_large() -> ApiError:
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    return ApiError(504, "Timeout", "Too large resource version: 99, current: 2", {"causes": causes})


def too_many_requests(retry_after: int | None = None) -> ApiError:
    details = {} if retry_after is None else {"retryAfterSeconds": retry_after}
    return ApiError(429, "TooManyRequests", "slow down", details)


class Stream:
    """A watch that plays its steps; after the last it ends, as a server's timeout would end it.

    Attributes:
        closed: How often it was closed.
    """

    def __init__(self, *steps: Step) -> None:
        self._steps = iter(steps)
        self.closed = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchEvent | list[WatchEvent]:
        assert not self.closed, "read after it was closed"
        for step in self._steps:
            if step is None:
                await asyncio.get_running_loop().create_future()
            elif isinstance(step, Exception):
                raise step
            elif isinstance(step, (int, float)):
                await asyncio.sleep(step)
            else:
                await asyncio.sleep(0)
                return step
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.closed += 1
        await asyncio.sleep(0)


class Scripted:
    """A ListerWatcher that answers from a script.

    Args:
        lists: The answers to lists, one after the other; when they have run out a list is never answered.
        watches: The answers to watches: a Stream, the steps of one, or an error that opening it raises. When they
            have run out a watch is open and silent.
        watch_list_semantics: Whether to claim to understand WatchLists.

    Attributes:
        lists, watches: The options of each call.
        calls: ``("list" or "watch", its resource version, loop time)`` of each call.
        streams: All that were opened.
    """

    description = "scripted pods"

    def __init__(
        self,
        lists: Iterable[ListAnswer] = (),
        watches: Iterable[Stream | Sequence[Step] | Exception | None] = (),
        *,
        watch_list_semantics: bool = False,
    ) -> None:
        self._list_answers = iter(lists)
        self._watch_answers = iter(watches)
        self.watch_list_semantics = watch_list_semantics
        self.lists: list[ListOptions] = []
        self.watches: list[ListOptions] = []
        self.calls: list[tuple[str, str, float]] = []
        self.streams: list[Stream] = []
        self.open_lists = 0

    async def list(self, options: ListOptions) -> ListResult:
        raise AssertionError("list() was called although list_chunks() exists")

    async def list_chunks(self, options: ListOptions) -> AsyncIterator[ListResult]:
        self.lists.append(options)
        self._note("list", options)
        self.open_lists += 1
        try:
            for answer in self._list_answers:
                if isinstance(answer, (int, float)):
                    await asyncio.sleep(answer)
                    continue
                await asyncio.sleep(0)
                if answer is None:
                    break
                if isinstance(answer, Exception):
                    raise answer
                for piece in (answer,) if isinstance(answer, ListResult) else answer:
                    yield piece
                    await asyncio.sleep(0)
                return
            await asyncio.get_running_loop().create_future()
        finally:
            self.open_lists -= 1

    async def watch(self, options: ListOptions) -> Stream:
        self.watches.append(options)
        self._note("watch", options)
        await asyncio.sleep(0)
        answer = next(self._watch_answers, (FOREVER,))
        if isinstance(answer, Exception):
            raise answer
        if answer is None:
            await asyncio.get_running_loop().create_future()
            raise AssertionError
        stream = answer if isinstance(answer, Stream) else Stream(*answer)
        self.streams.append(stream)
        return stream

    def versions(self) -> Sequence[tuple[str, str]]:
        """What was called, with which resource version."""
        return [(verb, version) for verb, version, _ in self.calls]

    def delays(self) -> Sequence[float]:
        """Seconds between calls."""
        times = [time for _, _, time in self.calls]
        return [later - earlier for earlier, later in pairwise(times)]

    def assert_closed(self) -> None:
        """Everything that was opened was closed, once (C75)."""
        assert [stream.closed for stream in self.streams] == [1] * len(self.streams)
        assert self.open_lists == 0

    def _note(self, verb: str, options: ListOptions) -> None:
        self.calls.append((verb, options.resource_version, asyncio.get_running_loop().time()))


class RecordingStore:
    """A store that remembers what it was given; verbs are async, as a queue's are."""

    def __init__(self) -> None:
        self.verbs: list[tuple[str, Any]] = []
        self.resyncs = 0

    async def add(self, obj: Any) -> None:
        await self._note("add", obj)

    async def update(self, obj: Any) -> None:
        await self._note("update", obj)

    async def delete(self, obj: Any) -> None:
        await self._note("delete", obj)

    async def replace(self, objects: Sequence[Any], resource_version: str) -> None:
        await asyncio.sleep(0)
        self.verbs.append(("replace", ([_key(obj) for obj in objects], resource_version)))

    async def resync(self) -> None:
        self.resyncs += 1

    async def _note(self, verb: str, obj: Any) -> None:
        await asyncio.sleep(0)
        self.verbs.append((verb, _key(obj)))


def _key(obj: Any) -> str:
    return getattr(obj, "key", None) or str(obj)
