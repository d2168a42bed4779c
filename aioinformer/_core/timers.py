"""Timers of the event loop that are reused, since each new one costs about as much as an event."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager


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
