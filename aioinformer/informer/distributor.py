"""What an informer does with deltas: store them, then tell the handlers (client-go ``handleDeltas``)."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator
from time import perf_counter
from typing import Any

from ..controller import apply_deltas, apply_in_turns
from ..deltas import REPLACED_ALL, SYNC_ALL, Delta
from ..notifications import DeleteNotification, Notification
from ..processor import CacheMutationDetector, Processor, ProcessorListener
from ..protocols import KnownObjects, Process
from ..store import Indexer
from ..turns import Turn


class Distributor:
    """From deltas to the store, and on to the handlers.

    An update whose old and new resourceVersion are equal is no news: a resync, or an unchanged object of a relist.
    It goes to handlers whose resync is due, and to no other.
    """

    def __init__(
        self, indexer: Indexer[Any], processor: Processor, mutation_detector: CacheMutationDetector | None
    ) -> None:
        self._indexer = indexer
        self._processor = processor
        self._mutation_detector = mutation_detector

    def handle(self, deltas: Iterable[Delta], is_in_initial_list: bool) -> None:
        """Store deltas and tell the handlers, at once."""
        for notification in apply_deltas(self._indexer, deltas, is_in_initial_list):
            self._tell(notification)

    def handle_batch(self, deltas: list[Delta], is_in_initial_list: bool) -> Awaitable[None] | None:
        """As ``handle``, but without holding the event loop where it takes longer than a turn."""
        end = Turn().end
        notifications = apply_deltas(self._indexer, deltas, is_in_initial_list)
        for notification in notifications:
            self._tell(notification)
            if perf_counter() >= end:
                return self._go_on(notifications)
        return self._processor.room()

    async def _go_on(self, notifications: Iterator[Notification]) -> None:
        turn = Turn()
        await turn.pause()
        for notification in notifications:
            self._tell(notification)
            if turn.is_over():
                await turn.pause()
        if (room := self._processor.room()) is not None:
            await room

    def _tell(self, notification: Notification) -> None:
        self._remember(notification)
        self._processor.distribute(notification, notification.is_sync)

    def _remember(self, notification: Notification) -> None:
        if self._mutation_detector is not None and not isinstance(notification, DeleteNotification):
            self._mutation_detector.add_object(notification.obj)

    def process_of(self, known: KnownObjects[Any] | None) -> Process:
        """A process function for a RealFIFO with atomic events.

        What is about the whole collection is done in turns, while other queues' events go on. A handler that is
        added meanwhile misses nothing and is told nothing twice: it begins with what the store has.

        Where a handler blocks, processing waits for it, so that the queue holds up who adds to it: unlike a
        DeltaFIFO, which holds an item for each object at most, it would else grow with each event.

        Args:
            known: The part of the store that the queue fills; None for all of it.
        """

        def process(deltas: list[Delta], is_in_initial_list: bool) -> Awaitable[None] | None:
            kind = deltas[0].type
            if kind is REPLACED_ALL or kind is SYNC_ALL:
                return self._handle_whole(deltas[0], is_in_initial_list, known)
            self.handle(deltas, is_in_initial_list)
            return self._processor.room()

        return process

    async def _handle_whole(
        self, delta: Delta, is_in_initial_list: bool, known: KnownObjects[Any] | None
    ) -> None:
        listeners: list[ProcessorListener[Any]] | None = None

        def tell(notification: Notification) -> Awaitable[None] | None:
            nonlocal listeners
            if listeners is None:  # the store was changed in this very step: who comes later has seen it
                listeners = self._processor.listeners
            self._remember(notification)
            self._processor.distribute_among(listeners, notification, notification.is_sync)
            return self._processor.room()

        await apply_in_turns(self._indexer, delta, is_in_initial_list, tell, known)
