"""Processor: one notification to every listener (client-go ``sharedProcessor``)."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Iterable, Sequence
from contextvars import copy_context
from operator import attrgetter
from typing import Any

from ..notifications import Notification
from ..tasks import Running
from .listener import ProcessorListener

LOOK_EVERY = 10.0
"""Seconds between looks for handlers that are stuck or fall behind."""

_IS_FULL = attrgetter("is_full")  # no generator: each event asks


class Processor(Running):
    """The listeners of an informer, and the tasks that run them. An async context manager.

    Notifications that are distributed before ``run`` wait in the listeners.
    """

    def __init__(self) -> None:
        # Whether a listener's resync is due: as of the last should_resync().
        self._syncing: dict[ProcessorListener[Any], bool] = {}
        self._running: set[ProcessorListener[Any]] = set()  # those among them that were removed, too
        self._tasks: asyncio.TaskGroup | None = None
        self._runner: asyncio.Task[object] | None = None  # the task whose group that is
        self._told: deque[tuple[Sequence[Notification], Iterable[ProcessorListener[Any]]]] = deque()

    @property
    def listeners(self) -> list[ProcessorListener[Any]]:
        """The listeners, in the order of their coming."""
        return list(self._syncing)

    @property
    def leaving(self) -> int:
        """How many were removed while a call of theirs was running that has not ended."""
        return len(self._running - self._syncing.keys())

    @property
    def running(self) -> list[ProcessorListener[Any]]:
        """Those that are running, removed ones among them."""
        return list(self._running)

    def add_listener(self, listener: ProcessorListener[Any]) -> None:
        """Add a listener; while running, it runs at once."""
        self._syncing[listener] = False
        if self._tasks is not None:
            self._start(listener, self._tasks)

    def remove_listener(self, listener: ProcessorListener[Any]) -> bool:
        """Stop a listener, dropping what waits in it; whether it was one of these."""
        if self._syncing.pop(listener, None) is None:
            return False
        listener.stop()
        return True

    def is_inside_handler(self) -> bool:
        """Whether what runs was begun by a handler's call that has not ended, in whatever task."""
        return any(listener.is_inside_handler() for listener in self._running)

    def distribute(self, notification: Notification, is_sync: bool) -> None:
        """Queue a notification: one that is news with every listener, one that is not (a resync, an unchanged
        object of a relist) with those whose resync is due.

        Within a handler's call it may overtake what is being told.
        """
        for listener, syncing in self._syncing.items():
            if syncing or not is_sync:
                listener.add(notification)

    def distribute_all(
        self,
        notifications: Sequence[Notification],
        listeners: Iterable[ProcessorListener[Any]] | None = None,
    ) -> None:
        """As ``distribute``, for many, each of which knows whether it is news.

        Of one that comes alone, plain handlers that wait for news are told here and now. What one of them distributes
        itself is told after that, to all who were listening.

        Args:
            notifications: In their order.
            listeners: Only these, of which those that were removed meanwhile take nothing; None for all.
        """
        # Of all a handler may remove some, or add to them.
        self._told.append((notifications, list(self._syncing) if listeners is None else listeners))
        if len(self._told) > 1:
            return  # whoever tells goes on with these
        try:
            while self._told:
                self._tell(*self._told[0])
                self._told.popleft()
        finally:
            self._told.clear()

    def _tell(
        self, notifications: Sequence[Notification], listeners: Iterable[ProcessorListener[Any]]
    ) -> None:
        if len(notifications) == 1:
            is_sync = notifications[0].is_sync
            for listener in listeners:
                if not is_sync or self._syncing.get(listener):
                    listener.tell(notifications[0])
            return
        news = [notification for notification in notifications if not notification.is_sync]
        for listener in listeners:
            listener.add_all(notifications if self._syncing.get(listener) else news)

    def room(self) -> Awaitable[None] | None:
        """To be awaited before more is distributed: until no listener that blocks is full. None if none is."""
        return None if self.has_room() else self._wait_for_room()

    def has_room(self) -> bool:
        """Whether no listener that blocks is full."""
        return not any(map(_IS_FULL, self._syncing))

    async def _wait_for_room(self) -> None:
        while full := next((listener for listener in self._syncing if listener.is_full), None):
            await full.wait_for_room()

    def should_resync(self) -> bool:
        """Find out whose resync is due now, and whether anybody's is."""
        now = asyncio.get_running_loop().time()
        for listener in self._syncing:
            due = self._syncing[listener] = listener.should_resync(now)
            if due:
                listener.determine_next_resync(now)
        return any(self._syncing.values())

    def count_resyncs_from(self, now: float) -> None:
        """Count from a loop time the resync periods of the listeners that came before there was a loop."""
        for listener in self._syncing:
            if not listener.counts_resyncs:
                listener.determine_next_resync(now)

    async def run(self) -> None:
        """Run the listeners until cancelled; meanwhile look for those that are stuck or fall behind."""
        self._runner = asyncio.current_task()
        async with asyncio.TaskGroup() as tasks:
            for listener in self._syncing:
                self._start(listener, tasks)
            self._tasks = tasks
            try:
                while True:
                    await asyncio.sleep(LOOK_EVERY)
                    for listener in self._syncing:
                        listener.look()
            finally:
                self._tasks = None

    def _start(self, listener: ProcessorListener[Any], tasks: asyncio.TaskGroup) -> None:
        listener.context = copy_context()
        listener.is_ending = self._is_ending
        tasks.create_task(self._run_listener(listener), name=repr(listener), context=listener.context)

    def _is_ending(self) -> bool:
        """Whether its tasks are cancelled: by their group, or together with it, as all are at the end of a loop."""
        return self._tasks is None or self._runner is None or self._runner.cancelling() > 0

    async def _run_listener(self, listener: ProcessorListener[Any]) -> None:
        self._running.add(listener)
        try:
            await listener.run()
        finally:
            self._running.discard(listener)
