"""The outcome of one run of a scenario."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from aioinformer.testing.simulation.history import History


class Outcome(NamedTuple):
    """How a run ended.

    Attributes:
        error: The failure, or None.
        history: What happened.
        happened: How often `Simulation.happens` was called.
    """

    error: BaseException | None
    history: History
    happened: int

    def skipped(self, skip: Collection[int]) -> frozenset[int]:
        """Return the numbers of `skip` that the run reached; the others have no effect."""
        return frozenset(number for number in skip if number < self.happened)
