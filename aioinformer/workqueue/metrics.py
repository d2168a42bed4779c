"""Metrics of a work queue (client-go ``util/workqueue/metrics.go``, with its names)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from time import perf_counter
from typing import Generic, TypeVar

from ..metrics import Histogram, Sample

T = TypeVar("T", bound=Hashable)


class QueueMetrics(Generic[T]):
    """Counts and durations of one queue. Override ``added``, ``got``, ``done`` and ``retried`` to export them.

    Args:
        clock: Returns the time in seconds; its resolution limits that of the durations.

    Attributes:
        adds: Items added.
        retries: Items added with a delay.
        queue_duration: Seconds that items waited for a worker.
        work_duration: Seconds that items were processed.
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
        """Set the function that returns the queue's depth. The queue calls this."""
        self._depth = depth

    def added(self, item: T) -> None:
        """Count an item that was added."""
        self.adds += 1
        self._added_at[item] = self._clock()

    def got(self, item: T) -> None:
        """Record that a worker got an item."""
        now = self._got_at[item] = self._clock()
        added_at = self._added_at.pop(item, None)
        if added_at is not None:  # an overridden ``added`` may have raised
            self.queue_duration.observe(now - added_at)

    def done(self, item: T) -> None:
        """Record that a worker is done with an item."""
        if (got_at := self._got_at.pop(item, None)) is not None:
            self.work_duration.observe(self._clock() - got_at)

    def discarded(self, item: T) -> None:
        """Record that a waiting item was discarded."""
        self._added_at.pop(item, None)

    def retried(self, item: T) -> None:
        """Count an item that was added with a delay."""
        self.retries += 1

    @property
    def depth(self) -> int:
        """Items to process: those waiting for a worker, and those added again while they are processed."""
        return self._depth()

    @property
    def oldest_queued_seconds(self) -> float:
        """Seconds that the longest waiting item waits for a worker; 0 if none does.

        An item that was added while it is processed waits for no worker: a task may run for days.
        """
        waiting = self._added_at.copy().items()  # in the order of adding; other threads may read
        added_at = next((added for item, added in waiting if item not in self._got_at), None)
        return 0.0 if added_at is None else self._clock() - added_at

    @property
    def unfinished_work_seconds(self) -> float:
        """Seconds that the items in process have been processed so far, in total."""
        now = self._clock()
        return sum(now - started for started in tuple(self._got_at.values()))

    @property
    def longest_running_processor_seconds(self) -> float:
        """Seconds that the oldest item in process has been processed so far."""
        now = self._clock()
        return now - min(tuple(self._got_at.values()), default=now)

    def samples(self, name: str) -> Iterator[Sample]:
        """Yield all metrics, for a queue of this name."""
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
