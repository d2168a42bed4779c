"""Distributor: takes the changes of the store in slices, and distributes their notifications."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from time import perf_counter
from typing import Any

from .._core.coop import Budget
from ..notifications import DeleteNotification, Notification
from ..processor import CacheMutationDetector, Processor, ProcessorListener


class Distributor:
    """Takes the steps of ``apply_in_steps``: each changes the store, and may yield a notification for the handlers.

    Args:
        processor: Has the handlers.
        mutation_detector: Gets every stored object, if there is one.
        on_replaced: Called once a whole list is stored, before its notifications are distributed.
    """

    def __init__(
        self,
        processor: Processor,
        mutation_detector: CacheMutationDetector | None,
        on_replaced: Callable[[], None],
    ) -> None:
        self._processor = processor
        self._mutation_detector = mutation_detector
        self._on_replaced = on_replaced

    def take(
        self,
        steps: Iterator[Notification | None],
        end: float,
        listeners: list[ProcessorListener[Any]] | None = None,
    ) -> bool:
        """Take steps until a time by ``perf_counter``; return whether those were all.

        Args:
            steps: Where to go on.
            end: When to stop; infinite for never.
            listeners: Who gets the notifications; None for all.

        Raises:
            RejectedObjectError: As ``apply_in_steps``.
        """
        notifications: list[Notification] = []
        try:
            for notification in steps:
                if notification is not None:
                    notifications.append(notification)
                if end < inf and perf_counter() >= end:
                    return False
            return True
        finally:
            if notifications:
                if self._mutation_detector is not None:
                    for notification in notifications:
                        if not isinstance(notification, DeleteNotification):
                            self._mutation_detector.add_object(notification.obj)
                self._processor.distribute_all(notifications, listeners)

    async def take_rest(self, steps: Iterator[Notification | None]) -> None:
        """Take the remaining steps of a batch; let other tasks run before each slice.

        A batch is at most a thousand deltas, so it does not wait for room between its slices.
        """
        budget = Budget()
        await budget.pause()
        while not self.take(steps, budget.end):
            await budget.pause()

    async def take_whole(self, steps: Iterator[Notification | None]) -> None:
        """Take the steps of a delta of the whole collection; before each slice, let other tasks run and wait for room.

        A listener that is added after the store was replaced starts with what the store has, and must not get the
        notifications.
        """
        listeners: list[ProcessorListener[Any]] = []
        steps = self._note_replacement(steps, listeners)
        budget = Budget()
        is_done = False
        while not is_done:
            await budget.pause()
            await self._processor.wait_for_room()
            is_done = self.take(steps, budget.end, listeners)

    def _note_replacement(
        self, steps: Iterator[Notification | None], listeners: list[ProcessorListener[Any]]
    ) -> Iterator[Notification | None]:
        """Yield the steps; before the first notification, collect the listeners that get all of them."""
        is_replaced = False
        for notification in steps:
            if notification is not None and not is_replaced:
                is_replaced = True
                listeners.extend(self._processor.listeners)
                self._on_replaced()
            yield notification
