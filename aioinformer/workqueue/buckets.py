"""The order of a work queue: a FIFO line per priority, with ageing."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)

KEPT = 8
"""Empty lines that are kept for the next item of their priority."""

MAX_OUTDATED = 64
"""Outdated entries that a line may have before it is compacted."""


class Bucket(Generic[T]):
    """The line of items of one priority.

    An item that leaves for a higher priority leaves an outdated entry behind, which ``pop`` skips. If an item has
    several entries, only the last can be valid: an item cannot join a line that it is in.
    """

    __slots__ = ("left", "line", "outdated", "passed_over", "priority")

    def __init__(self, priority: int) -> None:
        self.priority = priority
        self.line: deque[T] = deque()
        self.left: dict[T, int] = {}
        self.outdated = 0
        self.passed_over = 0

    def __len__(self) -> int:
        return len(self.line) - self.outdated

    def leave(self, item: T) -> None:
        """Mark the entry of an item as outdated."""
        self.left[item] = self.left.get(item, 0) + 1
        self.outdated += 1
        if self.outdated > MAX_OUTDATED and self.outdated * 2 > len(self.line):
            line, self.line = self.line, deque()
            self.line.extend(waiting for waiting in line if not self._is_outdated(waiting))

    def pop(self) -> T:
        """Remove and return the first item."""
        item = self.line.popleft()
        while self.outdated and self._is_outdated(item):
            item = self.line.popleft()
        return item

    def _is_outdated(self, item: T) -> bool:
        count = self.left.get(item)
        if count is None:
            return False
        if count > 1:
            self.left[item] = count - 1
        else:
            del self.left[item]
        self.outdated -= 1
        return True


class Buckets(Generic[T]):
    """Items by priority, the highest first; ageing keeps lower priorities from starving.

    Args:
        ageing: How often a priority is passed over before one of its items goes first.

    Attributes:
        bucket_of: The line that each item waits in.
    """

    __slots__ = ("_ageing", "_buckets", "_order", "bucket_of")

    def __init__(self, ageing: int) -> None:
        self._ageing = ageing
        self.bucket_of: dict[T, Bucket[T]] = {}
        self._buckets: dict[int, Bucket[T]] = {}
        self._order: list[Bucket[T]] = []

    def push(self, item: T, priority: int) -> None:
        """Append an item that is in no line."""
        bucket = self._buckets.get(priority)
        if bucket is None:
            bucket = self._open(priority)
        self.bucket_of[item] = bucket
        bucket.line.append(item)

    def raise_to(self, item: T, priority: int) -> None:
        """Move an item to the end of the line of a higher priority."""
        self.bucket_of[item].leave(item)
        self.push(item, priority)

    def discard(self, item: T) -> None:
        """Remove an item from its line."""
        self.bucket_of.pop(item).leave(item)

    def pop(self) -> tuple[T, int]:
        """Remove and return the next item and its priority. There must be an item."""
        order = self._order
        bucket = order[0] if len(order) == 1 else self._next()
        item = bucket.pop() if bucket.outdated else bucket.line.popleft()
        del self.bucket_of[item]
        return item, bucket.priority

    def depths(self) -> dict[int, int]:
        """Return the number of waiting items by priority, the highest first."""
        return {bucket.priority: len(bucket) for bucket in self._order if len(bucket)}

    def _next(self) -> Bucket[T]:
        """Return the line with the highest priority, or a lower one that was passed over ``ageing`` times."""
        highest = None
        lower = []
        for bucket in self._order:
            if not bucket.line or (bucket.outdated and len(bucket.line) == bucket.outdated):
                continue
            if highest is None:
                highest = bucket
            elif bucket.passed_over >= self._ageing:
                bucket.passed_over = 0
                return bucket
            else:
                lower.append(bucket)
        assert highest is not None
        highest.passed_over = 0
        for bucket in lower:
            bucket.passed_over += 1
        return highest

    def _open(self, priority: int) -> Bucket[T]:
        if len(self._order) > KEPT:
            self._order = [bucket for bucket in self._order if len(bucket)]
            self._buckets = {bucket.priority: bucket for bucket in self._order}
        bucket = self._buckets[priority] = Bucket(priority)
        insort(self._order, bucket, key=lambda other: -other.priority)
        return bucket
