"""A storm: troubles at random moments, each for a while, and calm afterwards."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

from aioinformer._core.checks import require_list
from aioinformer.errors import ConfigError
from aioinformer.testing.simulation.troubles import TROUBLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aioinformer.testing.simulation.simulation import Simulation


class Storm:
    """Troubles, one after the other, out of `TROUBLES`.

    Args:
        world: What they happen to.
        names: Which of them; None lets the seed choose some, so that each also comes alone.
    """

    def __init__(self, world: Simulation, names: Iterable[str] | None) -> None:
        self.world = world
        self.server = world.server
        self.network = world.network
        self._random = Random(f"{world.seed} storm {world.happened + world.storms}")
        world.storms += 1
        known = list(TROUBLES)
        self._names = (
            self._random.sample(known, self._random.randint(1, len(known)))
            if names is None
            else _require_troubles(names)
        )
        self._usual = self.network.latency, self.network.slow
        self._ends: list[tuple[asyncio.TimerHandle, Callable[[], object]]] = []

    def speed_up(self) -> None:
        """Let the network be as fast as it was before."""
        self.network.latency, self.network.slow = self._usual

    async def run(self, seconds: float, every: float) -> None:
        """Rage for so long, then end all trouble."""
        left = seconds
        try:
            while (pause := self._random.expovariate(1 / every)) < left:
                await asyncio.sleep(pause)
                left -= pause
                name = self._random.choice(self._names)
                random = Random(self._random.getrandbits(64))  # so that what is skipped shifts nothing else
                if self.world.happens("storm", name):
                    TROUBLES[name](self, random)
            await asyncio.sleep(left)
        finally:
            self._end()

    def later(self, seconds: float, end: Callable[[], object]) -> None:
        """End something after a while, and at the latest with the storm; may be done twice."""
        self._ends.append((asyncio.get_running_loop().call_later(seconds, end), end))

    def _end(self) -> None:
        for timer, end in self._ends:
            timer.cancel()
            end()
        self.server.faults.clear()
        self.network.clear()
        self.network.accept()
        self.world.note("storm", "is over")


def _require_troubles(names: Iterable[str]) -> list[str]:
    """See that troubles are some that there are.

    Raises:
        ConfigError: There is none of such a name, or no name at all.
    """
    names = require_list("troubles", names)
    if not names or not TROUBLES.keys() >= {*names}:
        raise ConfigError(f"troubles must be some of {', '.join(TROUBLES)}, not {names!r}")
    return names
