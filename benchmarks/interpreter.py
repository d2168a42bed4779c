"""Find the Python to measure with: the fastest build of this version on the PATH.

A CPython without profile-guided optimisation, which is the default of tools that build it from source, takes up to a
third longer for the same code than the builds of distributions and images that users have. Clients in Go and Rust are
compiled with all optimisations, too. This script needs only Python, and prints a path.
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
"""A program of calls, attributes, dicts and text. It prints its best time, the version and the path."""

ROUNDS = 3


def candidates(path: str) -> list[Path]:
    """Return possible Pythons of this version in the directories of a PATH; each file once."""
    names = ("python3", f"python3.{sys.version_info.minor}")
    paths = [Path(folder, name) for folder in path.split(os.pathsep) for name in names]
    return list({file.resolve(): file for file in reversed(paths) if file.is_file()}.values())


def seconds_of(python: Path) -> tuple[str, float] | None:
    """Return a Python's ``sys.executable`` and its time, or None if it has another version."""
    try:
        finished = subprocess.run(
            [python, "-c", PROBE], capture_output=True, text=True, timeout=60, check=True
        )
        seconds, major, minor, executable = finished.stdout.split(maxsplit=3)
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
    return min(best, key=lambda path: best[path], default=sys.executable)


if __name__ == "__main__":
    print(fastest(candidates(os.environ.get("PATH", ""))))
