"""WATCH: the lines of a watch, and the coroutine that sends them."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from aioinformer.objects.meta import WatchEventType
from aioinformer.testing.errors import (
    StatusError,
    field_forbidden,
    field_not_supported,
    invalid,
    resource_version_too_large,
)
from aioinformer.testing.http.listing import ListOptions, parse_resource_version
from aioinformer.testing.http.views import PlainView, View

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from aioinformer.testing.requests import Request
    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.storage.storage import StoredCollection, StoredEvent, StoredObject

    _Shown = Callable[[ResourceType, Iterable[StoredObject]], Awaitable[list[StoredObject]]]

_BATCH = 1000
"""How many changes are processed before the watch yields to other tasks."""

_WRITE_SIZE = 1 << 18
"""About how many bytes a write takes; this limits the buffer for a client that does not read."""

_LAST_BOOKMARK = 2.0
"""Seconds before its timeout at which a watch gets the last bookmark; a shorter watch gets none."""


def check_watch(options: ListOptions, *, watch_list: bool) -> None:
    """Check the parameters of a watch as the real server does, with or without the WatchList feature.

    Raises:
        StatusError: 422 for a combination that the real server refuses.
    """
    match, causes = options.resource_version_match, []
    path = "resourceVersionMatch"
    if options.send_initial_events is not None:
        if match != "NotOlderThan":
            causes.append(field_forbidden(path, f"sendInitialEvents requires setting {path} to NotOlderThan"))
        if not watch_list:
            why = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
            causes.append(field_forbidden("sendInitialEvents", why))
    if match:
        if options.send_initial_events is None:
            why = f"{path} is forbidden for watch unless sendInitialEvents is provided"
            causes.append(field_forbidden(path, why))
        if match != "NotOlderThan":
            causes.append(field_not_supported(path, match, ["NotOlderThan"]))
    if options.continue_token:
        causes.append(field_forbidden(path, f"{path} is forbidden when continue is provided"))
    if causes:
        raise invalid("ListOptions", "meta.k8s.io", "", causes)


class WatchCursor:
    """The position of a watch: first in the initial objects, then in the log of changes.

    Args:
        view: The view of the resource.
        collection: The resource's objects.
        options: The watch's parameters.
        current: Returns the server's version.
        shown: Returns objects in the version of the view, if a webhook converts them.
        watch_list: Whether the server has the WatchList feature.

    Raises:
        StatusError: 422 and 500 for bad parameters; 410 and 504, which the real server sends in the stream.
    """

    def __init__(
        self,
        view: View,
        collection: StoredCollection,
        options: ListOptions,
        *,
        current: Callable[[], int],
        shown: _Shown | None = None,
        watch_list: bool = True,
    ) -> None:
        self._collection = collection
        self._selection = selection = options.selection
        self._current = current
        self._end: int | None = None
        self._converts = shown
        self._converted: dict[StoredObject, StoredObject] = {}
        self._converted_to = 0
        self._initial: deque[StoredObject] = deque()
        self.view = view
        self.closing_bookmark_due = False
        self.bookmarks = options.allow_bookmarks
        asked = parse_resource_version(options.resource_version)
        legacy = not asked and options.send_initial_events is None
        if options.send_initial_events or legacy:
            if asked > current():
                raise resource_version_too_large(asked, current())
            self._position = collection.log.end
            objects = collection.at(current(), selection.namespace)
            self._initial.extend(stored for stored in objects if selection.matches(stored))
            self.closing_bookmark_due = options.allow_bookmarks and (not legacy or watch_list)
            self._from = current()
        else:
            start = asked or current()
            floor = collection.log.floor
            if start < floor:
                raise StatusError(410, message=f"too old resource version: {start} ({floor})")
            self._position = collection.log.after(start)
            self._from = start

    @property
    def up_to_date(self) -> bool:
        """True if all changes so far were taken."""
        return not self._initial and self._position >= self.end

    @property
    def end(self) -> int:
        """The position at which the watch stops taking changes."""
        return self._collection.log.end if self._end is None else self._end

    @property
    def lost(self) -> bool:
        """True if the log has dropped the changes that the watch needs, or the resource is gone."""
        return self._collection.closed or self._collection.log.since(self._position, 0) is None

    def stop(self) -> None:
        """Take no later changes, and no bookmark with a later version."""
        version = self._current()
        self._current = lambda: version
        self._end = self.end

    async def convert(self) -> None:
        """Convert the objects of the next lines, if a webhook has to. Call it before `take`.

        Raises:
            StatusError: 500 if the webhook fails.
        """
        if not self.view.resource.is_converted or self._converts is None:
            return
        next_objects = list(self._initial)
        if not next_objects:
            position = self._position
            events = self._collection.log.since(position, min(_BATCH, self.end - position)) or []
            namespace = self._selection.namespace
            for event in events:
                if not namespace or event.namespace == namespace:
                    next_objects += [] if event.current is None else [event.current]
                    next_objects += [] if event.previous is None else [event.last]
            self._converted_to = position + len(events)
        missing = [stored for stored in next_objects if stored not in self._converted]
        converted = dict(zip(missing, await self._converts(self.view.resource, missing), strict=True))
        kept = {stored: self._converted[stored] for stored in next_objects if stored in self._converted}
        self._converted = kept | converted

    def take(self) -> list[bytes]:
        """Return the next lines, possibly none."""
        if self._initial:
            return self._take_initial()
        end = min(self.end, self._converted_to) if self.view.resource.is_converted else self.end
        events = self._collection.log.since(self._position, min(_BATCH, max(end - self._position, 0)))
        if not events:
            return []
        is_whole = (
            isinstance(self.view, PlainView)
            and not self._selection.has_selectors
            and not self.view.resource.is_converted
        )
        line_of = self._plain if is_whole else self._select
        lines, size = [], 0
        for event in events:
            self._position += 1
            if line := line_of(event):
                lines.append(line)
                size += len(line)
                if size >= _WRITE_SIZE:
                    break
        return lines

    def bookmark(self, *, closing: bool = False) -> bytes:
        """Return a bookmark at the server's version; valid only if the cursor is up to date."""
        metadata: dict[str, Any] = {"resourceVersion": str(max(self._current(), self._from))}
        if closing:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        return self.view.bookmark(metadata)

    def _take_initial(self) -> list[bytes]:
        lines, size = [], 0
        while self._initial and size < _WRITE_SIZE:
            line = self.view.event(WatchEventType.ADDED, self._show(self._initial.popleft()))
            lines.append(line)
            size += len(line)
        return lines

    def _show(self, stored: StoredObject) -> StoredObject:
        return self._converted[stored] if self.view.resource.is_converted else stored

    def _plain(self, event: StoredEvent) -> bytes:
        namespace = self._selection.namespace
        if event.resource_version <= self._from or (namespace and event.namespace != namespace):
            return b""
        return event.line(self.view)

    def _select(self, event: StoredEvent) -> bytes:
        if event.resource_version <= self._from:
            return b""
        now = self._selection.matches(event.current)
        before = self._selection.matches(event.previous)
        if now:
            assert event.current is not None
            return self.view.event(
                WatchEventType.MODIFIED if before else WatchEventType.ADDED, self._show(event.current)
            )
        return self.view.event(WatchEventType.DELETED, self._show(event.last)) if before else b""


