"""The metrics that an operator's author registers, and the log of those that a scrape leaves out."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..metrics import LeftOutError, Registry, new_registry

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from .._core.own_registry import OwnRegistry

logger = logging.getLogger(__name__)


class OwnMetrics:
    """Makes a registry of prometheus-client when it is first used, which operators without metrics never do."""

    def __init__(self) -> None:
        self._registry: OwnRegistry | None = None

    @property
    def registry(self) -> OwnRegistry:
        """The registry.

        Raises:
            ConfigError: prometheus-client is not installed.
        """
        if self._registry is None:
            self._registry = new_registry()
        return self._registry

    def collect(self) -> Iterable[Metric]:
        """Return the metrics, as a collector of prometheus-client does."""
        return () if self._registry is None else self._registry.collect()

    def collectors(self) -> Iterable[Registry]:
        """Return the collectors of the registry."""
        return () if self._registry is None else self._registry.collectors()


class LeftOutLog:
    """Logs which metrics of your own are left out: once, and again if they come and are left out again."""

    def __init__(self) -> None:
        self._logged: set[tuple[str, type[BaseException]]] = set()

    def log(self, errors: Iterable[LeftOutError]) -> None:
        """Log why metrics were left out of one answer, unless they were left out of the one before.

        Args:
            errors: Of this answer.
        """
        reasons = {(error.what, type(error.reason)): error for error in errors}
        for key, error in reasons.items():
            if key not in self._logged:
                logger.error("/metrics: %s", error)
        self._logged = {*reasons}
