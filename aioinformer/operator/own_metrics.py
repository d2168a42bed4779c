"""OwnMetrics: the metrics that an operator's author registers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..metrics import new_registry

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.metrics_core import Metric


class OwnMetrics:
    """Makes a registry of prometheus-client when it is first used, which operators without metrics never do."""

    def __init__(self) -> None:
        self._registry: CollectorRegistry | None = None

    @property
    def registry(self) -> CollectorRegistry:
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
