"""One timer for many deadlines."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Alarm:
    """A timer that is set to the next of many deadlines, and has to be set anew when it has rung.

    Args:
        ring: Called when the time has come, with the time that it is: no earlier than what it was set to, though a
            timer may come early, by the clock's resolution.

    Attributes:
        at: Loop time at which it rings; infinity while it is off. Of its own, as uvloop's handles do not always know.
    """

    __slots__ = ("_handle", "_ring", "at")

    def __init__(self, ring: Callable[[float], None]) -> None:
        self._ring = ring
        self._handle: asyncio.Handle | None = None
        self.at = math.inf

    def ring_by(self, at: float) -> None:
        """Ring at this loop time, unless it rings sooner anyway."""
        if at < self.at:
            self.turn_off()
            self.at = at
            self._handle = asyncio.get_running_loop().call_at(at, self._go_off)

    def turn_off(self) -> None:
        """Leave no timer behind."""
        if self._handle is not None:
            self._handle.cancel()
        self._handle, self.at = None, math.inf

    def _go_off(self) -> None:
        now = max(asyncio.get_running_loop().time(), self.at)
        self._handle, self.at = None, math.inf
        self._ring(now)


@contextmanager
def every(seconds: float, call: Callable[[], object]) -> Iterator[None]:
    """Around what may take long: call something each so many seconds until it has ended."""

    def ring(now: float) -> None:
        alarm.ring_by(now + seconds)
        call()

    alarm = Alarm(ring)
    alarm.ring_by(asyncio.get_running_loop().time() + seconds)
    try:
        yield
    finally:
        alarm.turn_off()
