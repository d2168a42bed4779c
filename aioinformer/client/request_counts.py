"""RequestCounts: the requests of a client, with client-go's metrics (``tools/metrics``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..metrics import Histogram, Sample

SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""Bounds of the histogram of durations, as in Kubernetes' components."""

NO_ANSWER = "<error>"
"""The code of a request without an answer, as client-go calls it."""


class RequestCounts:
    """Counts requests by method and answer. It grows with the statuses that the server answers, not with requests."""

    def __init__(self) -> None:
        self._answers: Counter[tuple[str, str]] = Counter()
        self._seconds: dict[str, Histogram] = {}

    def record(self, method: str, code: str, seconds: float) -> None:
        """Count a request.

        Args:
            method: ``"GET"``.
            code: The answer's status, or NO_ANSWER.
            seconds: Until the answer began.
        """
        self._answers[method, code] += 1
        if method not in self._seconds:
            self._seconds[method] = Histogram(SECONDS)
        self._seconds[method].observe(seconds)

    def samples(self, host: str) -> Iterator[Sample]:
        """Yield the metrics of the requests to a host."""
        for (method, code), count in tuple(self._answers.items()):
            labels = {"code": code, "host": host, "method": method}
            yield Sample("rest_client_requests_total", "counter", labels, count)
        for method, seconds in tuple(self._seconds.items()):
            yield from seconds.samples("rest_client_request_duration_seconds", {"host": host, "verb": method})
