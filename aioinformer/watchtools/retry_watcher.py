"""RetryWatcher: one watch out of many (client-go ``tools/watch/retrywatcher.go``)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from random import Random
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, overload

from .._core.checks import require_methods, require_seconds
from ..client.error_mapping import status_error
from ..errors import ApiError, DecodeError, TransportError
from ..objects.codec import Codec, codec_for, decode_bookmark
from ..objects.kube_object import KubeObject
from ..objects.meta import (
    ADDED,
    BOOKMARK,
    DELETED,
    ERROR,
    MODIFIED,
    NO_EVENT,
    ListOptions,
    WatchEvent,
)
from ..objects.versions import require_watchable
from ..protocols import ListerWatcher
from ..reflector.event_decoder import version_of_event
from ..reflector.lister_watcher import LIKE
from ..reflector.options import ANSWER_TIMEOUT, MIN_WATCH_TIMEOUT, watch_timeout
from ..reflector.watch import OpenWatch, Pulse, max_silence, open_watch

logger = logging.getLogger(__name__)

T = TypeVar("T")

_REFUSALS = (401, 403)

MIN_RESTART_DELAY = 1.0
"""Seconds from the beginning of one watch to the beginning of the next, at least."""


class RetryWatcher(Generic[T]):
    """The events of a collection from a version on, however often the watch that brings them breaks off.

        async with RetryWatcher(ListWatch.for_resource(client, "v1", "pods"), version) as events:
            async for event in events:
                if event.type == "ERROR":
                    raise ApiError.from_status(event.object)
                print(event.type, event.object.key)

    An async iterator of WatchEvents, with objects of the object type. It goes on from the last version that it has
    given, so nothing comes twice and nothing is left out. Bookmarks move that version and are not given. Versions are
    not compared, so servers whose versions are no numbers, such as Karmada's, are watched as well.

    It ends where it cannot go on so: with an ERROR event, whose object is the Status as a dict, of whatever type the
    others are, and after which there are no more. That is once the version has expired (410), when opening a watch is
    not permitted (401, 403), and for an object that has no resourceVersion or is not of the object type. Other
    ApiErrors and TransportErrors are tried again. What cannot heal is raised, and is the end, too: ClientClosedError,
    another ConfigError, WrongEventLoopError, and whatever else a watch function of one's own raises.

    Args:
        list_watch: What to watch.
        resource_version: Where to begin: the version of an object, or of a list, which is
            ``(await list_watch.list()).resource_version``.
        object_type: What an object is: KubeObject, dict, a ``msgspec.Struct`` or a model class.
        min_restart_delay: Seconds from one watch to the next, at least; more where the server asks for it.
        min_watch_timeout: Seconds; each watch asks the server to end it after one to two times this. One that is silent
            for 75 to 80 s is opened again, as its connection may be lost.
        random: Source of those timeouts.

    Raises:
        ConfigError: ``list_watch`` cannot watch, ``resource_version`` is ``""``, ``"0"`` or none that a server gives,
            or another value cannot work.

    Cancellation: the watch is closed. The next event asked for then comes as if nothing had happened, by another watch,
    for which ``min_restart_delay`` holds as for any: who looks for events with a timeout should allow for it.

    Guarantees:
        Leaving ``async with`` and ``aclose`` have closed the watch, and end the events for another task that waits
        for one; the end of the events has closed it, too. Left by ``break`` and forgotten, it is closed by the event
        loop.
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
            random or Random(),
        )
        self._events: AsyncGenerator[WatchEvent[T], None] | None = None
        self._reading = asyncio.Lock()
        self._until_closed: asyncio.Timeout | None = None  # around what waits for an event
        self._ended = False

    def __repr__(self) -> str:
        failure = self._watches.failure
        failed = "" if failure is None else f", failed last: {failure}"
        return f"<RetryWatcher {self._watches.name} at {self.resource_version}{failed}>"

    @property
    def resource_version(self) -> str:
        """The version up to which all was given."""
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
                self._events = None  # it is closed; another goes on at the same version
                raise
            except BaseException:
                self._ended = True
                if closed.expired():
                    raise StopAsyncIteration from None
                raise
            finally:
                self._until_closed = None

    async def aclose(self) -> None:
        """Close the watch; there are no more events, also for who waits for one. Idempotent."""
        self._ended = True
        if self._until_closed is not None:
            self._until_closed.reschedule(asyncio.get_running_loop().time())
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
    """One watch after the other. Knows nothing of who iterates, so that a generator that is forgotten is collected."""

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
        self._not_before = 0.0  # loop time; here, as a run that is cancelled is followed by another one
        self.failure: Exception | None = None  # since the last event

    async def run(self) -> AsyncGenerator[WatchEvent, None]:
        """All events, until there is no going on."""
        now = asyncio.get_running_loop().time
        while True:
            await asyncio.sleep(self._not_before - now())
            not_before = now() + self._min_restart_delay
            logger.debug("%s: watching from %s", self.name, self.version)
            try:
                watch = await self._open()
                # Not sooner: what is cancelled unanswered delays nothing, or who has little time would never get there.
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
        """What to give for an event, or None. Moves the version on.

        Raises:
            ApiError: An ERROR that is to be dealt with as one of the request.
            TransportError: What is no reason to end: the same version gives it anew.
        """
        if event.type == ERROR:
            error = status_error(event.object)
            if error.status in _REFUSALS:  # what was allowed a moment ago: the next request tells for sure
                raise ApiError(0, error.reason, f"the watch was ended by {error}", error.details)
            raise error
        if event.type == NO_EVENT:
            raise TransportError("the watch sent a line that says no event")
        if event.type not in (ADDED, MODIFIED, DELETED, BOOKMARK):
            return _end(f"a watch event of unknown type {event.type!r}")
        decode = decode_bookmark if event.type == BOOKMARK else self._codec.decode
        try:
            obj = decode(event.object)
        except DecodeError as error:
            return _end(str(error))
        version = version_of_event(obj, event.object)
        if not version:
            return _end(f"without a resourceVersion there is no going on: {obj!r:.200}")
        self.version = version
        self.failure = None
        return None if event.type == BOOKMARK else WatchEvent(event.type, obj)

    def _record_failure(self, error: Exception) -> None:
        level = logging.WARNING if self.failure is None else logging.DEBUG
        self.failure = error
        logger.log(level, "%s at %s: %s; trying again", self.name, self.version, error)


def _end(message: str) -> WatchEvent:
    return WatchEvent(ERROR, _status_of(ApiError(500, "InternalError", message)))


def _status_of(error: ApiError) -> dict[str, Any]:
    """The Status that an error stands for."""
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
