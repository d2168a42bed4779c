"""RetryWatcher: one watch that survives disconnects (client-go ``tools/watch/retrywatcher.go``)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from random import Random, SystemRandom
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, overload

from .._core.checks import require_methods, require_seconds
from ..client.error_mapping import status_error
from ..deltas import DeletedFinalStateUnknown
from ..errors import ApiError, DecodeError, KeyFuncError, TransportError, outline
from ..objects.codec import Codec, codec_for, decode_bookmark
from ..objects.keys import meta_namespace_key_func
from ..objects.kube_object import KubeObject
from ..objects.meta import (
    BOOKMARK,
    DELETED,
    ERROR,
    NO_EVENT,
    OBJECT_EVENTS,
    UNDECODABLE,
    ListOptions,
    WatchEvent,
)
from ..objects.undecodable import undecodable
from ..objects.versions import require_watchable
from ..protocols import ListerWatcher
from .event_decoder import version_of_event
from .lister_watcher import LIKE
from .options import ANSWER_TIMEOUT, MIN_WATCH_TIMEOUT, watch_timeout
from .watch import OpenWatch, Pulse, max_silence, open_watch

logger = logging.getLogger(__name__)

T = TypeVar("T")

_REFUSALS = (401, 403)

MIN_RESTART_DELAY = 1.0
"""Minimum seconds between the starts of two watches."""


class RetryWatcher(Generic[T]):
    """The events of a collection from a version on; it watches again when a watch breaks.

        async with RetryWatcher(ListWatch.for_resource(client, "v1", "pods"), version) as events:
            async for event in events:
                if event.type == "ERROR":
                    raise ApiError.from_status(event.object)
                print(event.type, event.object.key)

    It is an async iterator of WatchEvents, with objects of the object type. A new watch continues from the version of
    the last event, so no event is repeated or lost. Bookmarks move that version and are not returned. Versions are not
    compared, so servers with other versions than numbers, such as Karmada's, work as well.

    A state that does not fit the object type is an event of the type UNDECODABLE, with an UndecodableObject. Of a
    deletion, the event is DELETED, and its object is a DeletedFinalStateUnknown that has it.

    If it cannot continue, it returns an ERROR event and ends. The event's object is a Status as a dict, whatever the
    object type. That happens when the version has expired (410), when a watch is not permitted (401, 403), and for an
    object without a resourceVersion or without a name. It retries after other ApiErrors and TransportErrors. Errors
    that a retry cannot fix are raised, and end it: ClientClosedError, other ConfigErrors, WrongEventLoopError, and
    other errors of a user's watch function.

    Args:
        list_watch: The collection to watch.
        resource_version: The version to start from: that of an object, or of a list, which is
            ``(await list_watch.list()).resource_version``.
        object_type: The type of objects: KubeObject, dict, a ``msgspec.Struct`` or a model class.
        min_restart_delay: Minimum seconds between the starts of two watches; a server's Retry-After may extend it.
        min_watch_timeout: Seconds; each watch asks the server to end it after one to two times this. A watch without
            data for 75 to 80 s is reopened, since its connection may be lost.
        random: The source of those timeouts.

    Raises:
        ConfigError: ``list_watch`` cannot watch; ``resource_version`` is ``""``, ``"0"`` or not a server's version; or
            another value is invalid.

    Cancellation: the watch is closed. The next call continues at the same version with another watch, which waits for
    ``min_restart_delay``: allow for that when you wait for events with a timeout.

    Guarantees:
        Leaving ``async with``, ``aclose`` and the end of the events close the watch. The first two also end the
        iteration of a waiting task. After ``break``, without either, the event loop closes the watch.
    """

    @overload
    def __init__(
        self: RetryWatcher[KubeObject],
        list_watch: ListerWatcher,
        resource_version: str,
        *,
        min_restart_delay: float = MIN_RESTART_DELAY,
        min_watch_timeout: float = MIN_WATCH_TIMEOUT,
        random: Random | None = None,
    ) -> None: ...

    @overload
    def __init__(
        self,
        list_watch: ListerWatcher,
        resource_version: str,
        object_type: type[T],
        *,
        min_restart_delay: float = MIN_RESTART_DELAY,
        min_watch_timeout: float = MIN_WATCH_TIMEOUT,
        random: Random | None = None,
    ) -> None: ...

    def __init__(
        self,
        list_watch: ListerWatcher,
        resource_version: str,
        object_type: type[Any] = KubeObject,
        *,
        min_restart_delay: float = MIN_RESTART_DELAY,
        min_watch_timeout: float = MIN_WATCH_TIMEOUT,
        random: Random | None = None,
    ) -> None:
        require_methods("list_watch", list_watch, ("watch",), LIKE)
        require_watchable("resource_version", resource_version)
        require_seconds("min_restart_delay", min_restart_delay)
        require_seconds("min_watch_timeout", min_watch_timeout)
        self._watches: _Watches = _Watches(
            list_watch,
            resource_version,
            codec_for(object_type),
            min_restart_delay,
            min_watch_timeout,
            random or SystemRandom(),
        )
        self._events: AsyncGenerator[WatchEvent[T], None] | None = None
        self._reading = asyncio.Lock()
        self._until_closed: asyncio.Timeout | None = None  # set while a task waits for an event
        self._ended = False

    def __repr__(self) -> str:
        failure = self._watches.failure
        failed = "" if failure is None else f", failed last: {failure}"
        return f"<RetryWatcher {self._watches.name} at {self.resource_version}{failed}>"

    @property
    def resource_version(self) -> str:
        """The version of the last event or bookmark."""
        return self._watches.version

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchEvent[T]:
        async with self._reading:
            if self._ended:
                raise StopAsyncIteration
            if self._events is None:
                self._events = self._watches.run()
            closed = asyncio.timeout(None)
            try:
                async with closed as self._until_closed:
                    return await anext(self._events)
            except asyncio.CancelledError:
                self._events = None  # closed; the next call watches again from the same version
                raise
            except BaseException:
                self._ended = True
                if closed.expired():
                    raise StopAsyncIteration from None
                raise
            finally:
                self._until_closed = None

    async def aclose(self) -> None:
        """Close the watch. The iteration ends, also for a task that waits. It may be called repeatedly."""
        self._ended = True
        closed, self._until_closed = self._until_closed, None  # a second call only waits
        if closed is not None:
            closed.reschedule(asyncio.get_running_loop().time())
        async with self._reading:
            events, self._events = self._events, None
            if events is not None:
                await events.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()


class _Watches:
    """One watch after another. It has no reference to the iterator, so an abandoned iterator is collected."""

    def __init__(
        self,
        list_watch: ListerWatcher,
        version: str,
        codec: Codec[Any],
        min_restart_delay: float,
        min_watch_timeout: float,
        random: Random,
    ) -> None:
        self.name = getattr(list_watch, "description", "") or "watch"
        self.version = version
        self._list_watch = list_watch
        self._codec = codec
        self._min_restart_delay = min_restart_delay
        self._min_watch_timeout = min_watch_timeout
        self._random = random
        self._pulse = Pulse(max_silence(random))
        self._not_before = 0.0  # loop time; kept here, since another run may follow a cancelled one
        self.failure: Exception | None = None  # since the last event

    async def run(self) -> AsyncGenerator[WatchEvent, None]:
        """Yield all events, until the watch cannot continue."""
        now = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(self._not_before - now())
            not_before = now() + self._min_restart_delay
            logger.debug("%s: watching from %s", self.name, self.version)
            try:
                watch = await self._open()
                # Only after the answer: cancelling an unanswered watch must not delay the next one.
                self._not_before = not_before
                try:
                    while (batch := await watch.next_batch()) is not None:
                        for event in batch:
                            if event.type == BOOKMARK:
                                watch.record_bookmark(now())
                            taken = self._take(event)
                            if taken is not None:
                                yield taken
                                if taken.type == ERROR:
                                    return
                finally:
                    await watch.aclose()
            except ApiError as error:
                if error.is_expired or error.status in _REFUSALS:
                    yield WatchEvent(ERROR, _status_of(error))
                    return
                self._not_before = max(not_before, now() + (error.retry_after or 0.0))
                self._record_failure(error)
            except TransportError as error:
                self._not_before = not_before
                self._record_failure(error)
            except DecodeError as error:
                yield _end(str(error))
                return

    async def _open(self) -> OpenWatch:
        options = ListOptions(
            resource_version=self.version,
            allow_watch_bookmarks=True,
            timeout_seconds=watch_timeout(self._min_watch_timeout, self._random),
        )
        return await open_watch(self._list_watch, options, ANSWER_TIMEOUT, self._pulse)

    def _take(self, event: WatchEvent) -> WatchEvent | None:
        """Decode an event and move the version. Returns the event to yield, or None.

        Raises:
            ApiError: An ERROR event, to be handled like a refused request.
            TransportError: The line has no event; the next watch from the same version repeats it.
        """
        if event.type == ERROR:
            error = status_error(event.object)
            if error.status in _REFUSALS:  # access was allowed a moment ago: the next request decides
                raise ApiError(0, error.reason, f"the watch was ended by {error}", error.details)
            raise error
        if event.type == NO_EVENT:
            raise TransportError("the watch sent a line without an event")
        if event.type not in OBJECT_EVENTS:
            return _end(f"a watch event of unknown type {event.type!r}")
        kind, obj = event.type, None
        try:
            obj = (decode_bookmark if kind == BOOKMARK else self._codec.decode)(event.object)
        except DecodeError as error:
            if kind == BOOKMARK:
                return _end(str(error))
            try:
                obj = undecodable(event.object, None, str(error))
                key = meta_namespace_key_func(obj)
            except (DecodeError, KeyFuncError):
                return _end(str(error))
            if kind == DELETED:
                obj = DeletedFinalStateUnknown(key, None, obj)
            else:
                kind = UNDECODABLE
        version = version_of_event(obj, event.object)
        if not version:
            return _end(f"the watch cannot continue from an object without a resourceVersion: {outline(obj)}")
        self.version = version
        self.failure = None
        return None if kind == BOOKMARK else WatchEvent(kind, obj)

    def _record_failure(self, error: Exception) -> None:
        level = logging.WARNING if self.failure is None else logging.DEBUG
        self.failure = error
        logger.log(level, "%s at %s: %s; retrying", self.name, self.version, error)


def _end(message: str) -> WatchEvent:
    return WatchEvent(ERROR, _status_of(ApiError(500, "InternalError", message)))


def _status_of(error: ApiError) -> dict[str, Any]:
    """Return an error as a Status."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": error.message,
        "reason": error.reason,
        "details": error.details,
        "code": error.status,
    }
