"""Run scripts through client-go and aioinformer, for a given time.

python -m tests.oracle.fuzz fuzz [--minutes N | --scripts N] [--seed S] [--suite NAME ...]
python -m tests.oracle.fuzz replay SUITE SEED      one script, as it was made
python -m tests.oracle.fuzz run SUITE SCRIPT       one script, as JSON
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from typing import Any, NamedTuple

import msgspec

from .suite import Suite, first_failure, make_script, scripts
from .suites import SUITES

PROGRESS = 10.0
"""Seconds between two lines about the progress."""


class Done(NamedTuple):
    """The result of a batch of scripts."""

    suite: str
    scripts: int
    met: Counter[str]
    failure: str | None


def say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


def batch(name: str, seed: str, begin: int, count: int) -> Done:
    """Compare some of a seed's scripts, in any process."""
    suite = SUITES[name]
    before = Counter(suite.met)
    failure = first_failure(suite, scripts(suite, seed, begin, count))
    met = Counter({str(difference): times for difference, times in (suite.met - before).items()})
    return Done(name, count, met, None if failure is None else str(failure))


def batches(suites: Sequence[Suite[Any]], seed: str, most: int | None) -> Iterator[tuple[str, str, int, int]]:
    """Yield the arguments of ``batch``: the suites in turn, without end or up to a number of scripts for each."""
    begin = dict.fromkeys((suite.name for suite in suites), 0)
    while True:
        left = [suite for suite in suites if most is None or begin[suite.name] < most]
        if not left:
            return
        for suite in left:
            at = begin[suite.name]
            count = suite.batch if most is None else min(suite.batch, most - at)
            yield suite.name, seed, at, count
            begin[suite.name] += count


def fuzz(suites: Sequence[Suite[Any]], seed: str, minutes: float, most: int | None, jobs: int) -> str | None:
    """Compare scripts until the time is over, or up to a number for each suite; return the first failure."""
    for suite in suites:
        suite.build.ensure()
    began = said = time.monotonic()
    compared: Counter[str] = Counter()
    met: Counter[str] = Counter()
    wanted = batches(suites, seed, most)
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        running: set[Future[Done]] = set()
        while True:
            while len(running) < jobs + 1 and (most is not None or time.monotonic() - began < minutes * 60):
                if (arguments := next(wanted, None)) is None:
                    break
                running.add(pool.submit(batch, *arguments))
            if not running:
                break
            finished, running = wait(running, return_when=FIRST_COMPLETED)
            for done in (future.result() for future in finished):
                compared[done.suite] += done.scripts
                met += done.met
                if done.failure is not None:
                    say(f"{sum(compared.values())} scripts in {time.monotonic() - began:.1f} s")
                    pool.shutdown(wait=True, cancel_futures=True)
                    return done.failure
            if time.monotonic() - said > PROGRESS:
                said = time.monotonic()
                say(_progress(compared, said - began))
    say(_progress(compared, time.monotonic() - began))
    for difference, times in met.most_common():
        say(f"    {times} scripts met: {difference}")
    return None


def _progress(compared: Counter[str], seconds: float) -> str:
    total = sum(compared.values())
    counts = ", ".join(f"{name} {count}" for name, count in sorted(compared.items()))
    return f"{seconds:.0f} s: {total} scripts alike ({counts}), {total / seconds:.0f} a second"


def one(suite: Suite[Any], script: Any) -> int:
    """Compare one script."""
    (listing,) = suite.compare([script])
    say(listing if listing is not None else "alike")
    return 1 if listing is not None else 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.fuzz")
    commands = parser.add_subparsers(dest="command", required=True)
    fuzzing = commands.add_parser("fuzz", help="compare scripts that are made at random")
    fuzzing.add_argument("--minutes", type=float, default=1.0, help="how long")
    fuzzing.add_argument("--scripts", type=int, help="instead of minutes: how many of each suite")
    fuzzing.add_argument("--seed", default="", help="what the scripts are made of; a new one if empty")
    fuzzing.add_argument(
        "--suite", action="append", choices=sorted(SUITES), help="which; all if none is given"
    )
    fuzzing.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    replaying = commands.add_parser("replay", help="compare the script of a seed")
    running = commands.add_parser("run", help="compare a script given as JSON")
    for command, what in ((replaying, "seed"), (running, "script")):
        command.add_argument("suite", choices=sorted(SUITES))
        command.add_argument(what)
    given = parser.parse_args(arguments)
    if given.command != "fuzz":
        suite = SUITES[given.suite]
        if given.command == "replay":
            return one(suite, make_script(suite, given.seed))
        return one(suite, msgspec.json.decode(given.script, type=suite.script_type))
    seed = given.seed or str(random.SystemRandom().randrange(10**9))
    suites = [SUITES[name] for name in given.suite or SUITES]
    say(f"seed {seed}, suites: {', '.join(suite.name for suite in suites)}")
    failure = fuzz(suites, seed, given.minutes, given.scripts, given.jobs)
    say(failure or f"no difference that is not known (seed {seed})")
    return 1 if failure else 0


if __name__ == "__main__":
    sys.exit(main())
