"""Items that become due later (client-go ``delaying_queue.go``), with one timer of the running loop."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

from .._core.checks import is_finite
from .._core.coop import Budget
from .._core.loops import require_running_loop
from .._core.timers import DeadlineTimer
from ..errors import ConfigError

T = TypeVar("T", bound=Hashable)

Entry = tuple[float, int, T]
"""Due time, entry number, item. An entry is outdated unless it is the item's last."""

MAX_OUTDATED = 64
"""Outdated entries that the heap may have before it is compacted."""

COMPACTED_PER_CHANGE = 4
"""Entries checked at each change during a compaction. A change adds at most one, so a compaction ends."""


class Delays(Generic[T]):
    """Items with their due times. If many are due at once, it yields to the event loop in between.

    Args:
        due: Called with each item that is due, and its priority.

    Attributes:
        pending: The items with due time, number of the entry and priority.
    """

    def __init__(self, due: Callable[[T, int], None]) -> None:
        self._due = due
        self.pending: dict[T, tuple[float, int, int]] = {}
        self._entries: list[Entry[T]] = []
        self._old_entries: list[Entry[T]] = []  # the heap before a compaction; valid entries move to _entries
        self._numbers = count()
        self._timer = DeadlineTimer(self._fire)

    def __len__(self) -> int:
        return len(self.pending)

    @staticmethod
    def check(delay: object) -> None:
        """Check that a delay is a finite number.

        Raises:
            ConfigError: It is not.
        """
        if not is_finite(delay):
            raise ConfigError(f"a delay must be a number of seconds, not {delay!r}")

    def add(self, item: T, delay: float, priority: int) -> None:
        """Make an item due after some seconds. The earliest due time and the highest priority count."""
        when = require_running_loop("a work queue with delays").time() + delay
        pending = self.pending.get(item)
        if pending is not None:
            priority = max(priority, pending[2])
            if pending[0] <= when:
                self.pending[item] = (pending[0], pending[1], priority)
                return
        number = next(self._numbers)
        self.pending[item] = (when, number, priority)
        heappush(self._entries, (when, number, item))
        self._compact()
        self._timer.fire_by(when)

    def cancel(self, item: T) -> bool:
        """Remove an item. Returns whether it was there."""
        if self.pending.pop(item, None) is None:
            return False
        self._compact()
        return True

    def clear(self) -> None:
        """Remove all items."""
        self.pending.clear()
        self._entries.clear()
        self._old_entries.clear()
        self._timer.cancel()

    def _fire(self, now: float) -> None:
        budget = Budget()
        try:
            while (entries := self._next()) and (not self._is_current(entries[0]) or entries[0][0] <= now):
                if budget.is_spent():
                    break
                entry = heappop(entries)
                if self._is_current(entry):
                    priority = self.pending.pop(entry[2])[2]
                    self._due(entry[2], priority)
                self._compact()
        finally:
            if entries := self._next():
                self._timer.fire_by(entries[0][0])

    def _next(self) -> list[Entry[T]]:
        """Return the heap whose first entry is due next."""
        entries, old = self._entries, self._old_entries
        return old if old and (not entries or old[0] < entries[0]) else entries

    def _is_current(self, entry: Entry[T]) -> bool:
        pending = self.pending.get(entry[2])
        return pending is not None and pending[1] == entry[1]

    def _compact(self) -> None:
        """Drop outdated entries, a few at each change: all at once would block the event loop."""
        if not self._old_entries and len(self._entries) > MAX_OUTDATED + 2 * len(self.pending):
            self._entries, self._old_entries = self._old_entries, self._entries
        for _ in range(min(COMPACTED_PER_CHANGE, len(self._old_entries))):
            entry = self._old_entries.pop()  # a heap without its last entry is still a heap
            if self._is_current(entry):
                heappush(self._entries, entry)
