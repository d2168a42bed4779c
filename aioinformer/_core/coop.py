"""Cooperative scheduling: long work yields to the event loop after each slice."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator, MutableSequence, ValuesView
from time import perf_counter
from typing import TypeVar

T = TypeVar("T")

SLICE = 0.0005
"""Seconds for which work may block the event loop. All work that runs concurrently shares one slice."""

BUSY = 0.0001
"""Seconds of other work in one iteration from which on the event loop is busy, as with a web service's requests."""

OTHERS = 5
"""In a busy loop, other work gets this many times the time of a slice before the next one begins."""

MAX_SHARES = 10
"""A slice is divided by this number at most, because a pause costs time, too."""


class _Loop(threading.local):
    """The budgets of this thread's event loop.

    Attributes:
        pausing: Those that pause now.
        used: Seconds that all of them have used so far.
    """

    def __init__(self) -> None:
        self.pausing: set[Budget] = set()
        self.used = 0.0
        self._waiting: list[asyncio.Future[None]] = []
        self._loop: asyncio.AbstractEventLoop | None = None  # of those
        self._owed = 0.0  # seconds of other work before they go on
        self._last = (0.0, 0.0)  # when that was counted last, and what had been used then

    async def let_others_work(self, used: float) -> None:
        """Wait until other work had its time, or there is none."""
        loop = asyncio.get_running_loop()
        if not self._waiting or self._loop is not loop:  # the loop before was closed meanwhile
            self._loop, self._waiting = loop, []
            self._owed, self._last = 0.0, (perf_counter(), self.used)
            loop.call_soon(self._count, loop)
        self._owed += used * OTHERS
        future: asyncio.Future[None] = loop.create_future()
        self._waiting.append(future)
        await future

    def _count(self, loop: asyncio.AbstractEventLoop) -> None:
        """Count the other work of each iteration."""
        if loop is not self._loop:
            return
        (then, used), now = self._last, perf_counter()
        self._last = now, self.used
        others = now - then - (self.used - used)
        self._owed -= others
        if self._owed > 0 and others >= BUSY:
            loop.call_soon(self._count, loop)
            return
        waiting, self._waiting = self._waiting, []
        self._loop = None  # it may be closed soon, and must not be kept
        for future in waiting:
            if not future.done():
                future.set_result(None)


_loop = _Loop()


class Budget:
    """The time that work may take before it yields to the event loop.

    While one budget is used, all others of concurrent work are in their pauses. So the number of paused ones says how
    many share SLICE.

    Args:
        over: Whether the budget is spent at once.

    It measures real time, not the loop's: uvloop's clock counts whole milliseconds.
    """

    __slots__ = ("_begun", "end")

    def __init__(self, *, over: bool = False) -> None:
        self._begun = now = perf_counter()
        self.end = 0.0 if over else now + _share(len(_loop.pausing) + 1)
        """When it is spent, by ``perf_counter``."""

    def is_spent(self) -> bool:
        """Return whether the work should pause now."""
        return perf_counter() >= self.end

    async def pause(self) -> None:
        """Let the event loop run other tasks, once or in a busy loop for longer, and start the next slice."""
        pausing, paused = _loop.pausing, perf_counter()
        used = min(paused - self._begun, SLICE)  # for the rest of that time it waited
        _loop.used = so_far = _loop.used + used
        pausing.add(self)
        try:
            await asyncio.sleep(0)
            if perf_counter() - paused - (_loop.used - so_far) >= BUSY:
                await _loop.let_others_work(used)
            self._begun = now = perf_counter()
            self.end = now + _share(len(pausing))
        finally:
            pausing.discard(self)


def _share(concurrent: int) -> float:
    return SLICE / min(concurrent, MAX_SHARES)


async def run_in_slices(steps: Iterator[None]) -> None:
    """Run a generator that yields wherever it can be interrupted, in slices."""
    budget = Budget()
    for _ in steps:
        if budget.is_spent():
            await budget.pause()


def snapshot(things: Iterable[T]) -> Iterable[T]:
    """Copy a list or dict view before an iteration that pauses, because its owner may change it meanwhile.

    Generators and other iterables are returned as they are.
    """
    return tuple(things) if isinstance(things, (MutableSequence, ValuesView)) else things
