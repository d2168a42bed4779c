"""OwnRegistry: a registry of prometheus-client, one of whose collectors may fail. Needs the extra ``metrics``."""

from __future__ import annotations

from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector


class OwnRegistry(CollectorRegistry):
    """A registry that also gives its collectors one by one: its ``collect`` ends at the first one that fails."""

    def __init__(self) -> None:
        self._in_order: dict[Collector, None] = {}
        super().__init__()

    def register(self, collector: Collector) -> None:
        super().register(collector)
        self._in_order[collector] = None

    def unregister(self, collector: Collector) -> None:
        super().unregister(collector)
        del self._in_order[collector]

    def collectors(self) -> list[Collector]:
        """Return its collectors in the order of their registration, after its target info if it has one."""
        info = [self.restricted_registry(["target_info"])] if self.get_target_info() else []
        return [*info, *self._in_order]
