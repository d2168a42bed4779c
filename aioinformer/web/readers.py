"""Readers: the subscribers that wait for a history to go on."""

from __future__ import annotations

import asyncio
from collections import OrderedDict

from .._core.loops import InOneLoop

GROUP = 32
"""Subscribers that are woken in one iteration of the event loop. Those that remain are woken in the next ones."""


class Readers(InOneLoop):
    """Wakes the subscribers of a feed, at its next change or its end.

    Args:
        name: The feed's name, for errors.

    Attributes:
        has_ended: Whether the feed has ended.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.has_ended = False
        self._waiting: OrderedDict[asyncio.Future[bool], None] = OrderedDict()

    def __repr__(self) -> str:
        return self.name

    async def wait(self, timeout: float | None = None) -> bool:
        """Wait to be woken.

        Returns:
            Whether that happened within ``timeout`` seconds.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[bool] = loop.create_future()
        self._waiting[future] = None
        timer = None if timeout is None else loop.call_later(timeout, _wake, future, False)
        try:
            return await future
        finally:
            self._waiting.pop(future, None)
            if timer is not None:
                timer.cancel()

    async def wake(self) -> None:
        """Wake those that wait now, in groups, so that other tasks run meanwhile."""
        for count in range(1, len(self._waiting) + 1):
            if not self._waiting:
                break
            _wake(self._waiting.popitem(last=False)[0])
            if count % GROUP == 0:
                await asyncio.sleep(0)

    def end(self) -> None:
        """Record that the feed has ended, and wake all."""
        self.has_ended = True
        while self._waiting:
            _wake(self._waiting.popitem()[0])


def _wake(future: asyncio.Future[bool], has_changed: bool = True) -> None:
    if not future.done():
        future.set_result(has_changed)
