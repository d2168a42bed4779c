"""The initial events of a WatchList (KEP-3157): gathered aside until the closing bookmark."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from ..api import BOOKMARK, DELETED, ERROR, INITIAL_EVENTS_END, WatchEvent
from ..codec import codec_for
from ..errors import ApiError, DecodeError, IdleTimeoutError, KeyFuncError
from ..keys import ExplicitKey, KeyFunc, resource_version_of
from ..objects import DECODE_ERRORS, KubeObject

UNSUPPORTED = frozenset({405, 406, 415, 422, 501})
"""HTTP statuses by which a server says that it knows no ``sendInitialEvents``."""


def lacks_watch_list(error: Exception) -> bool:
    """Whether an error says that asking for a WatchList again is pointless: refused, or no closing bookmark."""
    return isinstance(error, IdleTimeoutError) or (
        isinstance(error, ApiError) and error.status in UNSUPPORTED
    )


def is_closing_bookmark(event: WatchEvent) -> KubeObject | None:
    """The bookmark that says that the initial events are complete, or None if the event is another."""
    if event.type != BOOKMARK:
        return None
    try:
        bookmark = codec_for(KubeObject).decode(event.object)
        closing = bookmark.metadata.annotations.get(INITIAL_EVENTS_END) == "true"
    except DecodeError:
        return None
    return bookmark if closing else None


def status_error(status: Any) -> ApiError:
    """The error that an ERROR event's Status stands for."""
    if isinstance(status, bytes):
        with suppress(*DECODE_ERRORS):
            status = msgspec.json.decode(status)
    if isinstance(status, Mapping):
        return ApiError.from_status(status)
    return ApiError(500, "InternalError", f"the watch sent an ERROR that is no Status: {status!r:.200}")


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
        self._objects: dict[str, Any] = {}
        self.is_complete = False
        self.resource_version = ""

    def deadline(self) -> float:
        """Loop time by which the next object, or the closing bookmark, must come."""
        return self._last_news + self._timeout

    def objects(self) -> list[Any]:
        """What was gathered."""
        return list(self._objects.values())

    def take(self, batch: list[WatchEvent], decode: Callable[[WatchEvent], Any]) -> list[WatchEvent]:
        """Take events up to the closing bookmark; returns those behind it.

        Args:
            batch: The events.
            decode: Gives an event's object, an ExplicitKey for one of which no more can be read, or None.

        Raises:
            ApiError: An ERROR event.
        """
        for position, event in enumerate(batch):
            if event.type == ERROR:
                raise status_error(event.object)
            if event.type == BOOKMARK:
                if (closing := is_closing_bookmark(event)) is not None:
                    self.is_complete = True
                    self.resource_version = resource_version_of(closing)
                    return batch[position + 1 :]
                continue
            self._last_news = asyncio.get_running_loop().time()
            obj = decode(event)
            if obj is not None:
                self._put(event.type, obj)
        return []

    def _put(self, kind: str, obj: Any) -> None:
        try:
            key = self._key_of(obj)
        except KeyFuncError:
            key = f"\0{id(obj)}"  # the queue will refuse it, and say so
        if kind == DELETED:
            self._objects.pop(key, None)
        elif not isinstance(obj, ExplicitKey) or key not in self._objects:
            self._objects[key] = obj
