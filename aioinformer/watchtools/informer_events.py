"""An informer's notifications as a stream of events (client-go ``tools/watch/informerwatcher.go``)."""

from __future__ import annotations

import asyncio
from collections import deque
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from ..api import ADDED, DELETED, MODIFIED, WatchEvent
from ..deltas import DeletedFinalStateUnknown
from ..handlers import ResourceEventHandler
from ..informer import Registration, SharedIndexInformer
from ..tasks import first_of

T = TypeVar("T")


class InformerEvents(ResourceEventHandler[T], Generic[T]):
    """What a handler of the informer would be told, to iterate over: first what is cached, as ADDED.

    An async context manager and iterator. It ends when the informer does. What nobody has asked for yet waits in
    memory, so go on asking, or leave.

    A deletion that was missed is DELETED with the last state that was known; where none was, its object is the
    DeletedFinalStateUnknown. A resync is MODIFIED.

    Args:
        informer: An informer, started or not.
    """

    def __init__(self, informer: SharedIndexInformer[T]) -> None:
        self._informer = informer
        self._registration: Registration | None = None
        self._events: deque[WatchEvent] = deque()
        self._news = asyncio.Event()

    def __repr__(self) -> str:
        return f"events of {self._informer.name}"

    async def __aenter__(self) -> Self:
        self._registration = self._informer.add_event_handler(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._registration is not None
        self._informer.remove_event_handler(self._registration)
        self._events.clear()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchEvent:
        while not self._events:
            if self._informer.is_stopped:
                raise StopAsyncIteration
            self._news.clear()
            await first_of(self._wait_for_news(), self._informer.wait_stopped())
        return self._events.popleft()

    def on_add(self, obj: T, is_in_initial_list: bool) -> None:
        self._put(ADDED, obj)

    def on_update(self, old: T, new: T) -> None:
        self._put(MODIFIED, new)

    def on_delete(self, obj: T | DeletedFinalStateUnknown[Any]) -> None:
        last = obj.obj if isinstance(obj, DeletedFinalStateUnknown) else obj
        self._put(DELETED, obj if last is None else last)

    def _put(self, kind: str, obj: Any) -> None:
        self._events.append(WatchEvent(kind, obj))
        self._news.set()

    async def _wait_for_news(self) -> None:
        await self._news.wait()
