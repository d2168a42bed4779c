"""How long the machine has slept, which the event loop's clock does not count on Linux and macOS."""

from __future__ import annotations

import time

LEAST_SLEEP = 1.0
"""Seconds; less is what lies between the readings of two clocks."""


def asleep() -> float:
    """Seconds that the machine has slept, counted from any moment: only the growth means something.

    Where there is no CLOCK_BOOTTIME the wall clock is compared, so setting that forward counts as sleep.
    """
    # Read first: a pause between the two then looks like less sleep, not like more.
    total = time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.time()
    return total - time.monotonic()
