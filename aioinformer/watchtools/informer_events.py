"""An informer's notifications as a stream of events (client-go ``tools/watch/informerwatcher.go``)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from contextlib import suppress
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from .._core.checks import require_flag
from .._core.tasks import NOT_STARTED_WARNING_DELAY, finish
from ..deltas import DeletedFinalStateUnknown
from ..errors import AlreadyStartedError, InformerError, StoppedError
from ..handlers import ResourceEventHandler
from ..informer import Registration, SharedIndexInformer
from ..informer.state import NOT_STARTED
from ..objects.meta import ADDED, DELETED, MODIFIED, SYNCED, UNDECODABLE, Object, WatchEvent
from ..objects.undecodable import UndecodableObject
from ..processor import BACKLOG_LIMIT, Backlog
from ..reflector import Phase

logger = logging.getLogger(__name__)

T = TypeVar("T")

MOST_TAKEN = 256
"""Events that are taken from a backlog that keeps all of them, before the reader asks for them."""


class InformerEvent(WatchEvent[Object], Generic[Object], frozen=True, gc=False):
    """An event of an informer. Unpacks as ``type, object = event``, as every WatchEvent.

    Attributes:
        type: ADDED, MODIFIED, DELETED, UNDECODABLE or SYNCED.
        object: The newest state; of DELETED the last known one; None for SYNCED.
        old: The state before, for MODIFIED; else None.
        initial: Whether the object was in the initial list, or in the cache when the reading began.
    """

    old: Object | None = None
    initial: bool = False


class InformerEvents(ResourceEventHandler[T], Generic[T]):
    """An async iterator over an informer's notifications; it starts with the cached objects, as ADDED.

        async with informer, InformerEvents(informer) as events:
            async for event in events:
                print(event.type, event.object.key)

    It is also an async context manager. It ends when the informer ends, or when it is left. Unread events wait in the
    handler's backlog, by default without a limit; ``len(events)`` is their number.

    A missed deletion is DELETED with the last known state; without one, its object is the DeletedFinalStateUnknown. A
    resync is MODIFIED. A state that does not fit the object type is UNDECODABLE, with an UndecodableObject.

    Args:
        informer: An informer, started or not. If it is not started for a while, a warning is logged.
        backlog: What happens to events that the reader is too slow for, as for ``add_event_handler``: keep all
            ("unbounded"), make the store wait ("block"), keep the newest of each object ("coalesce"), or drop the
            oldest ("drop_oldest").
        backlog_limit: Events that may wait, for "block" and "drop_oldest".
        synced: Whether a SYNCED event, whose object is None, follows the last initial event. It also comes for an
            empty collection.

    Raises:
        ConfigError: On entering: there is no such backlog.
    """

    def __init__(
        self,
        informer: SharedIndexInformer[T],
        *,
        backlog: Backlog = "unbounded",
        backlog_limit: int = BACKLOG_LIMIT,
        synced: bool = False,
    ) -> None:
        require_flag("synced", synced)
        self._informer = informer
        self._backlog: Backlog = backlog
        self._backlog_limit = backlog_limit
        self._reports_sync = synced
        self._registration: Registration | None = None
        self._has_left = False
        self._has_ended = False
        # A policy acts on what still waits in the backlog, so that it must not be taken too early.
        self._taken: asyncio.Queue[InformerEvent[T] | None] = asyncio.Queue(
            MOST_TAKEN if backlog in ("unbounded", "block") else 1
        )
        self._start_check: asyncio.TimerHandle | None = None
        self._end_task: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"events of {self._informer.name}"

    async def __aenter__(self) -> Self:
        if self._registration is not None and not self._has_left:
            raise AlreadyStartedError(f"{self!r} are entered already: make one for each reader")
        self._taken = asyncio.Queue(self._taken.maxsize)
        self._registration = self._informer.add_event_handler(
            self, backlog=self._backlog, backlog_limit=self._backlog_limit
        )
        self._has_left = self._has_ended = False
        self._end_task = asyncio.create_task(self._report_sync_and_end(), name=f"end of {self!r}")
        self._start_check = asyncio.get_running_loop().call_later(
            NOT_STARTED_WARNING_DELAY, self._warn_if_not_started
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._registration is not None
        assert self._start_check is not None
        assert self._end_task is not None
        self._start_check.cancel()
        self._has_left = True
        self._end_task.cancel()
        while not self._taken.empty():
            self._taken.get_nowait()
        self._taken.put_nowait(None)  # ends the iteration of a waiting task
        await self._informer.shut_down_event_handler(self._registration, cancel=True)
        await finish(self._end_task)

    def __len__(self) -> int:
        """The number of unread events."""
        if self._registration is None or self._has_left:
            return 0
        return self._registration.state.depth + self._taken.qsize() - self._has_ended

    def __bool__(self) -> bool:
        return True

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> InformerEvent[T]:
        if self._registration is None:
            raise InformerError(f"{self!r}: enter them with async with before iterating")
        while not self._has_left:
            if self._taken.empty():
                self._informer.require_own_loop()
            event = await self._taken.get()
            if event is not None:
                return event
            is_last = self._taken.empty()
            self._taken.put_nowait(None)  # for other readers, and for the next call
            if is_last:
                break
        raise StopAsyncIteration

    def on_add(self, obj: T, is_in_initial_list: bool) -> Awaitable[None] | None:
        return self._put(InformerEvent(ADDED, obj, None, is_in_initial_list))

    def on_update(self, old: T, new: T) -> Awaitable[None] | None:
        return self._put(InformerEvent(MODIFIED, new, old))

    def on_delete(self, obj: T | DeletedFinalStateUnknown[Any]) -> Awaitable[None] | None:
        last: Any = obj.obj if isinstance(obj, DeletedFinalStateUnknown) else obj
        return self._put(InformerEvent(DELETED, obj if last is None else last))

    def on_undecodable(self, obj: UndecodableObject) -> Awaitable[None] | None:
        """Add an UNDECODABLE event."""
        return self._put(InformerEvent(UNDECODABLE, obj))

    def _put(self, event: InformerEvent[Any]) -> Awaitable[None] | None:
        """Pass an event on; if the reader has not taken the ones before, the handler's call waits for that."""
        try:
            self._taken.put_nowait(event)
        except asyncio.QueueFull:
            return self._taken.put(event)
        return None

    async def _report_sync_and_end(self) -> None:
        assert self._registration is not None
        if self._reports_sync:
            with suppress(StoppedError):
                await self._registration.wait_synced()
                nothing: Any = None
                await self._taken.put(InformerEvent(SYNCED, nothing))
        await self._informer.wait_stopped()
        await self._taken.put(None)
        self._has_ended = True

    def _warn_if_not_started(self) -> None:
        if self._informer.state.phase is Phase.NEW and not self._reports_sync:
            logger.warning("%r wait for an informer that is %s", self, NOT_STARTED)
