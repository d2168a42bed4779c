"""Measure replicas that share the work: ``python -m benchmarks.replicas [--quick] [--publish]``."""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from ..building import BUILDS, build
from ..harness.cell import SERVERS_CORE
from ..harness.page_reporting import keep_memory
from ..harness.processes import ReplayServer
from ..harness.results import Results
from ..harness.run import SERVER, machine, templates
from .measuring import MORE_REPLICAS, Load, measure
from .report import publish, render

LOAD, QUICK = Load(100_000, 1000, 15.0), Load(10_000, 1000, 5.0)

MEMORY = 4 * 2**30
"""Bytes that all replicas need at most."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure 1, 2, 4 and 8 replicas that share the work")
    parser.add_argument("--quick", action="store_true", help="10,000 objects, and at most 2 replicas")
    parser.add_argument("--replicas", type=int, nargs="+", help="other numbers of replicas")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--encoding", choices=["protobuf", "json"], default="protobuf")
    parser.add_argument("--report", action="store_true", help="only write the report again")
    parser.add_argument(
        "--publish",
        action="store_true",
        help="also write docs/benchmarks-replicas.md, except for --quick and JSON",
    )
    options = parser.parse_args()
    console = Console()
    path = BUILDS / "runs" / f"replicas-{'quick' if options.quick else 'bench'}-{options.encoding}.jsonl"
    results = Results.load(path) if options.report else measure_all(path, options, console)
    console.print(Markdown(render(results)))
    if options.publish and not options.quick and options.encoding == "protobuf":
        publish(results)


def measure_all(path: Path, options: argparse.Namespace, console: Console) -> Results:
    """Measure each number of replicas, round after round."""
    built = build([SERVER], report=lambda line: console.print(line, markup=False))
    if SERVER in built.missing:
        raise SystemExit(f"the replay server cannot be built: {built.missing[SERVER]}")
    numbers = options.replicas or [1, *(MORE_REPLICAS[:1] if options.quick else MORE_REPLICAS)]
    load = QUICK if options.quick else LOAD
    with (
        keep_memory(console, most=MEMORY) as note,
        tempfile.TemporaryDirectory() as folder,
        ReplayServer(
            built.programs[SERVER], templates("bench"), Path(folder) / "ca.pem", [SERVERS_CORE]
        ) as server,
    ):
        note = f"{load.objects:,} pods as {options.encoding}. Load average before: {os.getloadavg()[0]:.1f}. {note}"
        results = Results.begin(path, machine("quick" if options.quick else "bench", note.strip()))
        for number in range(options.rounds):
            for replicas in numbers:
                measured = measure(
                    server,
                    replicas,
                    options.encoding,
                    load,
                    number,
                    lambda line: console.print(line, markup=False),
                )
                results.add(measured)
                figures = "  ".join(f"{name} {value:,.2f}" for name, value in measured.values.items())
                console.print(
                    f"{measured.client}: {measured.status} {measured.detail} {figures}", markup=False
                )
    return results


if __name__ == "__main__":
    main()
