"""Shrinking: which of all that happened a failure needs (delta debugging)."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from aioinformer.testing.simulation.run import Outcome

RUNS = 500
SECONDS = 10.0
"""Shrinking ends after so many runs, or so many real seconds."""


def shrunk(
    run: Callable[[Collection[int]], Outcome], failed: Outcome, skip: frozenset[int]
) -> tuple[Outcome, frozenset[int], bool]:
    """Leave out as much as can be left out, in ever smaller portions.

    Args:
        run: Runs again, without the numbers given.
        failed: How it failed.
        skip: What is left out already.

    Returns:
        The failure with the least, what it leaves out, and whether nothing more can be. It is of the same type.
    """
    kind = type(failed.error)
    until = perf_counter() + SECONDS
    runs = 0
    kept = [number for number in range(failed.happened) if number not in skip]
    portion = len(kept)
    while portion:
        smaller = False
        for begin in range(0, len(kept), portion):
            if runs >= RUNS or perf_counter() > until:
                return failed, skip, False
            runs += 1
            candidate = skip | set(kept[begin : begin + portion])
            outcome = run(candidate)
            if type(outcome.error) is kind:
                failed, skip, smaller = outcome, outcome.skipped(candidate), True
        kept = [number for number in range(failed.happened) if number not in skip]
        portion = portion // 2 if not smaller or portion > len(kept) else portion
        portion = min(portion, len(kept))
    return failed, skip, True
