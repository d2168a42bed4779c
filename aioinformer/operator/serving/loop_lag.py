"""LoopLag: how late the event loop calls its timers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from ...metrics import Histogram, Sample

EVERY = 1.0
"""Seconds between measurements."""
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class LoopLag:
    """Measures, once a second while its block runs, how late a timer of the running event loop is."""

    def __init__(self) -> None:
        self._seconds = Histogram(SECONDS)
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> None:
        self._wait()

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def samples(self) -> Iterator[Sample]:
        """Yield the metrics."""
        yield from self._seconds.samples("aioinformer_event_loop_lag_seconds", {})

    def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + EVERY
        self._timer = loop.call_at(due, self._measure, due)

    def _measure(self, due: float) -> None:
        self._seconds.observe(max(0.0, asyncio.get_running_loop().time() - due))
        self._wait()
