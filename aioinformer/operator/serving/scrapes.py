"""Scrapes: the answers of ``/metrics``."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from ..._core.failure_log import FailureLog
from ...errors import message_of
from ...metrics import Registry, new_registry, render
from ..manager import Manager

logger = logging.getLogger(__name__)


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
        self._log = FailureLog("/metrics", logger)

    async def answer(self, accept: str) -> tuple[bytes, str]:
        """Return the metrics and their Content-Type. A registry that fails is left out, and logged.

        Args:
            accept: The Accept header.
        """
        errors: list[BaseException] = []
        samples = list(self._manager.samples())  # in the event loop, of which they tell
        registries: Iterable[Registry] = (self._process, *self._manager.registries)
        answer = await asyncio.to_thread(
            render, samples, registries, accept=accept, on_error=errors.append
        )  # thousands of samples take tens of milliseconds
        for error in errors:
            self._log.log(error, "/metrics: metrics of your own were left out: %s", message_of(error))
        return answer


def _process_registry() -> Registry:
    registry = new_registry()
    from prometheus_client import GCCollector, PlatformCollector, ProcessCollector

    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    return registry
