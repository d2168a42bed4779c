"""Measures event loop lag: a task repeatedly sleeps for a millisecond and records how late it wakes."""

from __future__ import annotations

import asyncio
import time
from array import array
from contextlib import suppress

from .tally import percentiles

PERIOD = 0.001


class LagProbe:
    """A probe that starts when it is created. ``end`` returns the percentiles in milliseconds."""

    def __init__(self) -> None:
        self._lags = array("d")
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        clock = time.perf_counter
        while True:
            due = clock() + PERIOD
            await asyncio.sleep(PERIOD)
            self._lags.append(clock() - due)

    async def end(self) -> dict[str, float]:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        return percentiles(_add_hidden_lags(self._lags) or [0.0], unit=1e-3)


def _add_hidden_lags(lags: array[float]) -> list[float]:
    """Return the lags plus the samples that each lag hid, as events at random times would meet them."""
    samples = []
    for lag in lags:
        while lag > 0:
            samples.append(lag)
            lag -= PERIOD
    return samples
