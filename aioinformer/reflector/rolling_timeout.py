"""RollingTimeout: a deadline for each of many waits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from .._core.timers import Alarm

T = TypeVar("T")


class RollingTimeout:
    """Deadlines for waits that follow each other, as ``asyncio.timeout_at`` has one for each.

    A timer that is set for each event and taken back costs a good deal of what the event does. This one rings once
    in a while, and is then set to the deadline of the wait that is under way.

    Attributes:
        has_ended: Whether the last wait has passed its deadline.
    """

    __slots__ = ("_alarm", "_task", "_until", "has_ended")

    def __init__(self) -> None:
        self._task: asyncio.Task[object] | None = None  # that waits
        self._until = 0.0
        self._alarm = Alarm(self._look)
        self.has_ended = False

    async def wait(self, awaitable: Awaitable[T], until: float) -> T:
        """Await something, as one task at a time may.

        Args:
            awaitable: What to await.
            until: Loop time by which it has to be there.

        Raises:
            TimeoutError: It is not, and was cancelled; ``has_ended`` tells this one from its own.
        """
        task = asyncio.current_task()
        assert task is not None
        requests = task.cancelling()
        self.has_ended = False
        self._until = until
        self._alarm.ring_by(until)
        self._task = task
        try:
            return await awaitable
        except asyncio.CancelledError as error:
            if self.has_ended and task.cancelling() <= requests + 1:
                raise TimeoutError from error
            raise
        finally:
            self._task = None
            if self.has_ended:
                task.uncancel()

    def close(self) -> None:
        """Leave no timer behind."""
        self._alarm.turn_off()

    def _look(self, now: float) -> None:
        if self._task is None:
            return  # the next wait sets it
        if now < self._until:
            self._alarm.ring_by(self._until)
        else:
            self.has_ended = True
            self._task.cancel()
