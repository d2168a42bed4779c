"""Patience: deadlines for one wait after another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class Patience:
    """Deadlines for waits that follow each other, as ``asyncio.timeout_at`` has one for each.

    A timer that is set for each event and taken back costs a good deal of what the event does. This one rings once
    in a while, and is then set to the deadline of the wait that is under way.
    """

    __slots__ = ("_has_ended", "_ring", "_task", "_timer", "_until")

    def __init__(self) -> None:
        self._task: asyncio.Task[object] | None = None  # that waits
        self._until = self._ring = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._has_ended = False

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
        self._has_ended = False
        self._until = until
        if self._timer is None or until < self._ring:
            self._set_timer()
        self._task = task
        try:
            return await awaitable
        except asyncio.CancelledError as error:
            if self._has_ended and task.cancelling() <= requests + 1:
                raise TimeoutError from error
            raise
        finally:
            self._task = None
            if self._has_ended:
                task.uncancel()

    @property
    def has_ended(self) -> bool:
        """Whether the last wait has passed its deadline."""
        return self._has_ended

    def close(self) -> None:
        """Leave no timer behind."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self) -> None:
        self.close()
        self._ring = self._until
        self._timer = asyncio.get_running_loop().call_at(self._ring, self._look)

    def _look(self) -> None:
        self._timer = None
        if self._task is None:
            return  # the next wait sets it
        if asyncio.get_running_loop().time() < self._until:
            self._set_timer()
        else:
            self._has_ended = True
            self._task.cancel()
