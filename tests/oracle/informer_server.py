"""The server of a script, for our side; ``v030/informer/server_test.go`` is the one for client-go."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple, Self

from aioinformer import ApiError, ListOptions, TransportError, WatchEvent
from aioinformer.cache import ListResult
from aioinformer.objects.meta import INITIAL_EVENTS_END

from .informer_script import Asked, Event, Failure, Object, Step


class ScriptedServer:
    """A ListerWatcher that answers when the script says so. One request at a time waits."""

    description = "scripted pods"

    def __init__(self, watch_list_semantics: bool) -> None:
        self.watch_list_semantics = watch_list_semantics
        self.requests: list[Asked] = []
        self.stream: ScriptedStream | None = None
        self.open_streams = 0
        self._waiting: _Waiting | None = None

    @property
    def state(self) -> str:
        if self._waiting is not None:
            return self._waiting.verb
        return "stream" if self.stream is not None and not self.stream.closed else ""

    @property
    def pages_wanted(self) -> bool:
        """Whether the response may have pages: only if the request has a limit."""
        return self._waiting is not None and self._waiting.paged

    async def list(self, options: ListOptions) -> ListResult:
        raise AssertionError("the reflector must call list_chunks")

    async def list_chunks(self, options: ListOptions) -> AsyncIterator[ListResult]:
        yield await self._ask("list", options)

    async def watch(self, options: ListOptions) -> ScriptedStream:
        stream: ScriptedStream = await self._ask("watch", options)
        return stream

    def reply(self, answer: object) -> None:
        assert self._waiting is not None
        answered, self._waiting = self._waiting.answer, None
        if isinstance(answer, Exception):
            answered.set_exception(answer)
        else:
            answered.set_result(answer)

    def open(self) -> None:
        self.stream = ScriptedStream(self)
        self.open_streams += 1
        self.reply(self.stream)

    async def _ask(self, verb: str, options: ListOptions) -> Any:
        assert self._waiting is None, "two requests at once"
        self.requests.append(
            Asked(
                verb,
                options.resource_version,
                options.resource_version_match,
                options.limit,
                options.continue_token,
                options.allow_watch_bookmarks,
                bool(options.send_initial_events),
            )
        )
        paged = bool(options.limit or options.continue_token)
        waiting = self._waiting = _Waiting(verb, paged, asyncio.get_running_loop().create_future())
        try:
            return await waiting.answer
        except asyncio.CancelledError:
            self._waiting = None
            raise


class _Waiting(NamedTuple):
    """A request that waits for its response."""

    verb: str
    paged: bool
    answer: asyncio.Future[Any]


class ScriptedStream:
    """One watch."""

    def __init__(self, server: ScriptedServer) -> None:
        self._server = server
        self._ready: asyncio.Queue[list[WatchEvent] | Exception | None] = asyncio.Queue()
        self.closed = 0

    def put(self, what: list[WatchEvent] | Exception | None) -> None:
        """Add events; or the end, by an error or None."""
        self._ready.put_nowait(what)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[WatchEvent]:
        assert not self.closed, "read after it was closed"
        ready = await self._ready.get()
        if isinstance(ready, Exception):
            raise ready
        if ready is None:
            raise StopAsyncIteration
        return ready

    async def aclose(self) -> None:
        assert not self.closed, "closed twice"
        self.closed += 1
        self._server.open_streams -= 1


def _bytes_of(obj: Object | None, annotations: dict[str, str] | None = None) -> bytes:
    if obj is None:
        return b"[]"
    metadata: dict[str, Any] = {
        "name": obj.name,
        "resourceVersion": obj.version,
        "uid": obj.uid,
        "labels": {"color": obj.color, "via": obj.via},
    }
    if obj.namespace:
        metadata["namespace"] = obj.namespace
    if annotations:
        metadata["annotations"] = annotations
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": metadata}).encode()


def list_of(step: Step) -> ListResult:
    return ListResult([_bytes_of(item) for item in step.items], step.version, step.token)


def event_of(event: Event) -> WatchEvent:
    if event.status is not None:
        return WatchEvent(event.type, _status_of(event.status))
    annotations = {INITIAL_EVENTS_END: event.closes} if event.closes else None
    return WatchEvent(event.type, _bytes_of(event.object, annotations))


def _status_of(failure: Failure) -> dict[str, Any]:
    if failure.kind != "status":
        return {"kind": "APIGroup"}
    status: dict[str, Any] = {"kind": "Status", "code": failure.code, "message": failure.message}
    if failure.reason:
        status["reason"] = failure.reason
    if failure.causes is not None:
        status["details"] = {"causes": [{"reason": cause} for cause in failure.causes]}
    return status


def error_of(failure: Failure) -> Exception:
    if failure.kind != "status":
        return TransportError(failure.kind)
    return ApiError.from_status(_status_of(failure))
