"""Count machine instructions per event and per listed pod: ``python -m benchmarks.instructions``.

Times vary on a busy machine, so that an improvement of 5 % is not visible. Instruction counts are the same in every
run. Callgrind runs the Python clients with pods only, with changes after them, and with more pods; the differences are
the costs of a change and of a pod, by library. The kernel's instructions are not counted, and instructions take
different times: those of a scan over bytes are fast, those of an interpreter are slow.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from .building import build
from .harness.cell import SERVERS_CORE, Measured, command_of, drive
from .harness.matrix import Client, Phase, Scenario, load
from .harness.processes import ReplayServer
from .harness.run import SERVER, progress_on, templates

SCENARIO = "metadata"
PODS, MORE_PODS = 1_000, 3_000
WARMING = 500
"""Changes before the counted ones."""
GOODBYE = 120.0
"""Seconds in which callgrind writes its profile."""

_SLOWED = (
    "import runpy, aioinformer._core.coop as coop; coop.SLICE *= 50;"
    " runpy.run_module('benchmarks.clients', run_name='__main__', alter_sys=True)"
)
"""A client whose time slices on the event loop are 50 times longer, as callgrind is slower."""

_PARTS = {
    "JSON": re.compile(r"/(msgspec|orjson)/"),
    "interpreter": re.compile(r"/(lib)?python[0-9.]*(\.so[0-9.]*)?$"),
    "C library": re.compile(r"/(libc|ld-linux-[^./]*)\.so[^/]*$"),
}
OTHERS = "others"

Counts = Counter[str]
"""Instructions by the part that runs them."""


def counts_of(profile: str) -> Counts:
    """Sum up a profile of callgrind: cost lines that follow a line with their object file.

    A name is written once with a number, and later only the number. The line after ``calls=`` has the cost of the
    called function, which is counted elsewhere.
    """
    counts: Counts = Counter()
    names: dict[str, str] = {}
    part = OTHERS
    is_call = False
    for line in profile.splitlines():
        if named := re.match(r"(c?)ob=\((\d+)\)(?: (.*))?$", line):
            if named[3]:
                names[named[2]] = named[3]
            if not named[1]:
                part = part_of(names[named[2]])
        elif line.startswith("calls="):
            is_call = True
        elif cost := re.match(r"[+*-]?\d*(?: [+*-]?\d*)* (\d+)$", line):
            counts[part] += 0 if is_call else int(cost[1])
            is_call = False
    return counts


def part_of(path: str) -> str:
    """Return the name of an object file in the table."""
    return next((part for part, pattern in _PARTS.items() if pattern.search(path)), OTHERS)


def apiece(more: Counts, less: Counts, count: int) -> Counts:
    """Return the cost of one item, from the difference of two runs."""
    return Counter({part: round((more[part] - less[part]) / count) for part in more})


def measure(
    server: ReplayServer, client: Client, scenario: Scenario, pods: int, events: int, folder: Path
) -> Counts:
    """Run a client with a number of pods and changes.

    Raises:
        ClientFailedError: The client gave no answer or a wrong one.
        ClientUnsupportedError: The client does not support the scenario.
    """
    phases = [Phase("_warm", WARMING), *([Phase("watch", events)] if events else [])]
    scenario = msgspec.structs.replace(scenario, objects=pods, phases=phases)
    command = command_of(client, scenario, server, {})
    profile = folder / "profile"
    valgrind = ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={profile}"]
    slowed = [sys.executable, "-c", _SLOWED, *command[command.index(client.run) :]]
    drive(server, valgrind + slowed, scenario, Measured(scenario.name, client.name, 0, "ok"), GOODBYE)
    return counts_of(profile.read_text())


def table(title: str, rows: dict[str, Counts]) -> Table:
    """Return a table with a row per client."""
    made = Table("client", "instructions", *_PARTS, OTHERS, title=title)
    made.columns[0].no_wrap = True
    for column in made.columns[1:]:
        column.justify = "right"
    for client, counts in rows.items():
        figures = [counts.total(), *(counts[part] for part in (*_PARTS, OTHERS))]
        made.add_row(client, *(f"{figure:,}" for figure in figures))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description="Count the instructions of an event and of a listed pod")
    parser.add_argument(
        "--only",
        default="^(aioinformer(-protobuf|-projection)?|orjson-loop-dropped)$",
        help="regular expression of the clients' names (default: %(default)s)",
    )
    parser.add_argument("--handler", choices=["metadata", "field", "whole"], default="metadata")
    parser.add_argument("--events", type=int, default=3_000, help="(default: %(default)s)")
    given = parser.parse_args()
    if shutil.which("valgrind") is None:
        sys.exit("valgrind is not installed, and counts the instructions: install the package valgrind")
    os.environ["PYTHONHASHSEED"] = "0"
    matrix = load()
    scenario = next(candidate for candidate in matrix.scenarios if candidate.name == SCENARIO)
    scenario = msgspec.structs.replace(scenario, handler=given.handler)
    clients = [client for client in matrix.clients if re.search(given.only, client.name)]
    if not clients or any(client.program for client in clients):
        sys.exit(
            f"--only {given.only} must name clients of benchmarks/matrix.toml that are written in Python"
        )
    console = Console()
    built = build([SERVER])
    if SERVER in built.missing:
        sys.exit(built.missing[SERVER])
    of_events: dict[str, Counts] = {}
    of_pods: dict[str, Counts] = {}
    progress = progress_on(Console(stderr=True))
    with tempfile.TemporaryDirectory() as name, progress:
        folder = Path(name)
        task = progress.add_task("", total=3 * len(clients))

        def count(client: Client, pods: int, events: int) -> Counts:
            what = f"{client.name}: {pods:,} pods, {events:,} changes"
            progress.update(task, description=what, refresh=True)
            counts = measure(server, client, scenario, pods, events, folder)
            progress.advance(task)
            return counts

        ca = folder / "ca.pem"
        with ReplayServer(built.programs[SERVER], templates("quick"), ca, [SERVERS_CORE]) as server:
            for client in clients:
                alone = count(client, PODS, 0)
                changed = count(client, PODS, given.events)
                of_events[client.name] = apiece(changed, alone, given.events)
                of_pods[client.name] = apiece(count(client, MORE_PODS, 0), alone, MORE_PODS - PODS)
    console.print(table(f"an event, a handler that reads {given.handler}", of_events))
    console.print(table("a pod of a list", of_pods))


if __name__ == "__main__":
    main()
