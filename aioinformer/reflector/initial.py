"""The initial events of a WatchList (KEP-3157), collected until the closing bookmark."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection
from enum import Enum
from typing import Any

from .._core.coop import Budget
from ..client.error_mapping import invalid_event, status_error
from ..errors import (
    ApiError,
    ClientClosedError,
    DecodeError,
    IdleTimeoutError,
    KeyFuncError,
    TransportError,
    WrongEventLoopError,
)
from ..objects.codec import decode_bookmark
from ..objects.keys import KeyFunc, metadata_field, resource_version_of
from ..objects.meta import BOOKMARK, DELETED, ERROR, INITIAL_EVENTS_END, NO_EVENT, WatchEvent
from .list_versions import refuses_version
from .retry import REFUSALS

STREAM_TRIES = 3
"""After this many initial streams in a row that break off, the reflector lists instead, once."""

UNSUPPORTED = frozenset({405, 406, 415, 422, 501})
"""HTTP statuses of servers that do not know ``sendInitialEvents``."""

REFUSALS_PER_LIST = 3
"""Try a list after the first refusal of a stream and every third: listing may be allowed where watching is not."""

FIRST_PAUSE = 300.0
LONGEST_PAUSE = 86_400.0
"""Seconds without streams after a server failed to stream: the first time, and at most."""


class AfterStream(Enum):
    """What to do after an initial stream has failed."""

    FAIL = "raise the error"
    LIST = "list"
    LIST_FOR_A_WHILE = "list, until the pause is over"
    STREAM_AT_ONCE = "stream again at once"
    BACK_OFF_AND_STREAM = "stream again after a pause"


class Streaming:
    """Whether to read the initial state as a stream, and what follows a stream that failed.

    After a server refused to stream, or did not close the stream, the reflector lists for five minutes, then tries
    again. The pause doubles with each failure, up to a day: the bookmark may have been lost, or the server upgraded.

    Args:
        wanted: Whether to use streams at all.
    """

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._refusals = self._refused_versions = self._broken = 0
        self._list_first = False
        self._not_before = float("-inf")
        self.pause = 0.0
        """Seconds without streams after the last one that the server could not send."""

    def begin(self) -> None:
        """Record that another initial state is to be read."""
        self._refused_versions = self._broken = 0

    def is_due(self, now: float) -> bool:
        """Whether to use a stream at this loop time."""
        return self._wanted and now >= self._not_before and not self._list_first

    def after(self, error: Exception, now: float) -> AfterStream:
        """Record that a stream failed at this loop time; return what follows.

        After the first refusal (401, 403, 404) and every third a list is tried: it may be allowed.
        """
        if isinstance(error, (ClientClosedError, WrongEventLoopError)):  # retrying cannot help
            return AfterStream.FAIL
        is_unsupported = isinstance(error, ApiError) and error.status in UNSUPPORTED
        if is_unsupported or isinstance(error, IdleTimeoutError):  # it sent no closing bookmark
            self.pause = min(max(2 * self.pause, FIRST_PAUSE), LONGEST_PAUSE)
            self._not_before = now + self.pause
            return AfterStream.LIST_FOR_A_WHILE
        if isinstance(error, TransportError):
            self._broken += 1
            return AfterStream.LIST if self._broken == STREAM_TRIES else AfterStream.BACK_OFF_AND_STREAM
        if not isinstance(error, ApiError):
            return AfterStream.LIST
        if error.status in REFUSALS:
            self._list_first = self._refusals % REFUSALS_PER_LIST == 0
            self._refusals += 1
            return AfterStream.FAIL
        if refuses_version(error):
            self._refused_versions += 1
            return (
                AfterStream.STREAM_AT_ONCE if self._refused_versions == 1 else AfterStream.BACK_OFF_AND_STREAM
            )
        return AfterStream.BACK_OFF_AND_STREAM if error.is_too_many_requests else AfterStream.LIST

    def list_tried(self) -> None:
        """Record that a list was requested."""
        self._list_first = False

    def list_succeeded(self) -> None:
        """Record that a list was allowed: the next refusal of a stream leads to a list again."""
        self._refusals = 0

    def record_success(self) -> None:
        """Record that a stream succeeded."""
        self.pause = 0.0
        self._refusals = 0


def is_closing(bookmark: Any) -> bool:
    """Whether this bookmark closes the initial events.

    Raises:
        DecodeError: Its annotations cannot be read, or it has no resourceVersion.
    """
    annotations = metadata_field(bookmark, "annotations", "annotations") or {}
    if annotations.get(INITIAL_EVENTS_END) != "true":
        return False
    if not resource_version_of(bookmark):
        raise DecodeError("the bookmark that closes the initial events has no resourceVersion")
    return True


class InitialEvents:
    """Collects the objects from the events before the closing bookmark.

    Args:
        timeout: Seconds without an object after which the bookmark counts as missing. Ordinary bookmarks do not count.
        key_of: Returns an object's key.
    """

    def __init__(self, timeout: float, key_of: KeyFunc) -> None:
        self._key_of = key_of
        self._timeout = timeout
        self._last_object = asyncio.get_running_loop().time()
        # One dict per namespace, as in a Store: growing one huge dict would block the event loop.
        self._parts: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        self._count = 0
        self._budget = Budget()  # for all batches: a stream may have many small ones, and never wait
        self.is_complete = False
        self.resource_version = ""

    def deadline(self) -> float:
        """Return the loop time by which the next object or the closing bookmark must arrive."""
        return self._last_object + self._timeout

    def __len__(self) -> int:
        """The number of collected objects."""
        return self._count

    def take_all(self) -> list[Collection[Any]]:
        """Return the collected objects in pieces, and forget them."""
        pieces: list[Collection[Any]] = [part.values() for part in self._parts.values()]
        self._parts.clear()
        return pieces

    async def add(self, batch: list[WatchEvent], decode: Callable[[WatchEvent], Any]) -> list[WatchEvent]:
        """Add events up to the closing bookmark; return the events after it.

        Args:
            batch: The events.
            decode: Returns an event's object; None if not even its key can be read.

        Raises:
            ApiError: An ERROR event.
            DecodeError: A line is not an event, or a bookmark cannot be read, so the list may lack an object.
        """
        budget = self._budget
        for position, event in enumerate(batch):
            if event.type == ERROR:
                raise status_error(event.object)
            if event.type == NO_EVENT:
                raise invalid_event(event.object)
            if event.type == BOOKMARK:
                bookmark = decode_bookmark(event.object)
                if is_closing(bookmark):
                    self.is_complete = True
                    self.resource_version = resource_version_of(bookmark)
                    return batch[position + 1 :]
                continue
            self._last_object = asyncio.get_running_loop().time()
            obj = decode(event)
            if obj is not None:
                self._put(event.type, obj)
            if budget.is_spent():
                await budget.pause()
        return []

    def _put(self, kind: str, obj: Any) -> None:
        try:
            key = self._key_of(obj)
        except KeyFuncError:
            key = f"\0{id(obj)}"  # the queue rejects it, with a message
        part = self._parts[key.rpartition("/")[0]]
        self._count -= len(part)
        if kind == DELETED:
            part.pop(key, None)
        else:
            part[key] = obj
        self._count += len(part)
