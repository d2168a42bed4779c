"""The report of ``aioinformer bench``: JSON for programs, a table and a histogram for people."""

from __future__ import annotations

from collections import Counter
from math import log2

import msgspec
from rich.table import Table

from .output import Screen, write

WIDTH = 50


class Report(msgspec.Struct, frozen=True, rename="camel"):
    """The measured latencies.

    Attributes:
        loop: The informer's event loop.
        encoding: "json" or "protobuf".
        embedded: Whether the server was embedded. Latencies then start with the change in the server; otherwise they
            start with the request for it.
        objects: The number of objects.
        rate: The requested changes per second.
        duration_seconds: How long changes were made.
        interrupted: Whether a signal ended the measurement early.
        changes: How many changes arrived.
        changes_per_second: The actual changes per second.
        latency_seconds: Percentiles of each stage, and of their sum as "endToEnd".
        shares: Each stage's share of the time; the sum is 1.
    """

    loop: str
    encoding: str
    embedded: bool
    objects: int
    rate: float
    duration_seconds: float
    interrupted: bool
    changes: int
    changes_per_second: float
    latency_seconds: dict[str, dict[str, float]]
    shares: dict[str, float]


def print_json(report: Report) -> None:
    """Print the report as one line of JSON."""
    write(msgspec.json.encode(report).decode() + "\n")


def print_table(report: Report, nanoseconds: list[int]) -> None:
    """Print percentiles, each stage's share, and a histogram of the latencies."""
    screen = Screen()
    if report.interrupted:
        screen.print(f"interrupted after {report.duration_seconds:.1f} s", highlight=False)
    is_slower = report.changes_per_second < 0.95 * report.rate
    asked = f" of the {report.rate:,.0f} requested" if is_slower else ""
    since = "the change at the server" if report.embedded else "the request for the change"
    screen.print(
        f"{report.changes:,} changes of {report.objects:,} objects, {report.changes_per_second:,.0f} per second"
        f"{asked}, {report.loop}, {report.encoding}; from {since} to the end of the handler",
        highlight=False,
    )
    screen.print(_stages(report))
    for line in histogram(nanoseconds):
        screen.print(line, highlight=False)


def _stages(report: Report) -> Table:
    end_to_end = report.latency_seconds["endToEnd"]
    table = Table("stage", *end_to_end, "share", title="microseconds", title_justify="left")
    for column in table.columns[1:]:
        column.justify = "right"
    for stage, share in report.shares.items():
        table.add_row(stage, *_microseconds(report.latency_seconds[stage]), f"{share:.0%}")
    table.add_section()
    table.add_row("end to end", *_microseconds(end_to_end), "100%")
    return table


def _microseconds(percentiles: dict[str, float]) -> list[str]:
    return [f"{seconds * 1e6:,.0f}" for seconds in percentiles.values()]


def histogram(nanoseconds: list[int]) -> list[str]:
    """Return lines of text, each for latencies from a value up to 1.4 times that value."""
    counts = Counter(int(2 * log2(max(1, nanosecond / 1000))) for nanosecond in nanoseconds)
    most = max(counts.values())
    lines = []
    for bucket in range(min(counts), max(counts) + 1):
        bar = "█" * round(WIDTH * counts[bucket] / most) or ("▏" if counts[bucket] else "")
        lines.append(f"{2 ** (bucket / 2):>12,.0f} µs  {bar} {counts[bucket] or ''}".rstrip())
    return lines
