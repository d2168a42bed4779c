"""A summary of many histories: how many ran, what happened in them, which failed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from aioinformer.testing.simulation.outcome import Outcome

TROUBLE = "trouble: "
HOURS = "virtual hours"

_NAMES = {
    "handler": "calls of handlers",
    "writer": "writes",
    "request": "requests, answers and pieces of them",
    "reader": "waits for what was written",
    "handlers": "handlers that came or went",
    "log": "log messages",
}


class Failure(NamedTuple):
    """A seed that failed, and how."""

    seed: int
    error: str


class Tally(msgspec.Struct):
    """A sum over histories.

    Attributes:
        first: The first seed.
        next: The seed after the last.
        cpu: Seconds of CPU.
        memory: The most that a process had of it at once, in MB.
        happened: How often each thing happened.
        failures: The seeds that failed.
        most: The most of some things in any history.
    """

    first: int
    next: int
    cpu: float = 0.0
    memory: float = 0.0
    happened: dict[str, float] = {}
    failures: list[Failure] = []
    most: dict[str, float] = {}

    @property
    def histories(self) -> int:
        return self.next - self.first

    @property
    def rate(self) -> float:
        """Histories in a second of CPU."""
        return self.histories / max(self.cpu, 1e-9)

    def add(self, more: Tally) -> None:
        """Add the histories that follow."""
        assert more.first == self.next
        self.next = more.next
        self.cpu += more.cpu
        self.memory = max(self.memory, more.memory)
        self.happened = dict(Counter(self.happened) + Counter(more.happened))
        self.failures += more.failures
        self.most |= {name: max(count, self.most.get(name, count)) for name, count in more.most.items()}

    def lines(self) -> Iterator[str]:
        """A table."""
        yield f"{self.histories:12,} histories, of the seeds {self.first} to {self.next - 1}"
        yield f"{len(self.failures):12,} failed {[failure.seed for failure in self.failures] or ''}".rstrip()
        yield f"{self.rate:12,.0f} a second of CPU"
        yield f"{self.memory:12,.0f} MB of memory at most"
        for name, count in sorted(self.happened.items(), key=lambda item: (TROUBLE in item[0], -item[1])):
            yield f"{count:12,.0f} {name}"
        for name, count in self.most.items():
            yield f"{count:12,.1f} {name} at most"

    def write(self, file: Path) -> None:
        """Save the tally atomically: after a crash the file has the old or the new one."""
        aside = file.with_suffix(".new")
        aside.write_bytes(msgspec.json.format(msgspec.json.encode(self)))
        aside.replace(file)

    @classmethod
    def read(cls, file: Path) -> Tally:
        """Load the saved tally."""
        return msgspec.convert(json.loads(file.read_text()), cls)


def happenings(outcome: Outcome) -> Counter[str]:
    """Count what happened in a history, for `Tally.happened`."""
    counts: Counter[str] = Counter()
    for _, who, what in outcome.history:
        first = who.partition(" ")[0]
        if who == "setting":
            counts[f"with a {getattr(what, 'queue', None)} queue"] += 1
        elif first == "storm":
            _, numbered, trouble = str(what).partition("] ")
            counts[f"{TROUBLE}{trouble}"] += bool(numbered)
        elif first in _NAMES:
            counts[_NAMES[first]] += 1
    entries = outcome.history.entries
    hours: dict[str, Any] = {HOURS: entries[-1].time / 3600 if entries else 0.0}
    counts.update(hours)
    return +counts
