"""The embedded API server on a simulated network."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aioinformer.testing.server import APIServer
from aioinformer.testing.simulation.history import Change
from aioinformer.testing.simulation.loop import is_servers
from aioinformer.testing.simulation.network import Network

if TYPE_CHECKING:
    from random import Random

    from aioinformer.testing.simulation.history import History


class SimulatedAPIServer(APIServer):
    """An APIServer behind a simulated network.

    Args:
        random: Draws latencies and the like.
        history: Records every change of an object and the traffic.
        **options: See APIServer; TLS is not simulated.

    Attributes:
        network: Connections, latency, failures.
    """

    def __init__(self, random: Random, history: History, /, **options: Any) -> None:
        super().__init__(**options)
        self.network = self._listener = Network(self._handler, random, history)
        self.cluster.observers.append(lambda _, event: history.add("server", Change(event)))

    @property
    def tasks(self) -> set[asyncio.Task[None]]:
        """The server's own tasks."""
        own = {self._worker} if self._worker is not None else set()
        return own | {task for task in asyncio.all_tasks() if is_servers(task)}
