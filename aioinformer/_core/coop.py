"""The event loop is shared: long work is done in turns."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator, MutableSequence, ValuesView
from time import perf_counter
from typing import TypeVar

T = TypeVar("T")

SLICE = 0.0005
"""Seconds for which work may hold the event loop before others run; what is under way at once shares them."""

MAX_SHARES = 10
"""Shares that there are at most: a pause costs time, too."""


class _Loop(threading.local):
    """The event loop of this thread."""

    def __init__(self) -> None:
        self.pausing: set[Budget] = set()


_loop = _Loop()


class Budget:
    """One stretch of work on the event loop.

    While one runs, all others that are under way are in their pauses: so their number says how many share SLICE.

    Args:
        over: Whether it is over at once.

    Real time, not the loop's: what matters is how long others have been waiting, and uvloop's clock counts
    whole milliseconds.
    """

    __slots__ = ("end",)

    def __init__(self, *, over: bool = False) -> None:
        self.end = 0.0 if over else perf_counter() + _share(len(_loop.pausing) + 1)
        """When it is over, by ``perf_counter``."""

    def is_spent(self) -> bool:
        """Whether it is time to let others run."""
        return perf_counter() >= self.end

    async def pause(self) -> None:
        """Let others run, and begin the next turn."""
        pausing = _loop.pausing
        pausing.add(self)
        try:
            await asyncio.sleep(0)
            self.end = perf_counter() + _share(len(pausing))
        finally:
            pausing.discard(self)


def _share(at_work: int) -> float:
    return SLICE / min(at_work, MAX_SHARES)


async def yielding(steps: Iterator[None]) -> None:
    """Run work that yields wherever it may be interrupted."""
    budget = Budget()
    for _ in steps:
        if budget.is_spent():
            await budget.pause()


def snapshot(things: Iterable[T]) -> Iterable[T]:
    """What is to be gone through in turns, as it is now: where its owner takes one out meanwhile, the next one would
    be skipped. What gives one after the other, such as a generator, is left to do so.
    """
    return tuple(things) if isinstance(things, (MutableSequence, ValuesView)) else things
