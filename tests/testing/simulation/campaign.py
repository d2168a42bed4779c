"""Many histories of an informer, one after the other, from the command line.

python -m tests.testing.simulation.campaign --histories 10000
python -m tests.testing.simulation.campaign --seed 7      # one, told in full; a failure shrunk
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

from aioinformer.testing.simulation.run import Outcome, run_once
from aioinformer.testing.simulation.shrink import shrunk

from .informers import history_of, scenario_of
from .settings import setting

PORTION = 50
"""Histories that are told of together."""


class Failure(NamedTuple):
    """A seed that failed, and how."""

    seed: int
    error: str


class Found(NamedTuple):
    """What some seeds came to."""

    seeds: range
    failures: list[Failure]
    cpu: float


def explore(seeds: range) -> Found:
    """Run the histories of these seeds."""
    began = process_time()
    failures = [
        Failure(seed, f"{type(error).__name__}: {error}")
        for seed in seeds
        if (error := history_of(seed).error) is not None
    ]
    return Found(seeds, failures, process_time() - began)


def portions(first: int, histories: int, portion: int) -> Iterator[range]:
    """The seeds, in portions."""
    for begin in range(first, first + histories, portion):
        yield range(begin, min(begin + portion, first + histories))


def quiet() -> None:
    """Handlers that fail are part of it."""
    logging.getLogger("aioinformer").propagate = False
    gc.freeze()


def campaign(seeds: Iterable[range], jobs: int, told: Callable[[Found], bool]) -> None:
    """Run histories, and tell of each portion in the order of its seeds, until that says to stop."""
    if jobs == 1:
        quiet()
        for portion in seeds:
            if not told(explore(portion)):
                return
        return
    with ProcessPoolExecutor(jobs, initializer=quiet) as pool:
        for found in pool.map(explore, seeds):
            if not told(found):
                pool.shutdown(cancel_futures=True)
                return


def say(text: object) -> None:
    """Tell whoever waits for it."""
    print(text, flush=True)  # noqa: T201


def tell(seed: int) -> bool:
    """Print the history of one seed, shrunk if it fails; whether all went well."""
    quiet()
    chosen = setting(seed)
    scenario = scenario_of(chosen)

    def run(skip: object = ()) -> Outcome:
        return run_once(scenario, seed, skip, **chosen.server)  # type: ignore[arg-type]

    outcome = run()
    if outcome.error is not None:
        happened = outcome.happened
        outcome, skip = shrunk(run, outcome, frozenset())
        say(f"{outcome.happened - len(skip)} of {happened} things suffice")
    say(outcome.history)
    if outcome.error is not None:
        say(f"{type(outcome.error).__name__}: {outcome.error}")
    return outcome.error is None


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--histories", type=int, default=1000)
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, help="this one only, told in full")
    parser.add_argument("--state", type=Path, help="where to write how far it is, and go on from")
    parser.add_argument("--stop", action="store_true", help="stop at the first failure")
    given = parser.parse_args()
    if given.seed is not None:
        return 0 if tell(given.seed) else 1

    state = {"next": given.first, "histories": 0, "cpu": 0.0, "failures": []}
    if given.state is not None and given.state.exists():
        state = json.loads(given.state.read_text())
    began = perf_counter()

    def told(found: Found) -> bool:
        state["next"] = found.seeds.stop
        state["histories"] += len(found.seeds)
        state["cpu"] += found.cpu
        state["failures"] += found.failures
        for failure in found.failures:
            say(f"seed {failure.seed}: {failure.error}")
        if given.state is not None:
            given.state.write_text(json.dumps(state))
        return not (given.stop and found.failures)

    left = given.histories - (state["next"] - given.first)
    campaign(portions(state["next"], left, 5 if given.stop else PORTION), given.jobs, told)
    say(
        f"{state['histories']} histories, {len(state['failures'])} failed, "
        f"{state['histories'] / max(state['cpu'], 1e-9):.0f} a second of CPU, {perf_counter() - began:.1f} s now"
    )
    return 1 if state["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
