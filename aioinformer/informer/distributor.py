"""Distributor: applies deltas to the store and distributes the notifications (client-go ``handleDeltas``)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from math import inf
from time import perf_counter
from typing import Any

from .._core.coop import Budget
from ..controller import apply_deltas, apply_in_steps
from ..deltas import REPLACED_ALL, SYNC_ALL, Delta
from ..notifications import DeleteNotification, Notification
from ..processor import CacheMutationDetector, Processor, ProcessorListener
from ..protocols import KnownObjects
from ..store import Indexer


class Distributor:
    """The process function of an informer: deltas into the store, notifications to the handlers.

    An update whose old and new resourceVersion are equal is a resync, or an unchanged object of a relist. Only handlers
    whose resync is due get it.

    Args:
        indexer: The store.
        processor: Has the handlers.
        mutation_detector: Gets every stored object, if there is one.
        on_replaced: Called once a whole list is stored, before its notifications are distributed.
        known: The part of the store that the queue fills; None for all of it.
    """

    def __init__(
        self,
        indexer: Indexer[Any],
        processor: Processor,
        mutation_detector: CacheMutationDetector | None,
        on_replaced: Callable[[], None],
        known: KnownObjects[Any] | None = None,
    ) -> None:
        self._indexer = indexer
        self._processor = processor
        self._mutation_detector = mutation_detector
        self._on_replaced = on_replaced
        self._known = known

    def process(self, deltas: list[Delta], is_in_initial_list: bool) -> Awaitable[None] | None:
        """Apply deltas and distribute them; a Controller's ``process`` and ``process_batch``.

        Returns:
            None if everything is done; else what to await. It waits while a handler with backlog "block" is full, and
            lets other tasks run between slices of long work. The queue waits for it, so the queue does not grow.

        Raises:
            RejectedObjectError: At the end: an object without a key, or an index that failed.
        """
        if not self._processor.has_room():
            return self._process_when_there_is_room(deltas, is_in_initial_list)
        steps = apply_in_steps(self._indexer, deltas, is_in_initial_list, self._known)
        if deltas[0].type in (REPLACED_ALL, SYNC_ALL):
            listeners: list[ProcessorListener[Any]] = []
            return self._process_slices(self._noting_replacement(steps, listeners), listeners)
        if self._process_slice(steps, inf if len(deltas) == 1 else Budget().end):
            return None
        return self._process_slices(steps)

    def apply(self, deltas: Iterable[Delta], is_in_initial_list: bool) -> None:
        """Apply deltas and distribute them without waiting for room."""
        self._process_slice(apply_deltas(self._indexer, deltas, is_in_initial_list), inf)

    async def _process_when_there_is_room(self, deltas: list[Delta], is_in_initial_list: bool) -> None:
        await self._processor.wait_for_room()
        result = self.process(deltas, is_in_initial_list)
        if result is not None:
            await result

    async def _process_slices(
        self,
        steps: Iterator[Notification | None],
        listeners: list[ProcessorListener[Any]] | None = None,
    ) -> None:
        """Process the remaining steps; let other tasks run before each slice.

        A batch of deltas is at most a thousand, so only a whole list waits for room between its slices.
        """
        budget = Budget()
        is_done = False
        while not is_done:
            await budget.pause()
            if listeners is not None:
                await self._processor.wait_for_room()
            is_done = self._process_slice(steps, budget.end, listeners)

    def _process_slice(
        self,
        steps: Iterator[Notification | None],
        end: float,
        listeners: list[ProcessorListener[Any]] | None = None,
    ) -> bool:
        """Process steps until a time by ``perf_counter``; return whether that was all."""
        notifications: list[Notification] = []
        try:
            for notification in steps:
                if notification is not None:
                    notifications.append(notification)
                if end < inf and perf_counter() >= end:
                    return False
            return True
        finally:
            self._distribute(notifications, listeners)

    def _noting_replacement(
        self, steps: Iterator[Notification | None], listeners: list[ProcessorListener[Any]]
    ) -> Iterator[Notification | None]:
        """Yield the steps of a Replace, and collect the listeners that get its notifications.

        A listener that is added after the store was replaced starts with what the store has, and must not get them.
        """
        is_replaced = False
        for notification in steps:
            if notification is not None and not is_replaced:
                is_replaced = True
                listeners.extend(self._processor.listeners)
                self._on_replaced()
            yield notification

    def _distribute(
        self, notifications: list[Notification], listeners: list[ProcessorListener[Any]] | None
    ) -> None:
        if not notifications:
            return
        if self._mutation_detector is not None:
            for notification in notifications:
                if not isinstance(notification, DeleteNotification):
                    self._mutation_detector.add_object(notification.obj)
        self._processor.distribute_all(notifications, listeners)
