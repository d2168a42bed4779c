"""The initial events of a WatchList (KEP-3157): gathered aside until the closing bookmark."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection
from typing import Any

from .._core.coop import Budget
from ..client.error_mapping import no_event, status_error
from ..errors import ApiError, DecodeError, IdleTimeoutError, KeyFuncError
from ..objects.codec import decode_bookmark
from ..objects.keys import (
    ExplicitKey,
    KeyFunc,
    metadata_field,
    resource_version_of,
)
from ..objects.meta import (
    BOOKMARK,
    DELETED,
    ERROR,
    INITIAL_EVENTS_END,
    NO_EVENT,
    WatchEvent,
)

UNSUPPORTED = frozenset({405, 406, 415, 422, 501})
"""HTTP statuses by which a server says that it knows no ``sendInitialEvents``."""


LISTED_OF = 3
"""After the first refusal of a stream, and every third one, a list is tried: who may not watch may list."""

FIRST_PAUSE = 300.0
LONGEST_PAUSE = 86_400.0


def lacks_watch_list(error: Exception) -> bool:
    """Whether an error says that the server knows no WatchList: refused, or no closing bookmark."""
    return isinstance(error, IdleTimeoutError) or (
        isinstance(error, ApiError) and error.status in UNSUPPORTED
    )


class Streaming:
    """Whether to ask for the initial state as a stream.

    Not for a while after a server would not, or did not close it: for five minutes, and twice as long each time that
    it happens again, at most a day. One lost bookmark, or a server before its upgrade, is not for ever.

    Args:
        wanted: Whether to ask at all.
    """

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted
        self._refusals = 0
        self._list_first = False
        self._pause = 0.0
        self._not_before = float("-inf")

    def is_due(self, now: float) -> bool:
        """Whether to ask at this loop time."""
        return self._wanted and now >= self._not_before and not self._list_first

    def refused(self) -> None:
        """Who asks may not, or there is nothing to ask for. A list may be another matter: now and then it is tried."""
        self._list_first = self._refusals % LISTED_OF == 0
        self._refusals += 1

    def list_tried(self) -> None:
        """A list is asked for."""
        self._list_first = False

    def list_succeeded(self) -> None:
        """It was allowed: it will be tried after the next refusal of a stream, too."""
        self._refusals = 0

    def failed(self, now: float) -> float:
        """The server did not do it; seconds for which not to ask."""
        self._pause = min(max(2 * self._pause, FIRST_PAUSE), LONGEST_PAUSE)
        self._not_before = now + self._pause
        return self._pause

    def succeeded(self) -> None:
        """The server did it."""
        self._pause = 0.0
        self._refusals = 0


def is_closing(bookmark: Any) -> bool:
    """Whether a bookmark says that the initial events are complete.

    Raises:
        DecodeError: Its annotations cannot be read, or it is without a version to go on from.
    """
    annotations = metadata_field(bookmark, "annotations", "annotations") or {}
    if annotations.get(INITIAL_EVENTS_END) != "true":
        return False
    if not resource_version_of(bookmark):
        raise DecodeError("the bookmark that closes the initial events is without a resourceVersion")
    return True


class InitialEvents:
    """Gathers a collection from the events before the closing bookmark.

    Args:
        timeout: Seconds without any object after which the bookmark is not to be expected any more. Ordinary
            bookmarks do not count.
        key_of: Gives an object's key.
    """

    def __init__(self, timeout: float, key_of: KeyFunc) -> None:
        self._key_of = key_of
        self._timeout = timeout
        self._last_news = asyncio.get_running_loop().time()
        # By namespace, as a Store's: none becomes so large that to grow it would hold the event loop.
        self._parts: defaultdict[str, dict[str, Any]] = defaultdict(dict)
        self._count = 0
        self.is_complete = False
        self.resource_version = ""

    def deadline(self) -> float:
        """Loop time by which the next object, or the closing bookmark, must come."""
        return self._last_news + self._timeout

    def __len__(self) -> int:
        """How many objects were gathered."""
        return self._count

    def give_up(self) -> list[Collection[Any]]:
        """What was gathered, in pieces; it is not kept here any more."""
        pieces: list[Collection[Any]] = [part.values() for part in self._parts.values()]
        self._parts.clear()
        return pieces

    async def take(self, batch: list[WatchEvent], decode: Callable[[WatchEvent], Any]) -> list[WatchEvent]:
        """Take events up to the closing bookmark, in turns; returns those behind it.

        Args:
            batch: The events.
            decode: Gives an event's object, an ExplicitKey for one of which no more can be read, or None.

        Raises:
            ApiError: An ERROR event.
            DecodeError: A line that says no event, or a bookmark that cannot be read: nobody knows what is missing.
        """
        budget = Budget()
        for position, event in enumerate(batch):
            if event.type == ERROR:
                raise status_error(event.object)
            if event.type == NO_EVENT:
                raise no_event(event.object)
            if event.type == BOOKMARK:
                bookmark = decode_bookmark(event.object)
                if is_closing(bookmark):
                    self.is_complete = True
                    self.resource_version = resource_version_of(bookmark)
                    return batch[position + 1 :]
                continue
            self._last_news = asyncio.get_running_loop().time()
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
            key = f"\0{id(obj)}"  # the queue will refuse it, and say so
        part = self._parts[key.rpartition("/")[0]]
        self._count -= len(part)
        if kind == DELETED:
            part.pop(key, None)
        elif not isinstance(obj, ExplicitKey) or key not in part:
            part[key] = obj
        self._count += len(part)
