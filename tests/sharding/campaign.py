"""Many histories of replicas that share the work, from the command line.

python -m tests.sharding.campaign --histories 5000
python -m tests.sharding.campaign --histories 5000 --jobs 2 --state state.json   # can be gone on with
python -m tests.sharding.campaign --seed 7      # one, shrunk if it fails
"""

from __future__ import annotations

import gc
import resource
import sys
from collections import Counter
from time import process_time

from aioinformer._core.tasks import only_error_of
from aioinformer.testing import Simulation, simulate
from tests.testing.simulation.campaign import new_parser, quiet, run_campaign, say
from tests.testing.simulation.tally import HOURS, Failure, Tally

from .world import BOUND, Referee, live_through

PORTION = 10
"""How many histories are reported together."""


UNATTENDED = f"seconds of {BOUND:g} that a slot was without an owner after the last failure"


def live(seed: int, *, shrink: bool) -> tuple[Referee, float]:
    """Run the history of a seed; return its referee and its virtual seconds. Raises its failure."""
    referees: list[Referee] = []

    async def scenario(world: Simulation) -> None:
        await live_through(world, report=referees.append)

    history = simulate(scenario, seed=seed, shrink=shrink)
    return referees[0], history.entries[-1].time


def explore(seeds: range) -> Tally:
    """Run the histories of these seeds."""
    began = process_time()
    tally = Tally(seeds.start, seeds.stop)
    happened: Counter[str] = Counter()
    for seed in seeds:
        try:
            referee, seconds = live(seed, shrink=False)
        except Exception as error:
            cause = only_error_of(error)
            tally.failures.append(Failure(seed, f"{type(cause).__name__}: {cause}"))
            continue
        happened["claims of keys"] += referee.works
        hours: dict[str, float] = {HOURS: seconds / 3600}
        happened.update(hours)
        tally.most[UNATTENDED] = max(tally.most.get(UNATTENDED, 0.0), referee.longest)
    gc.collect()  # a simulation collects only what is young
    tally.cpu = process_time() - began
    tally.memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    tally.happened = dict(happened)
    return tally


def main() -> int:
    parser = new_parser(__doc__)
    parser.add_argument("--seed", type=int, help="this one only; a failure is shrunk and told in full")
    given = parser.parse_args()
    if given.seed is not None:
        quiet()
        referee, seconds = live(given.seed, shrink=True)
        say(
            f"{referee.works} claims in {seconds / 60:.0f} virtual minutes; {referee.longest:.1f} s without an owner"
        )
        return 0
    return run_campaign(given, explore, PORTION)


if __name__ == "__main__":
    sys.exit(main())
