"""Processor: distributes notifications to every listener (client-go ``sharedProcessor``)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

from .._core.cancellation import is_cancelled
from .._core.tasks import Running
from ..errors import StoppedError
from ..notifications import Notification
from .listener import ProcessorListener

CHECK_EVERY = 10.0
"""Seconds between checks for handlers that are stuck or fall behind."""

_IS_FULL = attrgetter("is_full")


class Processor(Running):
    """The listeners of an informer, and the tasks that run them. An async context manager.

    Notifications that are distributed before ``run`` wait in the listeners.
    """

    def __init__(self) -> None:
        # The value: whether the listener's resync was due at the last should_resync().
        self._syncing: dict[ProcessorListener[Any], bool] = {}
        self.blocking: list[ProcessorListener[Any]] = []
        """The listeners with backlog "block"."""
        self._running: set[ProcessorListener[Any]] = set()  # removed ones included
        self._tasks: asyncio.TaskGroup | None = None
        self._runner: asyncio.Task[object] | None = None

    @property
    def listeners(self) -> list[ProcessorListener[Any]]:
        """The listeners, in the order in which they were added."""
        return list(self._syncing)

    @property
    def leaving(self) -> int:
        """How many removed listeners still have a running call."""
        return len(self._running - self._syncing.keys())

    @property
    def running(self) -> list[ProcessorListener[Any]]:
        """The listeners that run, including removed ones."""
        return list(self._running)

    def add_listener(self, listener: ProcessorListener[Any]) -> None:
        """Add a listener; while the processor runs, start it."""
        self._syncing[listener] = False
        if listener.backlog == "block":
            self.blocking.append(listener)
        if self._tasks is not None:
            self._start(listener, self._tasks)

    def remove_listener(self, listener: ProcessorListener[Any]) -> bool:
        """Stop a listener and drop what waits in it; return whether it was one of these."""
        if self._syncing.pop(listener, None) is None:
            return False
        if listener in self.blocking:
            self.blocking.remove(listener)
        listener.stop()
        return True

    def is_inside_handler(self) -> bool:
        """Whether the running code was started by a handler's async call that has not ended, in whatever task."""
        return any(listener.is_inside_handler() for listener in self._running)

    def distribute(self, notification: Notification, is_sync: bool) -> None:
        """Add a notification to every listener.

        Args:
            notification: What to distribute.
            is_sync: Whether it is a resync or an unchanged object of a relist. Then only listeners whose resync is due
                get it.
        """
        for listener, syncing in self._syncing.items():
            if syncing or not is_sync:
                listener.add(notification)

    def distribute_all(
        self,
        notifications: Sequence[Notification],
        listeners: Iterable[ProcessorListener[Any]] | None = None,
    ) -> None:
        """Add many notifications, as ``distribute`` does; each one knows whether it is a resync.

        Args:
            notifications: In their order.
            listeners: Only these, without those that were removed meanwhile; None for all.
        """
        news = notifications
        for notification in notifications:
            if notification.is_sync:
                news = [notification for notification in notifications if not notification.is_sync]
                break
        for listener in self._syncing if listeners is None else listeners:
            gets_all = news is notifications or self._syncing.get(listener)
            listener.pending.add(notifications if gets_all else news)

    def has_room(self) -> bool:
        """Whether no listener with backlog "block" is full."""
        return not any(map(_IS_FULL, self.blocking))

    async def wait_for_room(self) -> None:
        """Wait until no listener with backlog "block" is full."""
        while full := next((listener for listener in self.blocking if listener.is_full), None):
            await full.wait_for_room()

    def should_resync(self) -> bool:
        """Find the listeners whose resync is due now; return whether there is one."""
        now = asyncio.get_running_loop().time()
        for listener in self._syncing:
            due = self._syncing[listener] = listener.should_resync(now)
            if due:
                listener.determine_next_resync(now)
        return any(self._syncing.values())

    def count_resyncs_from(self, now: float) -> None:
        """Start the resync periods, at a loop time, of listeners that were added before there was a loop."""
        for listener in self._syncing:
            if not listener.counts_resyncs:
                listener.determine_next_resync(now)

    async def run(self) -> None:
        """Run the listeners until cancelled, and warn of those that are stuck or fall behind.

        Raises:
            StoppedError: Other code cancelled a listener's task.
        """
        self._runner = asyncio.current_task()
        async with asyncio.TaskGroup() as tasks:
            for listener in self._syncing:
                self._start(listener, tasks)
            self._tasks = tasks
            try:
                while True:
                    await asyncio.sleep(CHECK_EVERY)
                    for listener in self._syncing:
                        listener.warn_if_behind()
            finally:
                self._tasks = None

    def _start(self, listener: ProcessorListener[Any], tasks: asyncio.TaskGroup) -> None:
        tasks.create_task(self._run_listener(listener), name=f"{listener!r} pop")

    async def _run_listener(self, listener: ProcessorListener[Any]) -> None:
        self._running.add(listener)
        try:
            await listener.run()
        except asyncio.CancelledError:
            if listener not in self._syncing or self._is_ending():
                raise
            raise StoppedError(f"{listener.name}: its task was cancelled by other code") from None
        finally:
            self._running.discard(listener)

    def _is_ending(self) -> bool:
        return self._tasks is None or is_cancelled(self._runner)
