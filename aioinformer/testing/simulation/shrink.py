"""Shrinking: find the actions that a failure needs (delta debugging)."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from aioinformer.testing.simulation.outcome import Outcome

RUNS = 500
SECONDS = 10.0
"""Limits of shrinking: runs, and real seconds."""


def shrunk(
    run: Callable[[Collection[int]], Outcome], failed: Outcome, skip: frozenset[int]
) -> tuple[Outcome, frozenset[int], bool]:
    """Leave out as many actions as possible, in ever smaller portions.

    Args:
        run: Runs the scenario again without the given actions.
        failed: The outcome to shrink.
        skip: The actions that are left out already.

    Returns:
        The outcome with the fewest actions and an error of the same type, the actions that it leaves out, and whether
        shrinking was complete.
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
