"""What a run found, kept as JSON."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec

from tests.go_build import CACHE

SAME, WORDS, DIFFERS = "same", "words", "differs"
"""The same result; the same result with an error in other words; another result."""

PATH = CACHE / "conformance" / "results.json"


class Case(msgspec.Struct, omit_defaults=True):
    """One spec, command or request on both servers.

    Attributes:
        part: The part of the run: a suite, "kubectl" or "requests".
        area: What it is about, for the table.
        name: What identifies it in its part.
        outcome: SAME, WORDS or DIFFERS.
        ours: What the embedded server gave, if it differs.
        real: What the real server gave, if it differs.
        cause: The kind of the difference, if the part knows it.
        sent: The request, if the name does not say it.
    """

    part: str
    area: str
    name: str
    outcome: str
    ours: str = ""
    real: str = ""
    cause: str = ""
    sent: str = ""

    @property
    def same(self) -> bool:
        return self.outcome == SAME


class Results(msgspec.Struct):
    """All cases of the latest run of each part.

    Attributes:
        cases: The cases.
        seconds: How long each part took.
        when: When the latest run began.
    """

    cases: list[Case] = []
    seconds: dict[str, float] = {}
    when: str = ""

    def replace(self, part: str, cases: list[Case], seconds: float) -> None:
        """Replace what an earlier run of this part found."""
        self.cases = [case for case in self.cases if case.part != part] + cases
        self.seconds[part] = seconds
        self.when = datetime.now(UTC).strftime("%Y-%m-%d")


def load(path: Path = PATH) -> Results:
    """Read earlier results; empty ones if there are none."""
    return msgspec.json.decode(path.read_bytes(), type=Results) if path.exists() else Results()


def save(results: Results, path: Path = PATH) -> None:
    """Write results, for the page and for the next run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(results)) + b"\n")
