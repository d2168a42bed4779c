"""Bugs planted in a copy of the package, and how soon the simulation finds each.

python -m tests.testing.simulation.mutations             # all of them
python -m tests.testing.simulation.mutations tombstone   # those with this word in their names
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from .campaign import say
from .mutants import MUTANTS, Mutant

ROOT = Path(__file__).parents[3]
HISTORIES = 3000
SECONDS = 300.0
"""A mutant that outlives this counts as surviving."""


class Caught(NamedTuple):
    """How a mutant ended: the seconds that it took, and the first line of the message; "" if it survived."""

    seconds: float
    message: str


def attempt(mutant: Mutant) -> Caught:
    """Plant a bug in a copy, and look for it."""
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name)
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "aioinformer", copy / "aioinformer", ignore=ignored)
        shutil.copytree(
            ROOT / "tests" / "testing" / "simulation",
            copy / "tests" / "testing" / "simulation",
            ignore=ignored,
        )
        for package in ("tests", "tests/testing"):
            (copy / package / "__init__.py").touch()
        file = copy / "aioinformer" / mutant.file
        code = file.read_text()
        if code.count(mutant.code) != 1:
            raise LookupError(
                f"{mutant.name}: {mutant.file} has it {code.count(mutant.code)} times, not once"
            )
        file.write_text(code.replace(mutant.code, mutant.instead))
        campaign = [
            sys.executable,
            "-m",
            "tests.testing.simulation.campaign",
            "--stop",
            "--histories",
            str(HISTORIES),
        ]
        began = perf_counter()
        try:
            ran = subprocess.run(
                campaign, cwd=copy, env={**os.environ, "PYTHONPATH": name}, capture_output=True, text=True,
                timeout=SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Caught(perf_counter() - began, "")
        seconds = perf_counter() - began
        if ran.returncode == 0:
            return Caught(seconds, "")
        said = ran.stdout.splitlines() or ran.stderr.splitlines()[-1:]
        return Caught(seconds, said[0])


def main(words: list[str]) -> int:
    wrong = 0
    for mutant in MUTANTS:
        if words and not any(word in mutant.name for word in words):
            continue
        try:
            seconds, message = attempt(mutant)
        except LookupError as error:
            say(f"STALE     {error}")
            wrong += 1
            continue
        as_expected = mutant.caught in message and bool(message) is bool(mutant.caught)
        wrong += not as_expected
        outcome = f"{seconds:5.1f} s" if message else "survives"
        said = message[:160] or mutant.why
        say(f"{'' if as_expected else 'UNEXPECTED '}{outcome}  {mutant.name}: {said}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
