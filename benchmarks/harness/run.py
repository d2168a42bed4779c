"""A run: rounds of every scenario with its clients in turn, so that drift of the machine affects all."""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.building import BUILDS, build
from benchmarks.pods import write_templates

from .cell import SERVERS_CORE, Measured, run_cell
from .matrix import Client, Matrix, Scenario, Tier
from .page_reporting import keep_memory
from .processes import ReplayServer
from .results import Machine, Results

ROUNDS: dict[Tier, int] = {"quick": 1, "bench": 5, "full": 7}
TEMPLATES: dict[Tier, int] = {"quick": 2_000, "bench": 10_000, "full": 10_000}
SEED = 20_261_101
SERVER = "replay-server"


class MissingServerError(Exception):
    """The replay server cannot be built."""


class Plan(NamedTuple):
    """One cell to measure."""

    scenario: Scenario
    client: Client
    round: int


def plan(matrix: Matrix, tier: Tier, rounds: int, only: str = "") -> Iterator[Plan]:
    """Yield the cells of a run: the rounds of each scenario, with its clients in turn, each round from the next client.

    Args:
        only: A regular expression that is searched in ``scenario/client``.
    """
    scenarios = [scenario for scenario in matrix.scenarios if tier in scenario.tiers]
    for _, members in groupby(scenarios, key=lambda scenario: scenario.group or scenario.name):
        group = [(scenario, _clients(matrix, scenario, only)) for scenario in members]
        for number in range(rounds):
            for scenario, clients in group:
                if number < (scenario.rounds or rounds) and clients:
                    first = number % len(clients)
                    for client in clients[first:] + clients[:first]:
                        yield Plan(scenario, client, number)


def _clients(matrix: Matrix, scenario: Scenario, only: str) -> list[Client]:
    return [
        client
        for client in map(matrix.client, scenario.clients)
        if re.search(only, f"{scenario.name}/{client.name}") and (scenario.slow_objects or not client.slow)
    ]


def machine(tier: Tier, note: str) -> Machine:
    """Describe this machine."""
    model = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return Machine(
        tier=tier,
        began=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        processor=model[1] if model else platform.machine(),
        cores=len(os.sched_getaffinity(0)),
        memory_gib=round(memory, 1),
        kernel=platform.release(),
        python=platform.python_version(),
        note=note,
    )


@contextmanager
def results_at(path: Path, options: argparse.Namespace, console: Console) -> Iterator[Results]:
    """Yield the results of a new, resumed or (``--report``) finished run. Page reporting is off while it measures."""
    reads_only = options.report or options.tier == "quick"
    with nullcontext("") if reads_only else keep_memory(console) as note:
        yield (
            Results.load(path)
            if is_resumed(path, options)
            else Results.begin(path, machine(options.tier, note))
        )


def is_resumed(path: Path, options: argparse.Namespace) -> bool:
    """Return whether an earlier run exists and was asked for."""
    return (options.resume or options.report) and path.exists()


def templates(tier: Tier) -> Path:
    """Return the file of pods that the server loads; it is made once."""
    path = BUILDS / f"pods-{SEED}-{TEMPLATES[tier]}-{_fingerprint()}.jsonl"
    if not path.exists():
        write_templates(path, TEMPLATES[tier], seed=SEED)
    return path


def _fingerprint() -> str:
    return hashlib.sha256((Path(__file__).parents[1] / "pods.py").read_bytes()).hexdigest()[:8]


def run(matrix: Matrix, tier: Tier, rounds: int, results: Results, console: Console, only: str = "") -> None:
    """Measure the cells that the results lack.

    Raises:
        MissingServerError: The server cannot be built.
    """
    wanted = {client.run for client in matrix.clients if client.program}
    built = build([SERVER, *sorted(wanted)], report=lambda line: console.print(line, markup=False))
    if SERVER in built.missing:
        raise MissingServerError(built.missing[SERVER])
    cells = list(plan(matrix, tier, rounds, only))
    todo = [cell for cell in cells if not results.has(cell.scenario.name, cell.client.name, cell.round)]
    progress = progress_on(console)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        stack.enter_context(progress)
        # A concurrent build of other sources removes these.
        programs = {program: Path(shutil.copy2(path, folder)) for program, path in built.programs.items()}
        server = stack.enter_context(
            ReplayServer(programs[SERVER], templates(tier), folder / "ca.pem", [SERVERS_CORE])
        )
        task = progress.add_task("", total=len(cells), completed=len(cells) - len(todo))
        for scenario, client, number in todo:
            what = f"{scenario.name} · {client.name} · round {number + 1}"
            progress.update(task, description=what, refresh=True)
            began = time.monotonic()
            if client.program and (reason := built.missing.get(client.run)):
                measured = Measured(scenario.name, client.name, number, "missing", detail=reason)
            else:
                measured = run_cell(server, client, scenario, number, programs)
            results.add(measured)
            _print(console, measured, time.monotonic() - began)
            progress.advance(task)


def progress_on(console: Console) -> Progress:
    """Return a progress bar of the finished cells. It is not redrawn meanwhile, because that would take CPU time
    from the measured client."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        auto_refresh=False,
    )


def _print(console: Console, measured: Measured, seconds: float) -> None:
    shown = {
        name: value for name, value in measured.values.items() if name.endswith(("cpu_us", "p99", "bytes"))
    }
    figures = "  ".join(f"{name} {value:,.1f}" for name, value in shown.items())
    note = "" if measured.status == "ok" else f" {measured.status}: {measured.detail}"
    line = f"{measured.scenario:<16} {measured.client:<24} {seconds:5.1f} s  {figures}{note}"
    console.print(line, markup=False, highlight=False, soft_wrap=True)
