"""Run programs of others with their own watcher and with aioinformer's: ``python -m tests.migrations [NAME...]``.

A program is a folder of examples/migrations with ``requirements.txt``, ``before.py`` and ``after.py``. Both run at the
same time, under the same trouble. ``kopf`` is an operator, with a table of its own. ``--hour`` measures KubeSpawner
for a shortened hour with 500 pods instead.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TypeVar

from .databases.comparison import compare
from .environments import ROOT, environment_of, variables
from .hours import Hour, measure_hours
from .objects import OpenObjects, open_configmaps, open_pods
from .prefect import open_flow_runs
from .tables import show
from .troubles import TROUBLES, Outcome, measure
from .worlds import World, embedded_world, real_world

PROGRAMS = ROOT / "examples" / "migrations"
OPERATOR = "kopf"
SIDES = ("before", "after")
WORLDS: dict[str, Callable[[Path], AbstractAsyncContextManager[World]]] = {
    "embedded": embedded_world,
    "real": real_world,
}
OBJECTS: dict[str, OpenObjects] = {
    "configmaps": open_configmaps,
    "pods": open_pods,
    "flow runs": open_flow_runs,
}
"""What a program follows, by its file "plural"."""

Measurement = TypeVar("Measurement")


async def run_program(
    program: Path,
    world: str,
    measure: Callable[[Sequence[str], dict[str, str], World], Awaitable[Measurement]],
) -> dict[str, Measurement]:
    """Run both sides of a program at the same time, each on a server of its own."""
    python = environment_of(program / "requirements.txt")
    plural_file = program / "plural"
    plural = plural_file.read_text().strip() if plural_file.exists() else "configmaps"

    async def run(side: str) -> Measurement:
        with tempfile.TemporaryDirectory(prefix="aioinformer-") as temporary:
            folder = Path(temporary)
            async with (
                WORLDS[world](folder) as server,
                OBJECTS[plural](server.api, server.namespace, python, folder) as server.objects,
            ):
                command = [str(python), str(program / f"{side}.py")]
                return await measure(command, variables() | {"PLURAL": plural}, server)

    return dict(zip(SIDES, await asyncio.gather(*map(run, SIDES)), strict=True))


def rows(name: str, outcomes: dict[str, Outcome]) -> Iterable[list[str]]:
    """Return the rows of the table for a program."""
    for side, outcome in outcomes.items():
        recoveries = {recovery.trouble: str(recovery) for recovery in outcome.recoveries}
        sync = "never" if outcome.sync is None else f"{outcome.sync:.1f} s"
        yield [
            name,
            side,
            sync,
            *(recoveries.get(trouble, "") for trouble in TROUBLES),
            str(len(outcome.missed)),
            f"{outcome.requests:,}",
            f"{outcome.cpu:.1f} s",
            f"{outcome.memory:.0f} MiB",
        ]


def hour_rows(outcomes: dict[str, list[Hour]]) -> Iterable[list[str]]:
    """Return the rows of the table of hours, those of one kind of hour beside each other."""
    for of_one_kind in zip(*outcomes.values(), strict=True):
        for side, hour in zip(outcomes, of_one_kind, strict=True):
            yield [
                f"{hour.name} ({hour.changes:,})" if hour.changes else hour.name,
                side,
                f"{hour.lists:,}",
                f"{hour.watches:,}",
                f"{hour.other:,}",
                f"{hour.received:.1f} MiB",
                f"{hour.cpu:.1f} s",
                f"{hour.memory:.0f} MiB",
                "never" if hour.recovery is None else f"{hour.recovery:.1f} s",
            ]


async def run_troubles(names: list[str], world: str, verbose: bool) -> list[list[str]]:
    """Run programs under every trouble, and return the table."""
    table = [["program", "watcher", "sync", *TROUBLES, "missed changes", "requests", "CPU", "memory"]]
    for name in names:
        outcomes = await run_program(PROGRAMS / name, world, measure)
        table += rows(name, outcomes)
        if verbose:
            for side, outcome in outcomes.items():
                print(f"--- {name} {side}: missed {outcome.missed}", *outcome.log, sep="\n")  # noqa: T201
    return table


async def run_hours(world: str) -> list[list[str]]:
    """Run KubeSpawner for two shortened hours, and return the table."""
    outcomes = await run_program(PROGRAMS / "kubespawner", world, measure_hours)
    header = [
        "hour",
        "watcher",
        "lists",
        "watches",
        "other",
        "received",
        "CPU",
        "memory",
        "state known after",
    ]
    return [header, *hour_rows(outcomes)]


async def main(names: list[str], worlds: list[str], verbose: bool, hour: bool) -> None:
    """Run the programs and print the tables."""
    watchers = [name for name in names if name != OPERATOR]
    for world in worlds:
        if OPERATOR in names and not hour:
            show(f"{OPERATOR} on the {world} API server", await compare(WORLDS[world]))
        if not watchers:
            continue
        table = await (run_hours(world) if hour else run_troubles(watchers, world, verbose))
        show(f"on the {world} API server", table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    every = sorted(path.parent.name for path in PROGRAMS.glob("*/requirements.txt"))
    parser.add_argument("names", nargs="*", help=f"of {', '.join(every)}; default: all")
    parser.add_argument("--server", choices=[*WORLDS, "both"], default="both")
    parser.add_argument("--verbose", action="store_true", help="print what the programs said")
    parser.add_argument("--hour", action="store_true", help="KubeSpawner's shortened hours, in 13 minutes")
    given = parser.parse_args()
    chosen = list(WORLDS) if given.server == "both" else [given.server]
    asyncio.run(main(given.names or every, chosen, given.verbose, given.hour))
