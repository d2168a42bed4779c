"""What a work queue does, in numbers (client-go ``util/workqueue/metrics.go``, with its names)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from time import perf_counter
from typing import Generic, TypeVar

from ..metrics import Histogram, Sample

T = TypeVar("T", bound=Hashable)


class QueueMetrics(Generic[T]):
    """Counts and durations of one queue. Override ``added``, ``got``, ``done`` and ``retried`` to tell others.

    Args:
        clock: Gives the time in seconds, at a resolution that fits what is measured.

    Attributes:
        adds: Items added.
        retries: Items added with a delay.
        queue_duration: Seconds that items waited for a worker.
        work_duration: Seconds that they were worked on.
    """

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self._clock = clock
        self._depth: Callable[[], int] = lambda: 0
        self._added_at: dict[T, float] = {}
        self._got_at: dict[T, float] = {}
        self.adds = 0
        self.retries = 0
        self.queue_duration = Histogram()
        self.work_duration = Histogram()

    def watch(self, depth: Callable[[], int]) -> None:
        """Be told how to ask a queue for its ``depth``."""
        self._depth = depth

    def added(self, item: T) -> None:
        """An item is to be worked on."""
        self.adds += 1
        self._added_at[item] = self._clock()

    def got(self, item: T) -> None:
        """An item was handed out."""
        now = self._got_at[item] = self._clock()
        added_at = self._added_at.pop(item, None)
        if added_at is not None:  # somebody's added may have raised before this
            self.queue_duration.observe(now - added_at)

    def done(self, item: T) -> None:
        """The work on an item has ended."""
        if (got_at := self._got_at.pop(item, None)) is not None:
            self.work_duration.observe(self._clock() - got_at)

    def discarded(self, item: T) -> None:
        """An item that waited for a worker was taken back."""
        self._added_at.pop(item, None)

    def retried(self, item: T) -> None:
        """An item was added with a delay."""
        self.retries += 1

    @property
    def depth(self) -> int:
        """Items that are to be worked on: those that wait for a worker, and those that were added while they are
        worked on."""
        return self._depth()

    @property
    def unfinished_work_seconds(self) -> float:
        """For how long what is being worked on has been, added up."""
        now = self._clock()
        return sum(now - started for started in tuple(self._got_at.values()))

    @property
    def longest_running_processor_seconds(self) -> float:
        """For how long the oldest of it has been."""
        now = self._clock()
        return now - min(tuple(self._got_at.values()), default=now)

    def samples(self, name: str) -> Iterator[Sample]:
        """All numbers, for a queue of this name."""
        labels = {"name": name}
        yield Sample("workqueue_depth", "gauge", labels, self.depth)
        yield Sample("workqueue_adds_total", "counter", labels, self.adds)
        yield from self.queue_duration.samples("workqueue_queue_duration_seconds", labels)
        yield from self.work_duration.samples("workqueue_work_duration_seconds", labels)
        yield Sample("workqueue_unfinished_work_seconds", "gauge", labels, self.unfinished_work_seconds)
        yield Sample(
            "workqueue_longest_running_processor_seconds",
            "gauge",
            labels,
            self.longest_running_processor_seconds,
        )
        yield Sample("workqueue_retries_total", "counter", labels, self.retries)
