"""Resyncs: repeats every object to handlers, each at its period (client-go's ``resyncCheckPeriod``)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from .._core.checks import require_seconds
from ..processor import Processor
from ..protocols import Queue

logger = logging.getLogger(__name__)

MINIMUM_RESYNC_PERIOD = 1.0
"""The minimum resync period in seconds; shorter ones are raised to it."""


class Resyncs:
    """The handlers' resync periods, and the check period, after which the informer looks for due resyncs.

    Args:
        name: The informer's name in logs.
        default_period: Seconds between resyncs for handlers that do not set a period; 0 disables resyncs.
        processor: Knows which handlers are due.

    Raises:
        ConfigError: ``default_period`` is not a duration.
    """

    def __init__(self, name: str, default_period: float, processor: Processor) -> None:
        require_seconds("default_resync_period", default_period)
        self._name = name
        self._default_period = default_period
        self._check_period = max(default_period, MINIMUM_RESYNC_PERIOD) if default_period else 0.0
        self._processor = processor

    def agree_on(self, requested: float | None, *, started: bool) -> tuple[float, float]:
        """Return the period that a handler requested, after corrections, and the period that it gets.

        Before the start a shorter period shortens the check period; later it is raised to the check period.

        Args:
            requested: Seconds; 0 for never, None for the default.
            started: Whether the informer runs.

        Raises:
            ConfigError: ``requested`` is not a duration.
        """
        if requested is None:
            requested = self._default_period
        require_seconds("resync_period", requested)
        if requested <= 0:
            return 0.0, 0.0
        if requested < MINIMUM_RESYNC_PERIOD:
            requested = self._raised(requested, MINIMUM_RESYNC_PERIOD, "")
        check = self._check_period
        if not check:
            logger.warning(
                "%s does not resync: a handler's period of %g s is ignored; give the informer or its factory a "
                "default_resync_period",
                self._name,
                requested,
            )
            return requested, 0.0
        if requested < check and started:
            requested = self._raised(requested, check, ", it has started")
        self._check_period = min(check, requested)
        return requested, requested

    async def run(self, queues: Sequence[Queue]) -> None:
        """Resync all queues whenever a handler's resync is due. A list does not delay it."""
        while True:
            await asyncio.sleep(self._check_period)
            if self._processor.should_resync():
                for queue in queues:
                    await queue.resync()

    @property
    def are_wanted(self) -> bool:
        """Whether there are resyncs."""
        return self._check_period > 0

    def _raised(self, requested: float, period: float, why: str) -> float:
        logger.warning("%s: resync period %g s raised to %g s%s", self._name, requested, period, why)
        return period
