"""An informer's notifications as a stream of events (client-go ``tools/watch/informerwatcher.go``)."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from .._core.tasks import NOT_STARTED_WARNING_DELAY, run_until_first
from ..deltas import DeletedFinalStateUnknown
from ..errors import AlreadyStartedError, InformerError
from ..handlers import ResourceEventHandler
from ..informer import Registration, SharedIndexInformer
from ..informer.state import NOT_STARTED
from ..objects.meta import ADDED, DELETED, MODIFIED, UNDECODABLE, WatchEvent, WatchEventType
from ..objects.undecodable import UndecodableObject
from ..reflector import Phase

logger = logging.getLogger(__name__)

T = TypeVar("T")


class InformerEvents(ResourceEventHandler[T], Generic[T]):
    """An async iterator over an informer's notifications; it starts with the cached objects, as ADDED.

        async with informer, InformerEvents(informer) as events:
            async for event in events:
                print(event.type, event.object.key)

    It is also an async context manager. It ends when the informer ends, or when it is left. Unread events wait in
    memory without a limit, so keep iterating, or leave; ``len(events)`` is their number.

    A missed deletion is DELETED with the last known state; without one, its object is the DeletedFinalStateUnknown. A
    resync is MODIFIED. A state that does not fit the object type is UNDECODABLE, with an UndecodableObject.

    Args:
        informer: An informer, started or not. If it is not started for a while, a warning is logged.
    """

    def __init__(self, informer: SharedIndexInformer[T]) -> None:
        self._informer = informer
        self._registration: Registration | None = None
        self._left = False
        self._events: deque[WatchEvent[T]] = deque()
        self._changed = asyncio.Event()
        self._start_check: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"events of {self._informer.name}"

    async def __aenter__(self) -> Self:
        if self._registration is not None and not self._left:
            raise AlreadyStartedError(f"{self!r} are entered already: make one for each reader")
        self._registration = self._informer.add_event_handler(self)
        self._left = False
        self._start_check = asyncio.get_running_loop().call_later(
            NOT_STARTED_WARNING_DELAY, self._warn_if_not_started
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._registration is not None
        assert self._start_check is not None
        self._start_check.cancel()
        self._informer.remove_event_handler(self._registration)
        self._events.clear()
        self._left = True
        self._changed.set()

    def __len__(self) -> int:
        """The number of unread events."""
        return len(self._events)

    def __bool__(self) -> bool:
        return True

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> WatchEvent[T]:
        if self._registration is None:
            raise InformerError(f"{self!r}: enter them with async with before iterating")
        while not self._events:
            self._informer.require_own_loop()
            if self._left or self._informer.is_stopped:
                raise StopAsyncIteration
            self._changed.clear()
            await run_until_first(self._changed.wait, self._informer.wait_stopped)
        return self._events.popleft()

    def on_add(self, obj: T, is_in_initial_list: bool) -> None:
        self._put(ADDED, obj)

    def on_update(self, old: T, new: T) -> None:
        self._put(MODIFIED, new)

    def on_delete(self, obj: T | DeletedFinalStateUnknown[Any]) -> None:
        last = obj.obj if isinstance(obj, DeletedFinalStateUnknown) else obj
        self._put(DELETED, obj if last is None else last)

    def on_undecodable(self, obj: UndecodableObject) -> None:
        """Add an UNDECODABLE event."""
        self._put(UNDECODABLE, obj)

    def _put(self, kind: WatchEventType, obj: Any) -> None:
        self._events.append(WatchEvent(kind, obj))
        self._changed.set()

    def _warn_if_not_started(self) -> None:
        if self._informer.state.phase is Phase.NEW:
            logger.warning("%r wait for an informer that is %s", self, NOT_STARTED)
