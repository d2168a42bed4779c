"""Timers of the event loop that are reused, since each new one costs about as much as an event."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


class DeadlineTimer:
    """A timer for the next of many deadlines. After it fires it is off until it is set again.

    Args:
        fire: Called with the loop time when the deadline has passed. The time is never before the deadline, though
            the loop's timers may come early by the clock's resolution.

    Attributes:
        deadline: Loop time at which it fires; infinity while it is off. Kept here because uvloop's handles do not
            always know theirs.
    """

    __slots__ = ("_fire", "_handle", "deadline")

    def __init__(self, fire: Callable[[float], None]) -> None:
        self._fire = fire
        self._handle: asyncio.Handle | None = None
        self.deadline = math.inf

    def fire_by(self, deadline: float) -> None:
        """Fire at this loop time, or at the earlier one that is set already."""
        if deadline < self.deadline:
            self.cancel()
            self.deadline = deadline
            self._handle = asyncio.get_running_loop().call_at(deadline, self._fire_now)

    def cancel(self) -> None:
        """Turn the timer off."""
        if self._handle is not None:
            self._handle.cancel()
        self._handle, self.deadline = None, math.inf

    def _fire_now(self) -> None:
        now = max(asyncio.get_running_loop().time(), self.deadline)
        self._handle, self.deadline = None, math.inf
        self._fire(now)


@contextmanager
def call_every(seconds: float, callback: Callable[[], object]) -> Iterator[None]:
    """Call a function every so many seconds until the block ends. For log lines about slow work."""

    def fire(now: float) -> None:
        timer.fire_by(now + seconds)
        callback()

    timer = DeadlineTimer(fire)
    timer.fire_by(asyncio.get_running_loop().time() + seconds)
    try:
        yield
    finally:
        timer.cancel()


class ReusableTimeout:
    """``asyncio.timeout_at`` for waits that follow each other, with one timer for all of them.

    To set and cancel a timer for each event costs a large part of what the event costs. This timer stays set after a
    wait; when it fires, it is set to the deadline of the wait that runs then.

    Attributes:
        has_expired: Whether the last wait passed its deadline.
    """

    __slots__ = ("_deadline", "_timer", "_waiting_task", "has_expired")

    def __init__(self) -> None:
        self._waiting_task: asyncio.Task[object] | None = None
        self._deadline = 0.0
        self._timer = DeadlineTimer(self._on_timer)
        self.has_expired = False

    async def wait(self, awaitable: Awaitable[T], deadline: float) -> T:
        """Await something with a deadline. One task at a time may do so.

        Args:
            awaitable: What to await.
            deadline: Loop time.

        Raises:
            TimeoutError: The deadline passed and the awaitable was cancelled. ``has_expired`` tells this error from a
                TimeoutError that the awaitable raised.
        """
        task = asyncio.current_task()
        assert task is not None
        cancellations_before = task.cancelling()
        self.has_expired = False
        self._deadline = deadline
        self._timer.fire_by(deadline)
        self._waiting_task = task
        try:
            return await awaitable
        except asyncio.CancelledError as error:
            if self.has_expired and task.cancelling() <= cancellations_before + 1:
                raise TimeoutError from error
            raise
        finally:
            self._waiting_task = None
            if self.has_expired:
                task.uncancel()

    def close(self) -> None:
        """Cancel the timer."""
        self._timer.cancel()

    def _on_timer(self, now: float) -> None:
        if self._waiting_task is None:
            return  # the next wait sets the timer
        if now < self._deadline:
            self._timer.fire_by(self._deadline)
        else:
            self.has_expired = True
            self._waiting_task.cancel()
