"""Bugs planted in a copy of the package, and how soon the simulation finds each.

python -m tests.testing.simulation.mutations             # all of them
python -m tests.testing.simulation.mutations tombstone   # those with this word in their names
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from .campaign import say
from .mutants import MUTANTS, Mutant, StaleMutantError

ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "aioinformer"
HISTORIES = 1500
"""A mutant that outlives so many survives."""

CPU = 120
"""Seconds of CPU after which a mutant is stopped: something goes round in circles, and no clock moves."""


class Fate(NamedTuple):
    """How a mutant ended.

    Attributes:
        seconds: Until it was caught, or had survived.
        cpu: Those of them that it had a CPU.
        message: What caught it; "" if nothing did.
    """

    seconds: float
    cpu: float
    message: str


def attempt(mutant: Mutant) -> Fate:
    """Plant a bug in a copy, and look for it."""
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name)
        ignored = shutil.ignore_patterns("__pycache__")
        here = Path(__file__).parent.relative_to(ROOT)
        shutil.copytree(PACKAGE, copy / PACKAGE.name, ignore=ignored)
        shutil.copytree(ROOT / here, copy / here, ignore=ignored)
        for package in here.parents[:-1]:
            (copy / package / "__init__.py").touch()
        (copy / PACKAGE.name / mutant.file).write_text(mutant.plant(PACKAGE))
        began, began_cpu = perf_counter(), _cpu_of_children()
        said = _campaign(copy)
        return Fate(perf_counter() - began, _cpu_of_children() - began_cpu, said)


def _campaign(copy: Path) -> str:
    """Run histories on a copy until one fails; what is said of that, or \"\"."""
    module = f"{__package__}.campaign"
    ran = subprocess.run(
        [sys.executable, "-m", module, "--stop", "--histories", str(HISTORIES), "--cpu", str(CPU)],
        cwd=copy, env={**os.environ, "PYTHONPATH": str(copy)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if ran.returncode == 0:
        return ""
    failed = [line for line in ran.stdout.splitlines() if line.startswith("seed ")]
    return (failed or ran.stderr.splitlines()[-1:] or [f"ended by signal {-ran.returncode}"])[0]


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(words: list[str]) -> int:
    chosen = [mutant for mutant in MUTANTS if not words or any(word in mutant.name for word in words)]
    stale = 0
    for mutant in chosen:
        try:
            mutant.plant(PACKAGE)
        except StaleMutantError as error:
            say(f"STALE  {error}")
            stale += 1
    if stale:
        say(f"{stale} of {len(chosen)} mutants are stale: nothing was run")
        return 2

    unexpected = survived = 0
    slowest = 0.0
    for mutant in chosen:
        fate = attempt(mutant)
        as_expected = mutant.caught in fate.message and bool(fate.message) is bool(mutant.caught)
        unexpected += not as_expected
        if fate.message:
            slowest = max(slowest, fate.seconds)
        else:
            survived += 1
        outcome = f"{fate.seconds:6.1f} s ({fate.cpu:5.1f} s of CPU)" if fate.message else f"{'survives':>26}"
        wrong = "" if as_expected else "UNEXPECTED  "
        say(f"{wrong}{outcome}  {mutant.file:<28} {mutant.name}: {fate.message[:120] or mutant.why}")
    say(
        f"{len(chosen)} mutants, {len(chosen) - survived} caught, the slowest in {slowest:.1f} s; "
        f"{survived} survived; {unexpected} unexpected"
    )
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
