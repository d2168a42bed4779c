"""What waits for its time (client-go ``delaying_queue.go``), on one timer of the running loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

from .._core.checks import is_finite
from .._core.coop import Budget
from .._core.timers import DeadlineTimer
from ..errors import ConfigError

T = TypeVar("T", bound=Hashable)

Entry = tuple[float, int, T]
"""When, a number, and the item; out of date unless it is the item's last."""

TIDY = 64
"""Entries that may be out of date before they are tidied up."""

TIDIED = 4
"""Entries that each change goes through meanwhile: more than it can add, so that there is an end to it."""


class Delays(Generic[T]):
    """Items with the time at which each is due. For many that are due at once it takes turns.

    Args:
        due: Called with an item and its priority at that time.
    """

    def __init__(self, due: Callable[[T, int], None]) -> None:
        self._due = due
        self._pending: dict[T, tuple[float, int, int]] = {}  # when, number of its entry, priority
        self._entries: list[Entry[T]] = []
        self._untidy: list[Entry[T]] = []  # those from before, of which the tidy ones go over to the others
        self._numbers = count()
        self._timer = DeadlineTimer(self._fire)

    def __len__(self) -> int:
        return len(self._pending)

    @staticmethod
    def check(delay: object) -> None:
        """See that a delay is a number.

        Raises:
            ConfigError: It is none, or endless.
        """
        if not is_finite(delay):
            raise ConfigError(f"a delay must be a number of seconds, not {delay!r}")

    def add(self, item: T, delay: float, priority: int) -> None:
        """Have an item due after some seconds; of several times the earliest counts, of priorities the highest."""
        when = asyncio.get_running_loop().time() + delay
        pending = self._pending.get(item)
        if pending is not None:
            priority = max(priority, pending[2])
            if pending[0] <= when:
                self._pending[item] = (pending[0], pending[1], priority)
                return
        number = next(self._numbers)
        self._pending[item] = (when, number, priority)
        heappush(self._entries, (when, number, item))
        self._tidy()
        self._timer.fire_by(when)

    def cancel(self, item: T) -> bool:
        """Forget an item; whether it was there."""
        if self._pending.pop(item, None) is None:
            return False
        self._tidy()
        return True

    def clear(self) -> None:
        """Forget all."""
        self._pending.clear()
        self._entries.clear()
        self._untidy.clear()
        self._timer.cancel()

    def _fire(self, now: float) -> None:
        budget = Budget()
        try:
            while (entries := self._next()) and (not self._is_current(entries[0]) or entries[0][0] <= now):
                if budget.is_spent():
                    break
                entry = heappop(entries)
                if self._is_current(entry):
                    priority = self._pending.pop(entry[2])[2]
                    self._due(entry[2], priority)
                self._tidy()
        finally:
            if entries := self._next():
                self._timer.fire_by(entries[0][0])

    def _next(self) -> list[Entry[T]]:
        """The entries of which the first is the next."""
        entries, untidy = self._entries, self._untidy
        return untidy if untidy and (not entries or untidy[0] < entries[0]) else entries

    def _is_current(self, entry: Entry[T]) -> bool:
        pending = self._pending.get(entry[2])
        return pending is not None and pending[1] == entry[1]

    def _tidy(self) -> None:
        """Drop entries that are out of date: a few at each change, as all at once would hold the event loop."""
        if not self._untidy and len(self._entries) > TIDY + 2 * len(self._pending):
            self._entries, self._untidy = self._untidy, self._entries
        for _ in range(min(TIDIED, len(self._untidy))):
            entry = self._untidy.pop()  # without its last entry a heap is a heap
            if self._is_current(entry):
                heappush(self._entries, entry)
