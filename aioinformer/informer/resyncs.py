"""Resyncs: repeats every object to handlers, each at its period (client-go's ``resyncCheckPeriod``)."""

from __future__ import annotations

import logging
from collections.abc import Collection

from .._core.checks import require_seconds
from ..processor import Processor

logger = logging.getLogger(__name__)

MINIMUM_RESYNC_PERIOD = 1.0
"""The minimum resync period in seconds; shorter ones are raised to it."""


class Resyncs:
    """The handlers' resync periods, and the check period, after which a reflector asks for due resyncs.

    Args:
        name: The informer's name in logs.
        default_period: Seconds between resyncs for handlers that do not set a period; 0 disables resyncs.
        processor: Knows which handlers are due.
        namespaces: What the informer reads, each with a reflector of its own.

    Attributes:
        check_period: Seconds; 0 for no resyncs.

    Raises:
        ConfigError: ``default_period`` is not a duration.
    """

    def __init__(
        self, name: str, default_period: float, processor: Processor, namespaces: Collection[str]
    ) -> None:
        require_seconds("default_resync_period", default_period)
        self._name = name
        self._default_period = default_period
        self.check_period = max(default_period, MINIMUM_RESYNC_PERIOD) if default_period else 0.0
        self._processor = processor
        self._namespaces = namespaces
        self._due: set[str] = set()

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
            requested = self._raise_period(requested, MINIMUM_RESYNC_PERIOD, "")
        check = self.check_period
        if not check:
            logger.warning(
                "%s does not resync: a handler's period of %g s is ignored; give the informer or its factory a "
                "default_resync_period",
                self._name,
                requested,
            )
            return requested, 0.0
        if requested < check and started:
            requested = self._raise_period(requested, check, ", it has started")
        self.check_period = min(check, requested)
        return requested, requested

    def should_resync(self, namespace: str) -> bool:
        """Whether to resync a namespace, now that its reflector's period has passed.

        The first reflector that finds a handler due decides for all namespaces: the other reflectors resync when
        their periods have passed.
        """
        if namespace not in self._due and self._processor.should_resync():
            self._due.update(self._namespaces)
        is_due = namespace in self._due
        self._due.discard(namespace)
        return is_due

    def _raise_period(self, requested: float, period: float, why: str) -> float:
        logger.warning("%s: resync period %g s raised to %g s%s", self._name, requested, period, why)
        return period
