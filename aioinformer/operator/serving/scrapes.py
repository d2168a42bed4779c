"""Scrapes: the answers of ``/metrics``."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from ...metrics import LeftOutError, Registry, new_registry, render
from ..manager import Manager


class Scrapes:
    """Answers scrapes with the metrics of a manager, of its registry and of the process.

    Args:
        manager: The manager.

    Raises:
        ConfigError: prometheus-client is not installed.
    """

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self._process = _process_registry()

    async def answer(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics and their Content-Type. Metrics of your own that fail are left out, and logged.

        Args:
            accept: The Accept header.
        """
        errors: list[LeftOutError] = []
        samples = list(self._manager.samples())  # in the event loop, of which they tell
        registries: Iterable[Registry] = (self._process, *self._manager.registries)
        answer = await asyncio.to_thread(
            render, samples, registries, accept=accept, on_error=errors.append
        )  # thousands of samples take tens of milliseconds
        self._manager.left_out.log(errors)
        return answer


def _process_registry() -> Registry:
    registry = new_registry()
    from prometheus_client import GCCollector, PlatformCollector, ProcessCollector

    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    return registry
