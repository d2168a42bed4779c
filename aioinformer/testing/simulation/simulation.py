"""The world of a simulation: a server, a network, clients and storms."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from random import Random
from typing import Any

from aioinformer._core.callables import require_plain, require_sync_function
from aioinformer.client.client import Client
from aioinformer.testing.simulation.hermetic import EPOCH
from aioinformer.testing.simulation.history import History
from aioinformer.testing.simulation.loop import START, VirtualTimeLoop
from aioinformer.testing.simulation.server import SimulatedAPIServer
from aioinformer.testing.simulation.storm import Storm
from aioinformer.testing.simulation.transport import client_of
from aioinformer.testing.simulation.troubles import Targets
from aioinformer.testing.waiting import eventually


class Simulation:
    """The world that a scenario receives; see `simulate`.

    Attributes:
        seed: The seed that determines the simulation.
        random: Random numbers for the scenario's own choices.
        server: The API server: objects, faults.
        network: The network between clients and server: latency, failures.
        client: A Client of that server, for ListWatch.for_resource and SharedInformerFactory.
        history: What has happened so far.
    """

    def __init__(
        self, loop: VirtualTimeLoop, seed: int, skip: Collection[int], history: History, /, **server: Any
    ) -> None:
        self._loop = loop
        self._skip = frozenset(skip)
        self._checks: list[Callable[[], object]] = []
        self._tolerated: list[re.Pattern[str]] = []
        self.happened = self.storms = 0
        self.seed = seed
        self.random = Random(f"{seed} scenario")
        self.history = history
        server.setdefault("seed", seed)
        server.setdefault("clock", self.wall)
        self.server = SimulatedAPIServer(Random(f"{seed} network"), history, **server)
        self.network = loop.network = self.server.network
        self.client = self.new_client()

    @property
    def now(self) -> float:
        """Virtual seconds since the beginning."""
        return self._loop.time() - START

    def wall(self) -> float:
        """Return the simulated `time.time()`, which the server and the package use for dates."""
        return EPOCH + self.now

    def new_client(self) -> Client:
        """Return another Client of the server."""
        return client_of(self.network, self.server.url, self.server.token)

    def note(self, who: str, what: object) -> None:
        """Add an entry to the history."""
        self.history.add(who, what)

    def happens(self, who: str, what: object) -> bool:
        """Return whether an optional action happens, and add it to the history.

        Call it before every action of your scenario on the world. Shrinking then removes the actions that a failure
        does not need.

        Args:
            who: The actor.
            what: The action, in words.
        """
        number = self.happened
        self.happened += 1
        if number in self._skip:
            return False
        self.note(who, f"[{number}] {what}")
        return True

    async def storm(
        self, seconds: float, *, every: float = 5.0, troubles: Iterable[str] | None = None
    ) -> None:
        """Cause random troubles for a while, then end them all.

        Args:
            seconds: The duration, in virtual seconds.
            every: The average number of seconds between two troubles.
            troubles: The troubles to draw from, out of `TROUBLES`; by default the seed chooses some.

        Raises:
            ConfigError: There is no such trouble; the message lists all names.
        """
        random = Random(f"{self.seed} storm {self.happened + self.storms}")
        self.storms += 1
        storm = Storm(Targets(self.server, self.network), random, self.happens, troubles)
        try:
            await storm.run(seconds, every)
        finally:
            self.note("storm", "is over")

    async def eventually(
        self, condition: Callable[[], object], within: float = 600.0, what: str = "", every: float = 1.0
    ) -> None:
        """Wait for a condition.

        Args:
            condition: A sync function that returns whether the condition holds.
            within: Virtual seconds until the wait fails.
            what: A description of the condition, for the error.
            every: Virtual seconds between two calls.

        Raises:
            AssertionError: The condition did not hold in time.
            ConfigError: The condition is async.
        """
        __tracebackhide__ = True
        await eventually(condition, within, what, every)

    def tolerate(self, message: str) -> None:
        """Ignore warnings and event loop errors that a library causes and the scenario cannot avoid.

        Args:
            message: A regular expression to search for in the message.
        """
        self._tolerated.append(re.compile(message))

    def tolerates(self, message: object) -> bool:
        """Return whether a warning or an event loop error is tolerated."""
        return any(tolerated.search(str(message)) for tolerated in self._tolerated)

    def always(self, check: Callable[[], object]) -> None:
        """Call a check after every step of the event loop.

        Args:
            check: A sync function. An exception from it ends the simulation.

        Raises:
            ConfigError: The check is async.
        """
        require_plain("check", check)
        self._checks.append(check)
        self._loop.after_step = self._check_all

    def _check_all(self) -> None:
        for check in self._checks:
            require_sync_function("check", check())
