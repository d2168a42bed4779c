"""ProcessorListener: one handler's notifications (client-go ``shared_informer.go``).

    add ─► pending deque ─► pop task ─► bounded channel ─► run task ─► handler

The deque takes whatever comes at once, so a slow handler delays neither the store nor other handlers; the channel
holds one batch, so that what waits waits in the deque, where it is counted.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from inspect import isawaitable
from itertools import islice
from time import perf_counter
from typing import Any, Generic, TypeVar

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from ..handlers import ResourceEventHandler, handler_name, require_handler
from ..keys import key_and_version
from ..notifications import Notification
from ..turns import Turn

logger = logging.getLogger(__name__)

T = TypeVar("T")

BATCH = 256
"""Notifications handed over at once."""

TIMER_SLACK = 0.01
"""Seconds: what a timer may ring early (uvloop's by 1 ms) must not cost a whole resync period."""

SLOW_CALL = 0.1
"""Seconds of one handler call over which a handler with more than ``SLOW_CALL_DEPTH`` waiting warns."""
SLOW_CALL_DEPTH = 1024
WARN_EVERY = 10.0
"""Seconds between such warnings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerState:
    """A snapshot of a listener.

    Attributes:
        name: The handler's.
        depth: Notifications that wait, the one being handled among them.
        high_water: The most that ever waited.
        delivered: Calls that have returned or raised.
        failed: Calls that raised.
        handling: The key being handled, or None.
        handling_seconds: For how long.
    """

    name: str
    depth: int
    high_water: int
    delivered: int
    failed: int
    handling: str | None
    handling_seconds: float

    def __str__(self) -> str:
        text = f"{self.name}: {self.depth} waiting (at most {self.high_water}), {self.delivered} delivered"
        if self.failed:
            text += f", {self.failed} failed"
        return (
            text if self.handling is None else f"{text}; at {self.handling} for {self.handling_seconds:.1f} s"
        )


class ProcessorListener(Generic[T]):
    """Delivers notifications to one handler, one call after the other, in order.

    Args:
        handler: Who is told.
        requested_resync_period: Seconds between resyncs that the handler asked for; 0 for none.
        resync_period: Seconds between resyncs that it gets.
        upstream_synced: Whether everything of the initial list has been added here.
        name: What logs call the handler.
    """

    def __init__(
        self,
        handler: ResourceEventHandler[T],
        requested_resync_period: float = 0.0,
        resync_period: float = 0.0,
        *,
        upstream_synced: Callable[[], bool] = lambda: True,
        name: str = "",
    ) -> None:
        require_handler(handler)
        self.handler = handler
        self.name = name or handler_name(handler)
        self.requested_resync_period = requested_resync_period
        self.resync_period = resync_period
        self._upstream_synced = upstream_synced
        self._next_resync = 0.0
        self._pending: deque[Notification] = deque()
        self._wake = asyncio.Event()
        self._initial_delivered = asyncio.Event()
        self._initial_delivered.set()
        self._initial_pending = 0
        self._stopping = False
        self._added = self._delivered = self._failed = self._high_water = 0
        self._handling: Notification | None = None
        self._handling_since = 0.0
        self._next_warning = 0.0
        self._run_task: asyncio.Task[Any] | None = None

    def __repr__(self) -> str:
        return f"<ProcessorListener {self.name}>"

    def add(self, notification: Notification) -> None:
        """Queue a notification. Never waits."""
        if self._stopping:
            return
        if notification.is_in_initial_list:
            self._initial_pending += 1
            self._initial_delivered.clear()
        if not self._pending:
            self._wake.set()
        self._pending.append(notification)
        self._added += 1
        if (depth := self._added - self._delivered) > self._high_water:
            self._high_water = depth

    def add_all(self, notifications: Iterable[Notification]) -> None:
        """Queue many notifications."""
        for notification in notifications:
            self.add(notification)

    def stop(self) -> None:
        """Drop what waits and take nothing more; a call that is running goes on, and ``run`` then returns."""
        self._stopping = True
        self._pending.clear()
        self._wake.set()
        self._initial_delivered.set()  # what was dropped is not to be waited for

    @property
    def depth(self) -> int:
        """Notifications that wait, the one being handled among them."""
        return 0 if self._stopping else self._added - self._delivered

    @property
    def high_water(self) -> int:
        """The most that ever waited."""
        return self._high_water

    @property
    def state(self) -> ListenerState:
        """What it is doing."""
        handling = self._handling
        return ListenerState(
            name=self.name,
            depth=self.depth,
            high_water=self._high_water,
            delivered=self._delivered,
            failed=self._failed,
            handling=None if handling is None else key_and_version(handling.obj)[0],
            handling_seconds=0.0 if handling is None else perf_counter() - self._handling_since,
        )

    def is_inside_handler(self) -> bool:
        """Whether the running task is the one that calls the handler."""
        return self._run_task is not None and self._run_task is asyncio.current_task()

    def has_synced(self) -> bool:
        """Whether the handler has returned from the last add of the initial list."""
        return self._upstream_synced() and self._initial_pending == 0

    async def wait_initial_delivered(self) -> None:
        """Wait until no add of an initial list waits any more: all delivered, or dropped by ``stop``."""
        await self._initial_delivered.wait()

    def should_resync(self, now: float) -> bool:
        """Whether its resync is due at a loop time."""
        return self.resync_period > 0 and now >= self._next_resync - TIMER_SLACK

    def determine_next_resync(self, now: float) -> None:
        """Count its resync period from a loop time."""
        self._next_resync = now + self.resync_period

    async def run(self) -> None:
        """Deliver until stopped or cancelled; what still waits then is dropped."""
        channel_in, channel_out = anyio.create_memory_object_stream[list[Notification]](1)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._pop(channel_in), name=f"{self!r} pop")
                tasks.create_task(self._run(channel_out), name=f"{self!r} run")
        finally:
            self.stop()

    async def _pop(self, channel: MemoryObjectSendStream[list[Notification]]) -> None:
        with channel, suppress(anyio.BrokenResourceError):  # the run task ended first: stopped
            while not self._stopping:
                if not self._pending:
                    self._wake.clear()
                    await self._wake.wait()
                    continue
                batch = list(islice(self._pending, BATCH))
                for _ in batch:
                    self._pending.popleft()
                await channel.send(batch)

    async def _run(self, channel: MemoryObjectReceiveStream[list[Notification]]) -> None:
        task = self._run_task = asyncio.current_task()
        assert task is not None
        with channel:
            async for batch in channel:
                turn = Turn()
                now = perf_counter()
                for notification in batch:
                    if self._stopping:
                        return
                    self._handling = notification
                    self._handling_since = started = now
                    try:
                        result = notification.deliver(self.handler)
                        if result is not None and isawaitable(result):
                            await result
                            if task.cancelling():  # which the handler has swallowed
                                return
                    except Exception as error:
                        self._note_failure(notification, error)
                    except asyncio.CancelledError as error:
                        if task.cancelling():
                            raise
                        self._note_failure(notification, error)  # the handler's own doing, not ours
                    finally:
                        self._handling = None
                    self._delivered += 1
                    if notification.is_in_initial_list:
                        self._note_initial_delivered()
                    now = perf_counter()
                    if now - started > SLOW_CALL:
                        self._note_slow(notification, now - started)
                    if now >= turn.end:
                        await turn.pause()
                        now = perf_counter()

    def _note_initial_delivered(self) -> None:
        self._initial_pending -= 1
        if not self._initial_pending:
            self._initial_delivered.set()

    def _note_slow(self, notification: Notification, took: float) -> None:
        """Warn of a call that took long while many wait; while that goes on, now and then."""
        now = perf_counter()
        if self.depth > SLOW_CALL_DEPTH and now >= self._next_warning:
            self._next_warning = now + WARN_EVERY
            key, _ = key_and_version(notification.obj)
            logger.warning("%s took %.0f ms on %s, with %d waiting", self.name, took * 1000, key, self.depth)

    def _note_failure(self, notification: Notification, error: BaseException) -> None:
        self._failed += 1
        key, version = key_and_version(notification.obj)
        kind = type(notification).__name__.removesuffix("Notification").lower()
        logger.error("%s failed on %s of %s at %s", self.name, kind, key, version, exc_info=error)
