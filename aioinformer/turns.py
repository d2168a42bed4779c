"""The event loop is shared: long work is done in turns."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, MutableSequence, ValuesView
from time import perf_counter
from typing import TypeVar

T = TypeVar("T")

TURN = 0.0005
"""Seconds that one piece of work may hold the event loop before it lets others run."""


class Turn:
    """One stretch of work on the event loop.

    Args:
        over: Whether it is over at once.

    Real time, not the loop's: what matters is how long others have been waiting, and uvloop's clock counts
    whole milliseconds.
    """

    __slots__ = ("end",)

    def __init__(self, *, over: bool = False) -> None:
        self.end = 0.0 if over else perf_counter() + TURN
        """When it is over, by ``perf_counter``."""

    def is_over(self) -> bool:
        """Whether it is time to let others run."""
        return perf_counter() >= self.end

    async def pause(self) -> None:
        """Let others run, and begin the next turn."""
        await asyncio.sleep(0)
        self.end = perf_counter() + TURN


async def in_turns(steps: Iterator[None]) -> None:
    """Run work that yields wherever it may be interrupted."""
    turn = Turn()
    for _ in steps:
        if turn.is_over():
            await turn.pause()


def as_it_is(things: Iterable[T]) -> Iterable[T]:
    """What is to be gone through in turns, as it is now: where its owner takes one out meanwhile, the next one would
    be skipped. What gives one after the other, such as a generator, is left to do so.
    """
    return tuple(things) if isinstance(things, (MutableSequence, ValuesView)) else things
