"""A storm: troubles at random moments, each for a while, and calm afterwards."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

from aioinformer._core.checks import require_list
from aioinformer.errors import ConfigError
from aioinformer.testing.simulation.troubles import TROUBLES, Targets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class Storm:
    """A sequence of troubles out of `TROUBLES`.

    Args:
        targets: The server and the network that the troubles act on.
        random: Draws the troubles, their moments and their details.
        happens: `Simulation.happens`, which decides whether a trouble happens.
        names: The troubles to draw from; None draws some of all, so that each trouble also comes alone.

    Raises:
        ConfigError: There is no trouble of such a name, or no name at all.
    """

    def __init__(
        self,
        targets: Targets,
        random: Random,
        happens: Callable[[str, str], bool],
        names: Iterable[str] | None,
    ) -> None:
        self._targets = targets
        self._random = random
        self._happens = happens
        known = list(TROUBLES)
        self._names = (
            random.sample(known, random.randint(1, len(known))) if names is None else _require_troubles(names)
        )

    async def run(self, seconds: float, every: float) -> None:
        """Cause troubles for this many seconds, then end all trouble."""
        remaining = seconds
        try:
            while (pause := self._random.expovariate(1 / every)) < remaining:
                await asyncio.sleep(pause)
                remaining -= pause
                name = self._random.choice(self._names)
                details = Random(
                    self._random.getrandbits(64)
                )  # skipping a trouble must not change the others
                if self._happens("storm", name):
                    TROUBLES[name](self._targets, details)
            await asyncio.sleep(remaining)
        finally:
            self._targets.end()


def _require_troubles(names: Iterable[str]) -> list[str]:
    """Return the names as a list, checked to be names of troubles."""
    names = require_list("troubles", names)
    if not names or not TROUBLES.keys() >= {*names}:
        raise ConfigError(f"troubles must be some of {', '.join(TROUBLES)}, not {names!r}")
    return names
