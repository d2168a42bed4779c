"""A server with a real history, to list and watch while connections are cut, versions expire and requests fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple, Self

from aioinformer.objects.meta import (
    ADDED,
    DELETED,
    MODIFIED,
    ListOptions,
    ListResult,
    WatchEvent,
)

from .scripted import bookmark, closing_bookmark, error_event, expired_error, raw_pod


class Change(NamedTuple):
    """One line of the history."""

    version: int
    namespace: str
    event: WatchEvent


class History:
    """Objects by key, and how they came about.

    Attributes:
        objects: The version of each object by its key.
        list_failures, watch_failures: Errors that the next requests meet.
        open: The streams that are open.
    """

    def __init__(self) -> None:
        self.version = 100
        self.objects: dict[str, int] = {}
        self.changes: list[Change] = []
        self.compacted = 0
        self.list_failures: list[Exception] = []
        self.watch_failures: list[Exception] = []
        self.open: set[HistoryStream] = set()
        self.closed_twice = 0

    def put(self, namespace: str, name: str) -> None:
        """Create or change an object."""
        key = f"{namespace}/{name}"
        self.version += 1
        kind = MODIFIED if key in self.objects else ADDED
        self.objects[key] = self.version
        self._note(namespace, WatchEvent(kind, raw_pod(name, self.version, namespace)))

    def delete(self, namespace: str, name: str) -> None:
        """Delete an object, if it is there."""
        key = f"{namespace}/{name}"
        if self.objects.pop(key, None) is not None:
            self.version += 1
            self._note(namespace, WatchEvent(DELETED, raw_pod(name, self.version, namespace)))

    def compact(self) -> None:
        """Forget how it all came about."""
        self.compacted = self.version

    def cut(self, error: Exception | WatchEvent | None) -> None:
        """End all streams: cleanly, by an error of the connection, or after an ERROR event."""
        for stream in self.open:
            stream.cut(error)

    def send_bookmarks(self) -> None:
        for stream in self.open:
            stream.send_bookmark()

    def items(self, namespace: str) -> list[bytes]:
        """The collection, or that of one namespace."""
        pods = []
        for key, version in self.objects.items():
            where, name = key.split("/")
            if namespace in ("", where):
                pods.append(raw_pod(name, version, where))
        return pods

    def _note(self, namespace: str, event: WatchEvent) -> None:
        self.changes.append(Change(self.version, namespace, event))
        for stream in self.open:
            stream.wake.set()


class HistoryListWatch:
    """Lists and watches a history.

    Args:
        history: What there is.
        namespace: ``""`` for all.
        watch_list_semantics: Whether to stream lists.
        choose: ``choose(n)`` gives a number below n: what the server is free in.
    """

    def __init__(
        self, history: History, namespace: str, watch_list_semantics: bool, choose: Callable[[int], int]
    ) -> None:
        self.history = history
        self.namespace = namespace
        self.watch_list_semantics = watch_list_semantics
        self.choose = choose
        self.description = f"history of {namespace or 'everything'}"

    async def list(self, options: ListOptions) -> ListResult:
        raise AssertionError("list() was called although list_chunks() exists")

    async def list_chunks(self, options: ListOptions) -> AsyncIterator[ListResult]:
        history = self.history
        await asyncio.sleep(0.01)
        if history.list_failures:
            raise history.list_failures.pop()
        if options.continue_token:
            version, start = (int(part) for part in options.continue_token.split("/"))
            if version < history.version:
                raise expired_error()  # it keeps no old states
        else:
            version, start = history.version, 0
        items = history.items(self.namespace)
        end = start + options.limit if options.limit else len(items)
        token = f"{version}/{end}" if end < len(items) else ""
        chosen = items[start:end]
        split = self.choose(len(chosen) + 1)
        yield ListResult(chosen[:split])
        await asyncio.sleep(0.01)
        yield ListResult(chosen[split:], str(version), token)

    async def watch(self, options: ListOptions) -> HistoryStream:
        history = self.history
        await asyncio.sleep(0.01)
        if history.watch_failures:
            raise history.watch_failures.pop()
        version = int(options.resource_version or 0)
        stream = HistoryStream(self, options)
        if version and version < history.compacted:
            if self.choose(2):
                raise expired_error()
            stream.cut(error_event(410, "Expired", "too old resource version"))
        elif options.send_initial_events or not version:
            stream.send_collection(closing=bool(options.send_initial_events))
        history.open.add(stream)
        return stream


class HistoryStream:
    """A watch of a history."""

    def __init__(self, list_watch: HistoryListWatch, options: ListOptions) -> None:
        self._history = list_watch.history
        self._namespace = list_watch.namespace
        self._choose = list_watch.choose
        self._version = int(options.resource_version or 0)
        self._deadline = asyncio.get_running_loop().time() + (options.timeout_seconds or 300)
        self._ready: list[WatchEvent] = []
        self._cut: list[Any] = []
        self.wake = asyncio.Event()
        self._closed = False

    def __aiter__(self) -> Self:
        return self

    def send_collection(self, closing: bool) -> None:
        self._version = self._history.version
        self._ready = [WatchEvent(ADDED, item) for item in self._history.items(self._namespace)]
        if closing:
            self._ready.append(closing_bookmark(self._version))

    def send_bookmark(self) -> None:
        self._read_on()
        self._ready.append(bookmark(self._version))
        self.wake.set()

    def cut(self, error: Exception | WatchEvent | None) -> None:
        self._cut.append(error)
        self.wake.set()

    async def __anext__(self) -> WatchEvent | list[WatchEvent]:
        while True:
            if self._cut:
                end = self._cut[0]
                if isinstance(end, WatchEvent):
                    self._cut[0] = None
                    return end
                if end is None:
                    raise StopAsyncIteration
                raise end
            self._read_on()
            if self._ready:
                count = 1 + self._choose(len(self._ready))
                batch, self._ready = self._ready[:count], self._ready[count:]
                await asyncio.sleep(0)
                return batch if self._choose(2) or count > 1 else batch[0]
            self.wake.clear()
            try:
                async with asyncio.timeout_at(self._deadline):
                    await self.wake.wait()
            except TimeoutError:
                raise StopAsyncIteration from None

    async def aclose(self) -> None:
        self._history.closed_twice += self._closed
        self._closed = True
        self._history.open.discard(self)

    def _read_on(self) -> None:
        for change in self._history.changes:
            if change.version > self._version and self._namespace in ("", change.namespace):
                self._ready.append(change.event)
        self._version = max(self._version, self._history.version)
