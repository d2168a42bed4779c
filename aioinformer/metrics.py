"""Metrics in Prometheus' text format."""

from __future__ import annotations

__all__ = ["Histogram", "Sample", "exposition", "labelled"]

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

SECONDS = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0)
"""controller-runtime's histogram bounds for the durations of queueing and work."""

MEANINGS = {
    "aioinformer_synced": "Whether the whole first list was processed.",
    "aioinformer_objects": "Objects in the cache.",
    "aioinformer_undecodable_objects": "Objects in the cache that do not fit the object type.",
    "aioinformer_queue_depth": "Items that wait between reading and the store.",
    "aioinformer_failed_total": "Items whose processing raised.",
    "aioinformer_handlers_leaving": "Removed handlers whose last call has not ended.",
    "aioinformer_idle_seconds": "Seconds since the last byte of a list or watch.",
    "aioinformer_watching": "Whether a watch is open.",
    "aioinformer_lists_total": "Lists started.",
    "aioinformer_watches_total": "Watches requested.",
    "aioinformer_failed_lists_total": "Lists that failed, by reason.",
    "aioinformer_failed_watches_total": "Watches that could not be opened or ended with an error, by reason.",
    "aioinformer_absent": "Whether the server does not have the collection, which is optional.",
    "aioinformer_polling": "Whether the collection cannot be watched and is listed repeatedly.",
    "aioinformer_events_total": "Watch events received, including bookmarks.",
    "aioinformer_rejected_total": "Objects, events and lines that were dropped.",
    "aioinformer_undecodable_total": "Objects of lists and events that did not fit the object type.",
    "aioinformer_handler_depth": "Notifications that wait for the handler, including the one being handled.",
    "aioinformer_handler_high_water": "The most notifications that ever waited for the handler.",
    "aioinformer_handler_delivered_total": "Calls of the handler that returned or raised.",
    "aioinformer_handler_failed_total": "Calls of the handler that raised.",
    "aioinformer_handler_coalesced_total": "Notifications that were merged with newer ones of the same object.",
    "aioinformer_handler_dropped_total": "Notifications that were dropped for newer ones of other objects.",
    "aioinformer_feed_subscribers": "Subscribers of the change feed.",
    "aioinformer_feed_behind": "Changes that the slowest subscriber has not read.",
    "aioinformer_feed_changes": "Changes that the feed keeps.",
    "aioinformer_feed_snapshots": "Snapshots that are in memory for subscribers.",
    "aioinformer_feed_changes_total": "Changes so far.",
    "aioinformer_feed_resets_total": "Snapshots that subscribers have begun.",
    "controller_runtime_reconcile_total": "Reconciles that ended, by result.",
    "controller_runtime_reconcile_errors_total": "Reconciles that failed.",
    "controller_runtime_terminal_reconcile_errors_total": "Reconciles that failed and are not retried.",
    "aioinformer_failing_keys": "Objects whose last reconcile failed.",
    "aioinformer_given_up_keys_total": "Keys that are retried no more: their objects are gone, and they kept failing.",
    "controller_runtime_reconcile_timeouts_total": "Reconciles that took too long.",
    "controller_runtime_reconcile_time_seconds": "Seconds that reconciles took.",
    "controller_runtime_active_workers": "Reconciles that are running.",
    "controller_runtime_max_concurrent_reconciles": "Reconciles that may run at once.",
    "workqueue_depth": "Items that wait for a worker.",
    "workqueue_adds_total": "Items added.",
    "workqueue_queue_duration_seconds": "Seconds that items waited for a worker.",
    "workqueue_work_duration_seconds": "Seconds that items were processed.",
    "workqueue_unfinished_work_seconds": "Seconds that the items in progress have been processed so far, in total.",
    "workqueue_longest_running_processor_seconds": "Seconds that the oldest item in progress has taken so far.",
    "workqueue_retries_total": "Items added with a delay.",
    "aioinformer_webhook_reviews_total": "Webhook calls that ended, by result.",
    "controller_runtime_webhook_requests_in_flight": "Webhook calls that are running.",
    "controller_runtime_webhook_latency_seconds": "Seconds that webhook calls took.",
    "leader_election_master_status": "Whether this is the leader.",
}
"""The help text of each metric."""


class Sample(NamedTuple):
    """One value of a metric, as Prometheus defines it.

    Attributes:
        name: ``"workqueue_depth"``.
        kind: ``"gauge"``, ``"counter"`` or ``"histogram"``.
        labels: Its labels.
        value: The value.
        suffix: For histograms, ``"_bucket"``, ``"_sum"`` or ``"_count"``.
    """

    name: str
    kind: str
    labels: dict[str, str]
    value: float
    suffix: str = ""


class Histogram:
    """Counts values by size, as a Prometheus histogram.

    Args:
        bounds: Upper bounds of at most six digits, ascending; larger values count too.
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
        """How many values were counted."""
        return sum(self.counts)

    @property
    def buckets(self) -> list[tuple[str, int]]:
        """How many values were at most so large: cumulated counts by bound, ``"+Inf"`` last."""
        bounds = (*(f"{bound:g}" for bound in self._bounds), "+Inf")  # as client_golang writes them
        return list(zip(bounds, accumulate(self.counts), strict=True))

    def samples(self, name: str, labels: dict[str, str]) -> Iterator[Sample]:
        """Yield the samples of a histogram with this name."""
        buckets = self.buckets
        for bound, total in buckets:
            yield Sample(name, "histogram", {**labels, "le": bound}, total, "_bucket")
        yield Sample(name, "histogram", labels, self.sum, "_sum")
        yield Sample(name, "histogram", labels, buckets[-1][1], "_count")


def labelled(samples: Iterable[Sample], **labels: str) -> Iterator[Sample]:
    """Yield samples with additional labels in front of their own, such as ``cluster="east"``."""
    for sample in samples:
        yield sample._replace(labels={**labels, **sample.labels})


def exposition(samples: Iterable[Sample]) -> str:
    """Return samples in Prometheus' text format."""
    by_name: dict[str, list[Sample]] = {}
    for sample in samples:
        by_name.setdefault(sample.name, []).append(sample)
    lines = []
    for name, its in by_name.items():
        if (meaning := MEANINGS.get(name)) is not None:
            lines.append(f"# HELP {name} {meaning}")
        lines.append(f"# TYPE {name} {its[0].kind}")
        for sample in its:
            labels = ",".join(f'{label}="{_escape(value)}"' for label, value in sample.labels.items())
            lines.append(f"{name}{sample.suffix}{f'{{{labels}}}' if labels else ''} {sample.value:.17g}")
    return "\n".join(lines) + "\n"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
