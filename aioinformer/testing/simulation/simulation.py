"""The world of a simulation: a server, a network, clients, and a storm that can be let loose on them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from random import Random
from typing import Any

from aioinformer.client.client import Client
from aioinformer.handlers import require_at_once, require_plain
from aioinformer.testing.simulation.hermetic import EPOCH
from aioinformer.testing.simulation.history import History
from aioinformer.testing.simulation.loop import START, VirtualTimeLoop
from aioinformer.testing.simulation.server import SimulatedAPIServer
from aioinformer.testing.simulation.storm import Storm
from aioinformer.testing.simulation.transport import client_of
from aioinformer.testing.waiting import eventually


class Simulation:
    """What a scenario is given: see `simulate`.

    Attributes:
        seed: Where everything comes from.
        random: For the scenario's own choices.
        server: The API server: objects, faults.
        network: What lies between: latency, and trouble of its own.
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
        """What `time.time()` would say: the clock by which the server writes dates, and the package reads them."""
        return EPOCH + self.now

    def new_client(self) -> Client:
        """Another Client of the server."""
        return client_of(self.network, self.server.url, self.server.token)

    def note(self, who: str, what: object) -> None:
        """Write something into the history."""
        self.history.add(who, what)

    def happens(self, who: str, what: object) -> bool:
        """Whether something that might happen does; also writes it into the history.

        Use it around whatever your scenario does to the world: of what goes before a failure, a shrunk history leaves
        out all that is not needed for it.

        Args:
            who: Who does it.
            what: What, in words.
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
        """Let things go wrong, at random; afterwards all is well again.

        Args:
            seconds: For how long, in virtual time.
            every: Seconds between two troubles, on average.
            troubles: What may go wrong, out of `TROUBLES`; by default a choice that the seed makes.

        Raises:
            ConfigError: There is no such trouble; the message has the names of all.
        """
        await Storm(self, troubles).run(seconds, every)

    async def eventually(
        self, condition: Callable[[], object], within: float = 600.0, what: str = "", every: float = 1.0
    ) -> None:
        """Wait for a condition.

        Args:
            condition: A plain function, asked again and again.
            within: Virtual seconds in which it has to come true.
            what: What is waited for, for the error.
            every: Virtual seconds between two looks.

        Raises:
            AssertionError: It did not come true in time.
            ConfigError: The condition is async.
        """
        __tracebackhide__ = True
        await eventually(condition, within, what, every)

    def tolerate(self, message: str) -> None:
        """Let pass what the scenario cannot help: a warning, or what the event loop is told, of a library's.

        Args:
            message: A regular expression that is found in it.
        """
        self._tolerated.append(re.compile(message))

    def tolerates(self, message: object) -> bool:
        """Whether a warning, or what the event loop was told, passes."""
        return any(tolerated.search(str(message)) for tolerated in self._tolerated)

    def always(self, check: Callable[[], object]) -> None:
        """Have something checked after every step of the event loop.

        Args:
            check: A plain function; raises where something is wrong, which ends the simulation.

        Raises:
            ConfigError: It is async.
        """
        require_plain("check", check)
        self._checks.append(check)
        self._loop.after_step = self._check_all

    def _check_all(self) -> None:
        for check in self._checks:
            require_at_once("check", check())
