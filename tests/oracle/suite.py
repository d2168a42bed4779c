"""What the oracle's driver needs to know of scripts: how to make, compare, shrink and show them."""

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
    """One kind of scripts, which run through client-go and through our code."""

    name: str
    build: GoBuild
    script_type: type[S]
    met: Counter[Any]
    """In how many scripts each known difference was met."""
    batch: int
    """Scripts that are compared at once; a batch should take about a second."""

    def generate(self, random: Random) -> S:
        """A script, made by nothing but this source of randomness."""
        ...

    def compare(self, scripts: Sequence[S]) -> list[str | None]:
        """Run scripts through both.

        Returns:
            For each None, or a readable listing of how the two went apart.
        """
        ...

    def smaller(self, script: S) -> Iterator[S]:
        """What a script may be shrunk to in one step, the largest step first."""
        ...


@dataclass(frozen=True)
class Failure(Generic[S]):
    """A script on which the two differ.

    Attributes:
        suite: The script's.
        seed: What it was made by: see ``scripts``.
        script: As it was made.
        shrunk: The smallest script found that also differs.
        listing: How the two go apart on that one.
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
    """Some of the endless sequence of scripts that a seed stands for, each with a seed of its own."""
    seeds = [f"{seed}:{index}" for index in range(begin, begin + count)]
    return [(each, scripted(suite, each)) for each in seeds]


def scripted(suite: Suite[S], seed: str) -> S:
    """The script of a seed."""
    return suite.generate(Random(f"{suite.name} {seed}"))


def first_failure(suite: Suite[S], made: Sequence[tuple[str, S]]) -> Failure[S] | None:
    """Compare scripts; the first that differs, shrunk."""
    listings = suite.compare([script for _, script in made])
    for (seed, script), listing in zip(made, listings, strict=True):
        if listing is not None:
            return Failure(suite, seed, script, *shrink(suite, script, listing))
    return None


def shrink(suite: Suite[S], script: S, listing: str) -> tuple[S, str]:
    """The smallest script that can be reached from one by steps on each of which the two differ."""
    while True:
        for candidates in _some(suite.smaller(script)):
            found = suite.compare(candidates)
            differing = [
                (each, said) for each, said in zip(candidates, found, strict=True) if said is not None
            ]
            if differing:
                script, listing = differing[0]
                break
        else:
            return script, listing


def _some(candidates: Iterator[S]) -> Iterator[list[S]]:
    """Few at first, as the largest steps come first; then many at once."""
    size = 4
    batch: list[S] = []
    for each in candidates:
        batch.append(each)
        if len(batch) == size:
            yield batch
            batch, size = [], 64
    if batch:
        yield batch
