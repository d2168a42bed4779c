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

MAX_SHARES = 10
"""A slice is divided by this number at most, because a pause costs time, too."""


class _Loop(threading.local):
    """The budgets that pause in this thread's event loop."""

    def __init__(self) -> None:
        self.pausing: set[Budget] = set()


_loop = _Loop()


class Budget:
    """The time that work may take before it yields to the event loop.

    While one budget is used, all others of concurrent work are in their pauses. So the number of paused ones says how
    many share SLICE.

    Args:
        over: Whether the budget is spent at once.

    It measures real time, not the loop's: uvloop's clock counts whole milliseconds.
    """

    __slots__ = ("end",)

    def __init__(self, *, over: bool = False) -> None:
        self.end = 0.0 if over else perf_counter() + _share(len(_loop.pausing) + 1)
        """When it is spent, by ``perf_counter``."""

    def is_spent(self) -> bool:
        """Return whether the work should pause now."""
        return perf_counter() >= self.end

    async def pause(self) -> None:
        """Let the event loop run other tasks once, and start the next slice."""
        pausing = _loop.pausing
        pausing.add(self)
        try:
            await asyncio.sleep(0)
            self.end = perf_counter() + _share(len(pausing))
        finally:
            pausing.discard(self)


def _share(concurrent: int) -> float:
    return SLICE / min(concurrent, MAX_SHARES)


async def yielding(steps: Iterator[None]) -> None:
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
