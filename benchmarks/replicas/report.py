"""The page of a run: goals, a table with a column for each number of replicas, and plots."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from ..building import FOLDER
from ..harness.goals import Goal, Where, judge
from ..harness.plots import Plot, draw
from ..harness.report import goals_table
from ..harness.results import Cell, Results, summarize
from .measuring import MORE_REPLICAS, SCENARIO, client_of
from .replica import LEASE_DURATION

PAGE = FOLDER.parent / "docs" / "benchmarks-replicas.md"
BEGIN, END = "<!-- the last run -->\n", "<!-- end of the last run -->\n"
MOST_OF_SHARE = 1.15
LATE = 2.0
"""Seconds after the end of a Lease in which a killed replica's objects must have been reconciled."""


PACED = "changes.cpu_us.times_n"


class Row(NamedTuple):
    """A row of the table."""

    heading: str
    figure: str
    decimals: int = 1


SCALED = {
    "memory.share_mb": "memory of the share",
    "sync.cpu_s": "CPU to sync",
    "full.cpu_us": "CPU of changes, as fast as possible",
    "changes.cpu_us": "CPU of changes, 1,000 a second",
}
ROWS = (
    Row("idle process before it reads, MiB", "memory.idle_mb", 0),
    Row("memory of the share, above that, MiB", "memory.share_mb", 1),
    Row("memory in all, MiB", "memory.total_mb", 0),
    Row("peak while it syncs, above that, MiB", "memory.peak_mb", 1),
    Row("CPU to sync, s", "sync.cpu_s", 2),
    Row("read to sync, MiB", "sync.sent_mb", 1),
    Row("all objects reconciled after, s", "sync.s", 1),
    Row("reconciles per object until then", "sync.reconciles", 2),
    Row("CPU while nothing changes, ms/s", "quiet.cpu_ms", 1),
    Row("read while nothing changes, KiB/s", "quiet.sent_kb", 1),
    Row("1,000 changes/s: CPU, ms/s", "changes.cpu_ms", 0),
    Row("1,000 changes/s: CPU for each change of all, µs", "changes.cpu_us", 1),
    Row("1,000 changes/s: read in all, MiB", "changes.sent_mb", 1),
    Row("all objects change: CPU for each change of all, µs", "full.cpu_us", 2),
    Row("all objects change: s", "full.s", 1),
    Row("killed: its objects reconciled after, s", "takeover.s", 1),
    Row("killed: other reconciles, per object", "takeover.again", 2),
    Row("rolling update, s", "rolling.s", 0),
    Row("rolling update: longest stop of a replica, s", "rolling.stop_s", 1),
    Row("rolling update: longest time of a slot without owner, s", "rolling.free_s", 1),
    Row("rolling update: reconciles per object", "rolling.reconciles", 2),
)
PLOTS = (
    Plot("memory", "Memory of a replica, above an idle process", SCENARIO, "memory.share_mb.max", "MiB"),
    Plot("sync", "CPU of a replica to sync", SCENARIO, "sync.cpu_s.max", "s"),
    Plot(
        "changes", "CPU of a replica, 1,000 changes a second over all", SCENARIO, "changes.cpu_ms.max", "ms/s"
    ),
    Plot(
        "takeover",
        "From the kill of a replica until others have reconciled its objects",
        SCENARIO,
        "takeover.s",
        "s",
    ),
)


def goals_of(results: Results) -> list[Goal]:
    """Return the goals for the numbers of replicas that were measured."""
    clients = {cell.client for cell in results.cells}
    counts = [count for count in MORE_REPLICAS if client_of(count) in clients]
    goals = []
    for figure, what in SCALED.items():
        for count in counts:
            ours, one = (Where(SCENARIO, client_of(n), f"{figure}.times_n") for n in (count, 1))
            goals.append(
                Goal(f"{what}, {client_of(count)}", ours, theirs=one, at_most=MOST_OF_SHARE, unit="× 1/n")
            )
    for count in counts:
        ours, alone = (
            Where(SCENARIO, client_of(count), PACED),
            Where(SCENARIO, client_of(1), f"alone_{count}.cpu_us"),
        )
        what = f"the same, next to one replica with 1,000/{count} changes a second"
        goals.append(Goal(what, ours, theirs=alone, at_most=MOST_OF_SHARE))
    for count in counts:
        ours = Where(SCENARIO, client_of(count), "takeover.s")
        limit = LEASE_DURATION + LATE
        goals.append(Goal(f"take-over, {client_of(count)}", ours, compare="alone", at_most=limit, unit="s"))
    return goals


def render(results: Results) -> str:
    """Return the goals and the table as Markdown."""
    ran, summary = results.machine, summarize(results)
    outcomes = [judge(goal, summary, results) for goal in goals_of(results)]
    heading = ["of each replica: median (maximum)", *(cell.client for cell in summary.cells)]
    rows = [heading, ["---", *("---:" for _ in summary.cells)]]
    rows += [[row.heading, *(_show(cell, row) for cell in summary.cells)] for row in ROWS]
    return "\n\n".join(
        [
            f"{ran.began}: {ran.cores} cores of {ran.processor}, Python {ran.python}. {ran.note}",
            goals_table(outcomes),
            "\n".join("| " + " | ".join(row) + " |" for row in rows),
            *(f"{cell.client}: {cell.status}, {cell.detail}" for cell in summary.cells if cell.detail),
        ]
    )


def _show(cell: Cell, row: Row) -> str:
    figure, most = cell.figures.get(row.figure), cell.figures.get(f"{row.figure}.max")
    if figure is None:
        return ""
    text = f"{figure.median:,.{row.decimals}f}"
    largest = text if most is None else f"{most.median:,.{row.decimals}f}"
    return text if largest == text else f"{text} ({largest})"


def publish(results: Results) -> None:
    """Write the report between the marks of the page, its plots, and the figures for docs/capacity.md."""
    summary, folder = summarize(results), PAGE.parent / PAGE.stem
    drawn = draw(summary, folder, PLOTS)
    (folder / "results.json").write_bytes(msgspec.json.format(msgspec.json.encode(summary)) + b"\n")
    plots = "\n".join(f"![{title}]({PAGE.stem}/{name})\n" for title, name in drawn.items())
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{render(results)}\n\n{plots}\n{END}{rest.partition(END)[2]}")
