"""Measure how long the machine has slept; the event loop's clock does not count that on Linux and macOS."""

from __future__ import annotations

import time

LEAST_SLEEP = 1.0
"""Seconds below which a difference is only the time between reading two clocks."""


def asleep() -> float:
    """Return the seconds that the machine has slept, from an arbitrary start: only differences are meaningful.

    Without CLOCK_BOOTTIME it uses the wall clock, so setting that forward counts as sleep.
    """
    # Read this clock first: a pause between the two readings then looks like less sleep, not more.
    total = time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.time()
    return total - time.monotonic()
