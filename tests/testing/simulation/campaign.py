"""Many histories of an informer, one after the other, from the command line.

python -m tests.testing.simulation.campaign --histories 10000
python -m tests.testing.simulation.campaign --histories 100000 --jobs 2 --state state.json   # can be gone on with
python -m tests.testing.simulation.campaign --seed 7      # one, told in full; a failure shrunk
"""

from __future__ import annotations

import argparse
import gc
import logging
import resource
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from time import perf_counter, process_time

from aioinformer.testing.simulation.outcome import Outcome
from aioinformer.testing.simulation.run import run_once
from aioinformer.testing.simulation.shrink import shrunk

from .informers import history_of, scenario_of
from .settings import setting
from .tally import Failure, Tally, happenings

PORTION = 100
"""How many histories are reported together."""

TELL_EVERY = 10.0
"""Seconds between two progress lines."""


def explore(seeds: range) -> Tally:
    """Run the histories of these seeds."""
    began = process_time()
    failures = []
    happened: Counter[str] = Counter()
    for seed in seeds:
        outcome = history_of(seed)
        happened += happenings(outcome)
        if outcome.error is not None:
            failures.append(Failure(seed, f"{type(outcome.error).__name__}: {outcome.error}"))
        del outcome
    gc.collect()  # a simulation collects only what is young
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Tally(seeds.start, seeds.stop, process_time() - began, memory, dict(happened), failures)


def portions(seeds: range, portion: int) -> Iterator[range]:
    """The seeds, in portions."""
    for begin in range(seeds.start, seeds.stop, portion):
        yield range(begin, min(begin + portion, seeds.stop))


def quiet() -> None:
    """Ignore the logged errors of failing handlers, which are part of the histories."""
    logging.getLogger("aioinformer").propagate = False
    gc.freeze()


def campaign(
    run: Callable[[range], Tally], seeds: Iterable[range], jobs: int, report: Callable[[Tally], bool]
) -> None:
    """Run histories and report each portion in the order of its seeds, until the report says to stop."""
    if jobs == 1:
        quiet()
        for portion in seeds:
            if not report(run(portion)):
                return
        return
    with ProcessPoolExecutor(jobs, initializer=quiet) as pool:
        for tally in pool.map(run, seeds):
            if not report(tally):
                pool.shutdown(cancel_futures=True)
                return


def say(text: object) -> None:
    """Report the result."""
    print(text, flush=True)  # noqa: T201


def tell(seed: int) -> bool:
    """Print the history of a seed, shrunk if it fails; return whether it passed."""
    quiet()
    chosen = setting(seed)
    scenario = scenario_of(chosen)

    def run(skip: object = ()) -> Outcome:
        return run_once(scenario, seed, skip, **chosen.server)  # type: ignore[arg-type]

    outcome = run()
    if outcome.error is not None:
        happened = outcome.happened
        outcome, skip, _ = shrunk(run, outcome, frozenset())
        say(f"{outcome.happened - len(skip)} of {happened} things suffice")
    say(outcome.history)
    if outcome.error is not None:
        say(f"{type(outcome.error).__name__}: {outcome.error}")
    return outcome.error is None


class Progress:
    """Prints progress lines.

    Args:
        tally: What there is so far.
        end: The seed at which it ends.
    """

    def __init__(self, tally: Tally, end: int) -> None:
        self._tally = tally
        self._end = end
        self._first = tally.next
        self._began = self._reported_at = perf_counter()

    def tell(self) -> None:
        """Print a line, unless the last one is too recent."""
        now = perf_counter()
        if now - self._reported_at < TELL_EVERY:
            return
        self._reported_at = now
        tally = self._tally
        rate = (tally.next - self._first) / (now - self._began)
        say(
            f"{tally.histories} of {self._end - tally.first} histories, {len(tally.failures)} failed, "
            f"{rate:.0f} a second, {(self._end - tally.next) / rate / 60:.0f} minutes to go, {tally.memory:.0f} MB"
        )


def new_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser of the options that ``run_campaign`` reads."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--histories", type=int, default=1000)
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--state", type=Path, help="where to write how far it is, and go on from")
    parser.add_argument("--stop", action="store_true", help="stop at the first failure")
    return parser


def run_campaign(given: argparse.Namespace, run: Callable[[range], Tally], portion: int) -> int:
    """Run the histories that the options ask for, print progress and the table, and return the exit code.

    Args:
        given: The options.
        run: Runs the histories of some seeds.
        portion: How many histories are reported together.
    """
    tally = Tally(given.first, given.first)
    if given.state is not None and given.state.exists():
        tally = Tally.read(given.state)
        if tally.first != given.first:
            sys.exit(f"{given.state} is of histories from seed {tally.first}, not {given.first}")
    end = given.first + given.histories
    progress = Progress(tally, end)

    def report(new: Tally) -> bool:
        tally.add(new)
        for failure in new.failures:
            say(f"seed {failure.seed}: {failure.error}")
        if given.state is not None:
            tally.write(given.state)
        progress.tell()
        return not (given.stop and new.failures)

    campaign(run, portions(range(tally.next, end), portion), given.jobs, report)
    for line in tally.lines():
        say(line)
    return 1 if tally.failures else 0


def main() -> int:
    parser = new_parser(__doc__)
    parser.add_argument("--seed", type=int, help="this one only, told in full")
    parser.add_argument("--cpu", type=int, help="seconds of CPU after which it is killed")
    given = parser.parse_args()
    if given.cpu is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (given.cpu, given.cpu))
    if given.seed is not None:
        return 0 if tell(given.seed) else 1
    return run_campaign(given, explore, portion=5 if given.stop else PORTION)


if __name__ == "__main__":
    sys.exit(main())
