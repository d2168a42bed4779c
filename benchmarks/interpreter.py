"""Finds the Python to measure with: the fastest build of this version on the PATH.

A CPython that is compiled without profile-guided optimisation, as tools that build it from source do unless told
otherwise, takes up to a third longer for the same code than those of distributions and images, which users have.
Clients in Go and Rust are compiled with all optimisations, too. Needs nothing but Python, and prints a path.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

PROBE = """
import sys
from time import perf_counter
class Node:
    def __init__(self, key, value):
        self.key, self.value = key, value
    def keep(self, nodes):
        nodes[self.key] = self
        return self.value
def work():
    nodes, total = {}, 0
    for number in range(20000):
        total += Node(f"team-{number % 50}/pod-{number}", number).keep(nodes)
    return total
best = float("inf")
for _ in range(15):
    began = perf_counter()
    work()
    best = min(best, perf_counter() - began)
print(best, *sys.version_info[:2], sys.executable)
"""
"""Functions, attributes, dicts and text, as in what is measured: its best time, the version, the path."""

ROUNDS = 3


def candidates(path: str) -> list[Path]:
    """What may be a Python of this one's version, in the directories of a PATH; each file once."""
    names = ("python3", f"python3.{sys.version_info.minor}")
    found = [Path(folder, name) for folder in path.split(os.pathsep) for name in names]
    return list({each.resolve(): each for each in reversed(found) if each.is_file()}.values())


def seconds_of(python: Path) -> tuple[str, float] | None:
    """The path that a Python has for itself, and the time that it takes; None if it is not of this version."""
    try:
        asked = subprocess.run([python, "-c", PROBE], capture_output=True, text=True, timeout=60, check=True)
        seconds, major, minor, executable = asked.stdout.split(maxsplit=3)
    except (OSError, subprocess.SubprocessError, ValueError):  # ValueError: no usable output
        return None
    if (int(major), int(minor)) != sys.version_info[:2]:
        return None
    return executable.strip(), float(seconds)


def fastest(pythons: Sequence[Path]) -> str:
    """Return the path of the fastest build, or this one's; builds run in turns, because the machine may be shared."""
    best: dict[str, float] = {}
    for python in [*pythons] * ROUNDS:
        if (timed := seconds_of(python)) is not None:
            executable, seconds = timed
            best[executable] = min(seconds, best.get(executable, seconds))
    return min(best, key=lambda each: best[each], default=sys.executable)


if __name__ == "__main__":
    print(fastest(candidates(os.environ.get("PATH", ""))))
