"""Many histories of replicas that share the work.

python -m tests.sharding.campaign 5000
"""

from __future__ import annotations

import logging
import sys
from time import perf_counter

from aioinformer.testing import Simulation, simulate

from .world import BOUND, Referee, live_through


def main(first: int, last: int) -> None:
    """Run histories, and say the longest that a slot was without an owner after the last failure."""
    logging.getLogger("aioinformer").propagate = False
    started, longest, works = perf_counter(), 0.0, 0
    for seed in range(first, last):
        referees: list[Referee] = []

        async def scenario(world: Simulation, report: list[Referee] = referees) -> None:
            await live_through(world, report=report.append)

        simulate(scenario, seed=seed)
        longest = max(longest, referees[0].longest)
        works += referees[0].works
    print(  # noqa: T201
        f"{last - first} histories in {perf_counter() - started:.0f} s: {works} works, none in two hands; the longest "
        f"without an owner {longest:.1f} s of {BOUND:g} s"
    )


if __name__ == "__main__":
    main(0, int(sys.argv[1])) if len(sys.argv) == 2 else main(*map(int, sys.argv[1:3]))
