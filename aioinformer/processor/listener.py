"""ProcessorListener: one handler's notifications (client-go ``shared_informer.go``).

    add ─► pending notifications ─► pop task ─► channel ─► run task ─► handler

The pending notifications are an unbounded deque, so a slow handler delays neither the store nor other handlers. The
pop task forwards them in batches through a channel that holds one batch. ``backlog.py`` has the backlog policies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from time import perf_counter
from typing import Generic, TypeVar

from .._core.cancellation import ends_when, is_cancelled
from .._core.checks import require_seconds
from .._core.coop import Budget
from ..errors import StoppedError
from ..handlers import ResourceEventHandler, handler_name, require_handler
from ..notifications import Notification
from ..objects.keys import KeyFunc, deletion_handling_meta_namespace_key_func, key_and_version
from .backlog import BACKLOG_LIMIT, Backlog, make_pending
from .calls import HandlerCalls
from .state import ListenerState

T = TypeVar("T")

TIMER_SLACK = 0.01
"""Seconds by which a timer may fire early (uvloop's by 1 ms) without skipping a resync."""


class ProcessorListener(Generic[T]):
    """Delivers notifications to one handler, one call after the other, in order.

    Args:
        handler: The handler.
        requested_resync_period: Seconds between resyncs that the handler asked for; 0 for none.
        resync_period: Seconds between resyncs that it gets.
        upstream_synced: Whether everything of the initial list has been added here.
        name: The handler's name in logs; ``""`` for its repr, or else its class.
        backlog: What to do with notifications that the handler is too slow for.
        backlog_limit: Notifications that wait before "block" blocks and "drop_oldest" drops.
        key_func: Gives an object's key, for "coalesce".

    Attributes:
        pending: The notifications that wait.

    Raises:
        ConfigError: The handler lacks a method, a period is negative, or there is no such backlog.
    """

    def __init__(
        self,
        handler: ResourceEventHandler[T],
        requested_resync_period: float = 0.0,
        resync_period: float = 0.0,
        *,
        upstream_synced: Callable[[], bool] = lambda: True,
        name: str = "",
        backlog: Backlog = "unbounded",
        backlog_limit: int = BACKLOG_LIMIT,
        key_func: KeyFunc = deletion_handling_meta_namespace_key_func,
    ) -> None:
        require_handler(handler)
        require_seconds("requested_resync_period", requested_resync_period)
        require_seconds("resync_period", resync_period)
        self.handler = handler
        self.name = name or handler_name(handler)
        self.requested_resync_period = requested_resync_period
        self.resync_period = resync_period
        self.backlog: Backlog = backlog
        self._next_resync: float | None = None
        self._upstream_synced = upstream_synced
        self.pending = make_pending(backlog, backlog_limit, key_func)
        self._channel: asyncio.Queue[Sequence[Notification]] = asyncio.Queue(maxsize=1)
        self._calls = HandlerCalls(handler, self.name, self.pending, self._is_ending)
        self._pop_task: asyncio.Task[object] | None = None
        self._stopped_before_sync = False
        self._stopped = asyncio.Event()
        self._ended = asyncio.Event()
        self._ended.set()

    def __repr__(self) -> str:
        return f"<ProcessorListener {self.name}>"

    def add(self, notification: Notification) -> None:
        """Add a notification. Never waits."""
        self.pending.add((notification,))

    def add_all(self, notifications: Iterable[Notification]) -> None:
        """Add many notifications. Never waits."""
        self.pending.add(tuple(notifications))

    def stop(self) -> None:
        """Drop what waits and accept nothing more. A running call goes on; then ``run`` returns."""
        if not self.pending.is_closed:
            self._stopped_before_sync = not self._upstream_synced()
            self.pending.close()
            self._stopped.set()

    def cancel_call(self) -> None:
        """Cancel the running call of an async handler that was stopped."""
        if self.pending.is_closed and self._pop_task is not None:
            self._pop_task.cancel()

    async def run(self) -> None:
        """Deliver until stopped or cancelled; drop what still waits then.

        Raises:
            StoppedError: Other code cancelled its run task.

        Cancellation: a running async call is cancelled once, and awaited; it may clean up.
        """
        self._ended.clear()
        self._pop_task = asyncio.current_task()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._run(), name=repr(self))
                await self._pop()
        finally:
            self.stop()
            self._pop_task = None
            self._ended.set()

    async def _pop(self) -> None:
        """Forward batches to the run task; an empty batch ends it."""
        pending, channel = self.pending, self._channel
        while not pending.is_closed:
            if not pending.waiting:
                pending.arrived.clear()
                await pending.arrived.wait()
                continue
            batch = pending.take()
            try:
                channel.put_nowait(batch)
            except asyncio.QueueFull:
                await channel.put(batch)
            if not pending.forwards_all:
                await channel.join()  # meanwhile the policy acts on what waits
        await channel.put(())

    async def _run(self) -> None:
        """Call the handler for each notification of each batch."""
        pending, channel, calls = self.pending, self._channel, self._calls
        task = asyncio.current_task()
        assert task is not None
        ends_when(task, self._is_ending)
        try:
            while batch := await channel.get():
                budget = Budget() if len(batch) > 1 else None
                for notification in batch:
                    if pending.is_closed:
                        break
                    if calls.start(notification):
                        await calls.wait()
                    if task.cancelling():
                        await calls.undo_cancellation(task)
                    ended = calls.end()
                    if budget is not None and ended >= budget.end:
                        await budget.pause()
                if not pending.forwards_all:
                    channel.task_done()
        except asyncio.CancelledError:
            if self._is_ending():
                raise
            raise StoppedError(f"{self.name}: its task was cancelled by other code") from None
        finally:
            calls.abandon()

    def _is_ending(self) -> bool:
        """Whether ``run`` was cancelled."""
        return self._pop_task is None or is_cancelled(self._pop_task)

    @property
    def depth(self) -> int:
        """Notifications that wait, including the one that is being handled."""
        return 0 if self.pending.is_closed else self.pending.depth

    @property
    def high_water(self) -> int:
        """The largest depth so far."""
        return self.pending.high_water

    @property
    def state(self) -> ListenerState:
        """A snapshot."""
        calls, handling = self._calls, self._calls.handling
        return ListenerState(
            name=self.name,
            depth=self.depth,
            high_water=self.high_water,
            delivered=calls.delivered,
            failed=calls.failed,
            handling=None if handling is None else key_and_version(handling.obj)[0],
            handling_seconds=0.0 if handling is None else perf_counter() - calls.started,
            backlog=self.backlog,
            coalesced=self.pending.lost if self.backlog == "coalesce" else 0,
            dropped=self.pending.lost if self.backlog == "drop_oldest" else 0,
        )

    @property
    def is_full(self) -> bool:
        """Whether the store must wait for this handler."""
        return self.pending.is_full

    async def wait_for_room(self) -> None:
        """Wait until the backlog is not full, or the listener is stopped."""
        await self.pending.wait_for_room()

    async def wait_stopped(self) -> None:
        """Wait for ``stop``."""
        await self._stopped.wait()

    async def wait_ended(self) -> None:
        """Wait until no call runs or will run; return at once where ``run`` has not started."""
        await self._ended.wait()

    def is_inside_handler(self) -> bool:
        """Whether the running code was started by an async call of the handler that has not ended."""
        return self._calls.is_current

    def has_synced(self) -> bool:
        """Whether the handler has returned from the last add of the initial list.

        Never, if the listener was stopped before everything of that list had been added.
        """
        return self._upstream_synced() and not self._stopped_before_sync and self.pending.initial == 0

    async def wait_initial_delivered(self) -> None:
        """Wait until every add of an initial list was delivered, or dropped by ``stop``."""
        await self.pending.wait_initial_delivered()

    def should_resync(self, now: float) -> bool:
        """Whether its resync is due at a loop time."""
        due = self._next_resync
        return self.resync_period > 0 and due is not None and now >= due - TIMER_SLACK

    @property
    def counts_resyncs(self) -> bool:
        """Whether its resync period has begun to count."""
        return self._next_resync is not None

    def determine_next_resync(self, now: float) -> None:
        """Count its resync period from a loop time."""
        self._next_resync = now + self.resync_period

    def warn_if_behind(self) -> None:
        """Warn if many notifications wait for one call, or ever more of them. Call this at intervals."""
        self._calls.warn_if_behind()
