"""Both kinds of queues, and helpers for their tests."""

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
    """Return the queued keys, oldest first."""
    if isinstance(fifo, DeltaFIFO):
        return fifo.list_keys()
    return [fifo.key_of(delta.object) for delta in fifo.queued]


def ignore(deltas: Deltas, initial: bool) -> None:
    pass


async def is_free(fifo: Fifo) -> bool:
    """Check that the queue's lock is free: another verb returns."""
    await fifo.apply([])
    return True


class Gate:
    """A process function that waits until ``release`` is set.

    Args:
        summarize: Makes the texts in ``seen`` from the processed deltas.
    """

    def __init__(
        self, summarize: Callable[[Deltas], list[str]] = lambda deltas: [deltas[-1].object.key]
    ) -> None:
        self._summarize = summarize
        self.entered = asyncio.Event()
        self.release = asyncio.Event()
        self.seen: list[str] = []

    async def __call__(self, deltas: Deltas, initial: bool) -> None:
        self.entered.set()
        await self.release.wait()
        self.seen += self._summarize(deltas)
