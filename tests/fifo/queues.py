"""Queues of both kinds, and what tests of them have in common."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aioinformer import DeltaFIFO, RealFIFO, Store
from aioinformer.cache import Delta

Deltas = list[Delta]


Fifo = DeltaFIFO | RealFIFO

KINDS: dict[str, Callable[..., Fifo]] = {
    "delta": DeltaFIFO,
    "real": lambda known_objects=None, **options: RealFIFO(
        known_objects=Store() if known_objects is None else known_objects, **options
    ),
}


def keys(fifo: Fifo) -> list[str]:
    """The queued keys, oldest first."""
    if isinstance(fifo, DeltaFIFO):
        return fifo.list_keys()
    return [fifo.key_of(delta.object) for delta in fifo.queued]


def ignore(deltas: Deltas, initial: bool) -> None:
    pass


async def is_free(fifo: Fifo) -> bool:
    """Whether nobody was left holding it: another verb gets through."""
    await fifo.apply([])
    return True


class Gate:
    """A process function that stands still until it is let go.

    Args:
        tell: What is to be seen of the deltas that it is given.
    """

    def __init__(self, tell: Callable[[Deltas], list[str]] = lambda deltas: [deltas[-1].object.key]) -> None:
        self._tell = tell
        self.entered = asyncio.Event()
        self.let_go = asyncio.Event()
        self.seen: list[str] = []

    async def __call__(self, deltas: Deltas, initial: bool) -> None:
        self.entered.set()
        await self.let_go.wait()
        self.seen += self._tell(deltas)