class Sink(Protocol):
    """The output of a watch; an aiohttp response."""

    async def write(self, data: bytes) -> None:
        """Write, and wait while the client is slow."""


class OpenWatch:
    """A watch that a client has open. Faults act on it through `send`, `end` and `cut`.

    Args:
        request: The request.
        cursor: The watch's position.
        timeout: Seconds after which the watch ends.
        bookmark_interval: Seconds between bookmarks, if the client allows them.
        hang_up: Closes the connection: immediately, or (True) after the written data is sent.
        keep_bookmark: Returns whether to send a bookmark (True: the closing bookmark of the initial events).
        thawed: Returns the event to wait for while the connection is frozen, or None.
    """

    def __init__(
        self,
        request: Request,
        cursor: WatchCursor,
        *,
        timeout: float | None,
        bookmark_interval: float,
        hang_up: Callable[[bool], None],
        keep_bookmark: Callable[[Request, bool], bool],
        thawed: Callable[[Request], asyncio.Event | None],
    ) -> None:
        self.request = request
        self._cursor = cursor
        self._hang_up = hang_up
        self._keep_bookmark = keep_bookmark
        self._thawed = thawed
        self._loop = asyncio.get_running_loop()
        self._deadline = None if timeout is None else self._loop.time() + timeout
        self._interval = bookmark_interval
        self._next_bookmark = 0.0
        self._wake = asyncio.Event()
        self._out: deque[bytes] = deque()
        self._ending = False
        self._cutting = False
        self._writing = False
        self._schedule_bookmark()

    def wake(self) -> None:
        """Wake the watch after a change."""
        self._wake.set()

    def send_error(self, status: dict[str, Any]) -> None:
        """Send an error after the due lines.

        Raises:
            MarshalError: The watch's encoding cannot express the error.
        """
        self.send(self._cursor.view.error(status))

    def send(self, data: bytes) -> None:
        """Send raw bytes after the due lines."""
        self._out.append(data)
        self.wake()

    def end(self) -> None:
        """End the stream cleanly after the due lines."""
        if self._writing or self._thawed(self.request) is not None:
            self._hang_up(False)  # the connection is blocked, so a clean end would not arrive
        self._cursor.stop()
        self._ending = True
        self.wake()

    def cut(self) -> None:
        """Reset the connection in the middle of a line."""
        if self._writing or self._thawed(self.request) is not None:
            self._hang_up(False)
        self._cutting = True
        self.wake()

    async def run(self, sink: Sink) -> None:
        """Write lines until the timeout, a fault, or the client's disconnect."""
        while True:
            while (frozen := self._thawed(self.request)) is not None:
                await frozen.wait()
            try:
                await self._cursor.convert()
            except StatusError as error:
                await self._write(sink, self._cursor.view.error(error.status))
                return
            if self._cutting:
                await self._cut_line(sink)
                return
            lines = self._due()
            is_all = self._cursor.up_to_date or (self._cursor.lost and not lines)
            is_last = is_all and self._is_done()  # decided before writing, during which more may happen
            if lines:
                await self._write(sink, b"".join(lines))
            if is_last:
                return
            if lines or not is_all:
                await asyncio.sleep(0)
            else:
                await self._sleep()

    def _due(self) -> list[bytes]:
        """Return the lines to write now."""
        cursor = self._cursor
        lines = cursor.take()
        if cursor.up_to_date:
            if cursor.closing_bookmark_due:
                cursor.closing_bookmark_due = False
                if self._keep_bookmark(self.request, True):
                    lines.append(cursor.bookmark(closing=True))
            if cursor.bookmarks and not self._ending and self._loop.time() >= self._next_bookmark:
                self._schedule_bookmark()
                if self._keep_bookmark(self.request, False):
                    lines.append(cursor.bookmark())
            lines.extend(self._out)
            self._out.clear()
        return lines

    def _schedule_bookmark(self) -> None:
        """Schedule the next bookmark after the interval, the last one shortly before the timeout."""
        now = self._loop.time()
        last = float("inf") if self._deadline is None else self._deadline - _LAST_BOOKMARK
        self._next_bookmark = min(now + self._interval, last) if now < last else float("inf")

    def _is_done(self) -> bool:
        return (
            self._ending
            or self._cursor.lost
            or (self._deadline is not None and self._loop.time() >= self._deadline)
        )

    async def _write(self, sink: Sink, data: bytes) -> None:
        self._writing = True
        try:
            await sink.write(data)
        finally:
            self._writing = False

    async def _cut_line(self, sink: Sink) -> None:
        lines = self._cursor.take()
        line = lines[0] if lines else self._cursor.bookmark()
        await self._write(sink, line[: len(line) // 2])
        self._hang_up(True)

    async def _sleep(self) -> None:
        due = [self._deadline] if self._deadline is not None else []
        if self._cursor.bookmarks:
            due.append(self._next_bookmark)
        at = min(due, default=None)
        timer = None if at is None or at == float("inf") else self._loop.call_at(at, self.wake)
        try:
            await self._wake.wait()
            self._wake.clear()
        finally:
            if timer is not None:
                timer.cancel()


def in_stream(error: StatusError) -> bool:
    """Return whether the real server sends this error inside the stream, with HTTP status 200."""
    return error.code in (410, 504)
