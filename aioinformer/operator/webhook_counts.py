"""What webhooks have answered, for people, JSON and Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from time import monotonic

from ..metrics import Histogram, Sample

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Bounds of the histogram of durations; 30 s is the longest timeout of the API server."""


CONVERT = "CONVERT"
"""The operation of conversions, as metrics name it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookState:
    """A snapshot of a webhook's answers to one operation.

    Attributes:
        path: Where the API server calls it.
        operation: ``"CREATE"``, ``"UPDATE"`` or ``"DELETE"``; ``"CONVERT"`` of a conversion; ``""`` for requests that
            are no review.
        running: Calls that are running.
        allowed: Reviews that it allowed, and conversions.
        denied: Reviews that it denied, and conversions that it refused.
        failed: Calls that failed: the API server does what the failure policy says.
        timed_out: Calls that took too long and were cancelled. They count as failures for the API server.
        unconverted: Objects that a conversion returned with the fields of their own version, because they do not fit
            their class.
        last_error: The last failure; None if there was none.
        last_error_seconds: Seconds since then.
        buckets: How many calls took at most so many seconds: cumulated counts by bound, ``"+Inf"`` last.
    """

    path: str
    operation: str
    running: int
    allowed: int
    denied: int
    failed: int
    timed_out: int
    unconverted: int
    last_error: str | None
    last_error_seconds: float | None
    buckets: tuple[tuple[str, int], ...]

    @property
    def calls(self) -> int:
        """Calls that have ended."""
        return self.buckets[-1][1]


@dataclass(slots=True)
class WebhookCounts:
    """Counts the answers of a webhook to one operation. See WebhookState."""

    path: str
    operation: str
    running: int = 0
    allowed: int = 0
    denied: int = 0
    failed: int = 0
    timed_out: int = 0
    unconverted: int = 0
    seconds: Histogram = field(default_factory=lambda: Histogram(SECONDS))
    codes: Counter[int] = field(default_factory=Counter)
    _error: tuple[str, float] | None = None

    def record_end(self, status: int, seconds: float) -> None:
        """Count a call that ended with an HTTP status, after a time."""
        self.codes[status] += 1
        self.seconds.observe(seconds)

    def record_failure(self, why: str, *, timed_out: bool = False) -> None:
        """Count a call that failed or took too long."""
        if timed_out:
            self.timed_out += 1
        else:
            self.failed += 1
        self._error = why, monotonic()

    @property
    def state(self) -> WebhookState:
        """A snapshot."""
        error, when = self._error or (None, None)
        return WebhookState(
            path=self.path,
            operation=self.operation,
            running=self.running,
            allowed=self.allowed,
            denied=self.denied,
            failed=self.failed,
            timed_out=self.timed_out,
            unconverted=self.unconverted,
            last_error=error,
            last_error_seconds=None if when is None else monotonic() - when,
            buckets=tuple(self.seconds.buckets),
        )

    def samples(self) -> Iterator[Sample]:
        """Yield the metrics; the names that controller-runtime has are its own."""
        labels = {"webhook": self.path, "operation": self.operation}
        for code, count in tuple(self.codes.items()):
            yield Sample(
                "controller_runtime_webhook_requests_total", "counter", {**labels, "code": str(code)}, count
            )
        for result in ("allowed", "denied", "failed", "timed_out"):
            yield Sample(
                "aioinformer_webhook_reviews_total",
                "counter",
                {**labels, "result": result},
                getattr(self, result),
            )
        if self.operation == CONVERT:
            yield Sample(
                "aioinformer_webhook_unconverted_objects_total",
                "counter",
                {"webhook": self.path},
                self.unconverted,
            )
        yield Sample("controller_runtime_webhook_requests_in_flight", "gauge", labels, self.running)
        yield from self.seconds.samples("controller_runtime_webhook_latency_seconds", labels)
