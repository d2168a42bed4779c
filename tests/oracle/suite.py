"""Suites: how to make, compare, shrink and show scripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from tests.go_build import GoBuild

S = TypeVar("S")


class Suite(Protocol[S]):
    """A kind of scripts that run through client-go and through our code."""

    name: str
    build: GoBuild
    script_type: type[S]
    met: Counter[Any]
    """The number of scripts that met each known difference."""
    batch: int
    """Scripts of one batch; a batch should take about a second."""

    def generate(self, random: Random) -> S:
        """Return a script that depends only on this source of randomness."""
        ...

    def compare(self, scripts: Sequence[S]) -> list[str | None]:
        """Run scripts through both sides.

        Returns:
            For each script None, or a readable listing of the two traces.
        """
        ...

    def smaller(self, script: S) -> Iterator[S]:
        """Yield the scripts to which a script may be shrunk in one step, the largest step first."""
        ...


@dataclass(frozen=True)
class Failure(Generic[S]):
    """A script on which the two sides differ.

    Attributes:
        suite: The script's suite.
        seed: The script's seed: see ``scripts``.
        script: The original script.
        shrunk: The smallest script found that also differs.
        listing: The listing of the shrunk script's traces.
    """

    suite: Suite[S]
    seed: str
    script: S
    shrunk: S
    listing: str

    def __str__(self) -> str:
        script = msgspec.json.encode(self.shrunk).decode()
        return (
            f"{self.suite.name}: client-go and aioinformer differ on script {self.seed}, shrunk:\n\n"
            f"{self.listing}\n\n"
            f"as it was made:   python -m tests.oracle.fuzz replay {self.suite.name} {self.seed}\n"
            f"shrunk:           python -m tests.oracle.fuzz run {self.suite.name} '{script}'"
        )


def scripts(suite: Suite[S], seed: str, begin: int, count: int) -> list[tuple[str, S]]:
    """Yield a part of a seed's endless sequence of scripts, each with its own seed."""
    seeds = [f"{seed}:{index}" for index in range(begin, begin + count)]
    return [(number, make_script(suite, number)) for number in seeds]


def make_script(suite: Suite[S], seed: str) -> S:
    """Return the script of a seed."""
    return suite.generate(Random(f"{suite.name} {seed}"))


def first_failure(suite: Suite[S], made: Sequence[tuple[str, S]]) -> Failure[S] | None:
    """Compare scripts; return the first that differs, shrunk."""
    listings = suite.compare([script for _, script in made])
    for (seed, script), listing in zip(made, listings, strict=True):
        if listing is not None:
            return Failure(suite, seed, script, *shrink(suite, script, listing))
    return None


def shrink(suite: Suite[S], script: S, listing: str) -> tuple[S, str]:
    """Return the smallest script that can be reached by steps on each of which the two sides differ."""
    while True:
        for candidates in _some(suite.smaller(script)):
            differences = suite.compare(candidates)
            differing = [
                (candidate, said)
                for candidate, said in zip(candidates, differences, strict=True)
                if said is not None
            ]
            if differing:
                script, listing = differing[0]
                break
        else:
            return script, listing


def _some(candidates: Iterator[S]) -> Iterator[list[S]]:
    """Yield few scripts at first, because the largest steps come first; then many at once."""
    size = 4
    batch: list[S] = []
    for candidate in candidates:
        batch.append(candidate)
        if len(batch) == size:
            yield batch
            batch, size = [], 64
    if batch:
        yield batch
