"""Plots of a run, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

from .results import Cell, Summary

mpl.rcParams["svg.hashsalt"] = "benchmarks"  # reproducible files
mpl.rcParams["svg.fonttype"] = "none"

OURS, OTHERS, FLOOR = "#2a78b5", "#9aa5b1", "#d9b44a"


class Plot(NamedTuple):
    """A bar chart of one figure for the clients of a scenario."""

    name: str
    title: str
    scenario: str
    figure: str
    label: str
    factor: float = 1.0


PLOTS = (
    Plot("cpu", "CPU per watch event, a handler that reads metadata", "metadata", "watch.cpu_us", "µs"),
    Plot("throughput", "Events per second on one core", "metadata", "watch.events_s", "events/s"),
    Plot("memory", "Memory per cached pod", "metadata", "sync.bytes", "KiB", 1 / 1024),
    Plot("sync", "CPU of the initial sync, per pod", "metadata", "sync.cpu_us", "µs"),
    Plot("latency-300", "Latency p99 at 300 events/s", "latency", "300.p99", "µs"),
    Plot("latency-2000", "Latency p99 at 2,000 events/s", "latency", "2000.p99", "µs"),
)


def draw(summary: Summary, folder: Path, plots: Sequence[Plot] = PLOTS) -> dict[str, str]:
    """Draw the plots whose figures were measured.

    Returns:
        The names of the files, by title.
    """
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {}
    for plot in plots:
        cells = [
            cell for cell in summary.cells if cell.scenario == plot.scenario and plot.figure in cell.figures
        ]
        if cells:
            path = folder / f"{plot.name}.svg"
            _bars(plot, cells).savefig(path, metadata={"Date": None})
            drawn[plot.title] = path.name
    return drawn


def _bars(plot: Plot, cells: list[Cell]) -> Figure:
    cells = sorted(cells, key=lambda cell: cell.figures[plot.figure].median, reverse=True)
    middle = [cell.figures[plot.figure].median * plot.factor for cell in cells]
    low = [
        value - cell.figures[plot.figure].low * plot.factor for value, cell in zip(middle, cells, strict=True)
    ]
    high = [
        cell.figures[plot.figure].high * plot.factor - value
        for value, cell in zip(middle, cells, strict=True)
    ]
    figure = Figure(figsize=(8, 0.6 + 0.3 * len(cells)), layout="constrained")
    axes: Any = figure.subplots()
    names = [f"{cell.client} (saturated)" if cell.status == "saturated" else cell.client for cell in cells]
    bars = axes.barh(
        names, middle, xerr=[low, high], color=[_color(cell.client) for cell in cells], ecolor="#555555"
    )
    axes.bar_label(
        bars, labels=[f"{value:,.3g}" if value < 1000 else f"{value:,.0f}" for value in middle], padding=4
    )
    if max(middle) > 20 * min(middle):
        axes.set_xscale("log")
        axes.set_xlabel(f"{plot.label}, on a logarithmic scale")
    else:
        axes.set_xlabel(plot.label)
    axes.set_title(plot.title)
    axes.margins(x=0.12)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _color(client: str) -> str:
    if client.startswith("aioinformer"):
        return OURS
    return FLOOR if client.startswith("floor") else OTHERS
