"""Plant bugs in a copy of the package, one at a time, and measure how soon the simulation finds each.

python -m tests.testing.simulation.mutations                       # all of them
python -m tests.testing.simulation.mutations tombstone processor   # those with one of these words in name or module
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
"""Histories after which a mutant counts as a survivor."""

CPU = 120
"""Seconds of CPU after which a run is stopped: the mutant loops, and the virtual clock does not move."""


class Fate(NamedTuple):
    """How a mutant ended.

    Attributes:
        seconds: Wall time until it was caught or had survived.
        cpu: CPU time of the same run.
        message: The error that caught it; "" if it survived.
    """

    seconds: float
    cpu: float
    message: str


def attempt(mutant: Mutant) -> Fate:
    """Plant a bug in a copy of the package, and run histories on the copy."""
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name)
        ignored = shutil.ignore_patterns("__pycache__")
        here = Path(__file__).parent.relative_to(ROOT)
        shutil.copytree(PACKAGE, copy / PACKAGE.name, ignore=ignored)
        shutil.copytree(ROOT / here, copy / here, ignore=ignored)
        for package in here.parents[:-1]:
            (copy / package / "__init__.py").touch()
        (copy / PACKAGE.name / mutant.file).write_text(mutant.plant(PACKAGE))
        started, started_cpu = perf_counter(), _cpu_of_children()
        message = _first_failure(copy)
        return Fate(perf_counter() - started, _cpu_of_children() - started_cpu, message)


def _first_failure(copy: Path) -> str:
    """Run histories on a copy until one fails; return its message, or \"\" if all pass."""
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
    chosen = [
        mutant
        for mutant in MUTANTS
        if not words or any(word in f"{mutant.module} {mutant.name}" for word in words)
    ]
    stale = 0
    for mutant in chosen:
        try:
            mutant.plant(PACKAGE)
        except StaleMutantError as error:
            say(f"STALE  {error}")
            stale += 1
    if stale:
        say(f"{stale} of {len(chosen)} mutants are stale; none was run")
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
        say(f"{wrong}{outcome}  {mutant.module:<26} {mutant.name}: {fate.message[:120] or mutant.why}")
    say(
        f"{len(chosen)} mutants, {len(chosen) - survived} caught, the slowest in {slowest:.1f} s; "
        f"{survived} survived; {unexpected} unexpected"
    )
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
