"""Run programs of others with their own watcher and with aioinformer's: ``python -m tests.migrations [NAME...]``.

A program is a folder of examples/migrations with ``requirements.txt``, ``before.py`` and ``after.py``. Both run at the
same time, under the same trouble.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from rich.console import Console
from rich.table import Table

from .environments import ROOT, environment_of, variables
from .troubles import TROUBLES, Outcome, measure
from .worlds import World, embedded_world, real_world

PROGRAMS = ROOT / "examples" / "migrations"
SIDES = ("before", "after")
WORLDS: dict[str, Callable[[Path, str], AbstractAsyncContextManager[World]]] = {
    "embedded": embedded_world,
    "real": real_world,
}


async def run_program(program: Path, world: str) -> dict[str, Outcome]:
    """Run both sides of a program at the same time, each on a server of its own."""
    python = environment_of(program / "requirements.txt")
    plural_file = program / "plural"
    plural = plural_file.read_text().strip() if plural_file.exists() else "configmaps"

    async def run(side: str) -> Outcome:
        with tempfile.TemporaryDirectory(prefix="aioinformer-") as folder:
            async with WORLDS[world](Path(folder), plural) as server:
                command = [str(python), str(program / f"{side}.py")]
                return await measure(command, variables() | {"PLURAL": plural}, server)

    return dict(zip(SIDES, await asyncio.gather(*map(run, SIDES)), strict=True))


def rows(name: str, outcomes: dict[str, Outcome]) -> Iterable[list[str]]:
    """Return the rows of the table for a program."""
    for side, outcome in outcomes.items():
        recoveries = {recovery.trouble: str(recovery) for recovery in outcome.recoveries}
        sync = "never" if outcome.sync is None else f"{outcome.sync:.1f} s"
        requests = "" if outcome.requests is None else f"{outcome.requests:,}"
        yield [
            name,
            side,
            sync,
            *(recoveries.get(trouble, "") for trouble in TROUBLES),
            requests,
            f"{outcome.cpu:.1f} s",
            f"{outcome.memory:.0f} MiB",
        ]


def markdown(table: list[list[str]]) -> str:
    """Return the table for the docs."""
    lines = ["| " + " | ".join(row) + " |" for row in table]
    lines.insert(1, "| --- " * len(table[0]) + "|")
    return "\n".join(lines)


async def main(names: list[str], worlds: list[str], verbose: bool) -> None:
    """Run the programs and print the table."""
    header = ["program", "watcher", "sync", *TROUBLES, "requests", "CPU", "memory"]
    for world in worlds:
        table = [header]
        for name in names:
            outcomes = await run_program(PROGRAMS / name, world)
            table += rows(name, outcomes)
            if verbose:
                for side, outcome in outcomes.items():
                    print(f"--- {name} {side}", *outcome.log, sep="\n")  # noqa: T201
        shown = Table(*header, title=f"on the {world} API server")
        for row in table[1:]:
            shown.add_row(*row)
        Console(width=200).print(shown)
        print(markdown(table))  # noqa: T201


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    every = sorted(path.parent.name for path in PROGRAMS.glob("*/requirements.txt"))
    parser.add_argument("names", nargs="*", help=f"of {', '.join(every)}; default: all")
    parser.add_argument("--server", choices=[*WORLDS, "both"], default="both")
    parser.add_argument("--verbose", action="store_true", help="print what the programs said")
    given = parser.parse_args()
    chosen = list(WORLDS) if given.server == "both" else [given.server]
    asyncio.run(main(given.names or every, chosen, given.verbose))
