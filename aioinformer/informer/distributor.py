"""What an informer does with deltas: store them, then tell the handlers (client-go ``handleDeltas``)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from math import inf
from time import perf_counter
from typing import Any

from ..controller import apply_deltas, apply_in_turns
from ..deltas import REPLACED_ALL, SYNC_ALL, Delta
from ..errors import RequeueError
from ..notifications import DeleteNotification, Notification
from ..processor import CacheMutationDetector, Processor, ProcessorListener
from ..protocols import KnownObjects, Process
from ..store import Indexer
from ..tasks import settle
from ..turns import Turn


class Distributor:
    """From deltas to the store, and on to the handlers.

    An update whose old and new resourceVersion are equal is no news: a resync, or an unchanged object of a relist.
    It goes to handlers whose resync is due, and to no other.

    Args:
        indexer: The store.
        processor: Has the handlers.
        mutation_detector: Is shown what is stored, if there is one.
        on_stored_whole: Called once a whole list is stored, which it may take long to tell.
    """

    def __init__(
        self,
        indexer: Indexer[Any],
        processor: Processor,
        mutation_detector: CacheMutationDetector | None,
        on_stored_whole: Callable[[], None],
    ) -> None:
        self._indexer = indexer
        self._processor = processor
        self._mutation_detector = mutation_detector
        self._on_stored_whole = on_stored_whole

    def handle(self, deltas: Iterable[Delta], is_in_initial_list: bool) -> None:
        """Store deltas and tell the handlers, at once."""
        self._tell_until(inf, apply_deltas(self._indexer, deltas, is_in_initial_list))

    def handle_if_there_is_room(self, deltas: Iterable[Delta], is_in_initial_list: bool) -> None:
        """As ``handle``; RequeueError where a handler that blocks is full, and who processes has to wait for it."""
        if not self._processor.has_room():
            raise RequeueError
        self.handle(deltas, is_in_initial_list)

    def handle_batch(self, deltas: list[Delta], is_in_initial_list: bool) -> Awaitable[None] | None:
        """As ``handle``, but without holding the event loop where it takes longer than a turn."""
        steps = apply_deltas(self._indexer, deltas, is_in_initial_list)
        return None if self._tell_until(Turn().end, steps) else self._go_on(steps)

    async def _go_on(self, steps: Iterator[Notification]) -> None:
        turn = Turn(over=True)
        is_over = False
        while not is_over:
            await turn.pause()
            is_over = self._tell_until(turn.end, steps)

    def _tell_until(self, end: float, steps: Iterator[Notification]) -> bool:
        """Take steps until a time by ``perf_counter``, and tell of them; whether those were all."""
        told: list[Notification] = []
        try:
            for notification in steps:
                told.append(notification)
                if perf_counter() >= end:
                    return False
            return True
        finally:
            self._tell(told)

    def _tell(
        self, notifications: list[Notification], listeners: list[ProcessorListener[Any]] | None = None
    ) -> None:
        if self._mutation_detector is not None:
            for notification in notifications:
                if not isinstance(notification, DeleteNotification):
                    self._mutation_detector.add_object(notification.obj)
        self._processor.distribute_all(notifications, listeners)

    def process_of(self, known: KnownObjects[Any] | None) -> Process:
        """A process function for a RealFIFO with atomic events.

        What is about the whole collection is done in turns, while other queues' events go on. A handler that is
        added meanwhile misses nothing and is told nothing twice: it begins with what the store has.

        Args:
            known: The part of the store that the queue fills; None for all of it.
        """

        def process(deltas: list[Delta], is_in_initial_list: bool) -> Awaitable[None] | None:
            kind = deltas[0].type
            if kind in (REPLACED_ALL, SYNC_ALL):
                return self._handle_whole(deltas[0], is_in_initial_list, known)
            self.handle(deltas, is_in_initial_list)
            return None

        return process

    def once_there_is_room(self, process: Process) -> Process:
        """A process function that waits for handlers that block, before it does anything.

        So a queue holds up who adds to it, and does not grow.
        """

        def now_or_later(deltas: list[Delta], is_in_initial_list: bool) -> Awaitable[None] | None:
            room = self._processor.room()
            return (
                process(deltas, is_in_initial_list)
                if room is None
                else later(room, deltas, is_in_initial_list)
            )

        async def later(room: Awaitable[None], deltas: list[Delta], is_in_initial_list: bool) -> None:
            await room
            await settle(process(deltas, is_in_initial_list))

        return now_or_later

    async def _handle_whole(
        self, delta: Delta, is_in_initial_list: bool, known: KnownObjects[Any] | None
    ) -> None:
        listeners: list[ProcessorListener[Any]] | None = None

        async def tell(notifications: list[Notification]) -> None:
            nonlocal listeners
            if listeners is None:  # the store was changed in this very step: who comes later has seen it
                listeners = self._processor.listeners
                self._on_stored_whole()
            elif (room := self._processor.room()) is not None:
                await room
            self._tell(notifications, listeners)

        await apply_in_turns(self._indexer, delta, is_in_initial_list, tell, known)
