"""What a work queue does, in numbers (client-go ``util/workqueue/metrics.go``, with its names)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Sequence, Sized
from time import perf_counter
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T", bound=Hashable)

SECONDS = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""client-go's bounds for durations in a queue and of work."""


class Sample(NamedTuple):
    """One number, as Prometheus has it.

    Attributes:
        name: ``"workqueue_depth"``.
        kind: ``"gauge"``, ``"counter"`` or ``"histogram"``.
        labels: Whose it is.
        value: The number.
        suffix: For histograms, ``"_bucket"``, ``"_sum"`` or ``"_count"``.
    """

    name: str
    kind: str
    labels: dict[str, str]
    value: float
    suffix: str = ""


class Histogram:
    """How often values were how large.

    Args:
        bounds: Upper bounds, ascending; larger values count too.
    """

    __slots__ = ("_bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float] = SECONDS) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """How many values there were."""
        return sum(self.counts)

    def samples(self, name: str, labels: dict[str, str]) -> Iterator[Sample]:
        """The numbers of a histogram of this name."""
        total = 0
        for bound, count in zip((*self._bounds, "+Inf"), self.counts, strict=True):
            total += count
            yield Sample(name, "histogram", {**labels, "le": str(bound)}, total, "_bucket")
        yield Sample(name, "histogram", labels, self.sum, "_sum")
        yield Sample(name, "histogram", labels, total, "_count")


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
        self._queue: Sized = ()
        self._added_at: dict[T, float] = {}
        self._got_at: dict[T, float] = {}
        self.adds = 0
        self.retries = 0
        self.queue_duration = Histogram()
        self.work_duration = Histogram()

    def watch(self, queue: Sized) -> None:
        """Whose numbers these are."""
        self._queue = queue

    def added(self, item: T) -> None:
        """An item is to be worked on."""
        self.adds += 1
        self._added_at[item] = self._clock()

    def got(self, item: T) -> None:
        """An item was handed out."""
        now = self._got_at[item] = self._clock()
        self.queue_duration.observe(now - self._added_at.pop(item))

    def done(self, item: T) -> None:
        """The work on an item has ended."""
        self.work_duration.observe(self._clock() - self._got_at.pop(item))

    def retried(self, item: T) -> None:
        """An item was added with a delay."""
        self.retries += 1

    @property
    def depth(self) -> int:
        """Items that wait for a worker."""
        return len(self._queue)

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
