"""The report of a soak: a table, a plot, and which gauges grow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, median

GAUGES = {
    "rss": ("MB", 0.02, 0.5),
    "tasks": ("", 0.02, 2.0),
    "descriptors": ("", 0.02, 2.0),
    "objects": ("", 0.02, 500.0),
    "backlog": ("", 0.02, 200.0),
}
"""Each gauge's unit, and its allowed rise over the second half of a run: a fraction of its mean, and a minimum for
its noise."""


@dataclass(frozen=True, slots=True)
class Sample:
    """The process at one moment.

    Attributes:
        seconds: Seconds since the start.
        rss: Resident memory in MB.
        tasks: Tasks of the event loop.
        descriptors: Open file descriptors.
        objects: Objects that the garbage collector tracks, after a collection.
        backlog: Pending notifications of handlers, and queued items.
        events: All events received so far.
    """

    seconds: float
    rss: float
    tasks: int
    descriptors: int
    objects: int
    backlog: int
    events: int


@dataclass(frozen=True, slots=True)
class Trend:
    """How a gauge moved over the second half of a run.

    Attributes:
        name: The gauge's name.
        mean: Its mean.
        rise: The rise of its trend line from the middle to the end.
        allowed: The allowed rise.
    """

    name: str
    mean: float
    rise: float
    allowed: float

    @property
    def is_flat(self) -> bool:
        return self.rise <= self.allowed

    def __str__(self) -> str:
        verdict = "flat" if self.is_flat else "GROWS"
        unit = GAUGES[self.name][0]
        return (
            f"{self.name:<12} mean {self.mean:>12,.1f} {unit:<2}  rise {self.rise:>+10,.2f}"
            f"  allowed {self.allowed:>8,.2f}  {verdict}"
        )


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the median slope between any two points (Theil-Sen), which ignores a temporary load of the machine and
    its backlog."""
    slopes = [(y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in combinations(points, 2) if x2 > x1]
    return median(slopes) if slopes else 0.0


def trends(samples: Sequence[Sample]) -> list[Trend]:
    """Return the trend of each gauge over the second half."""
    half = samples[len(samples) // 2 :]
    duration = half[-1].seconds - half[0].seconds
    result = []
    for name, (_, fraction, least) in GAUGES.items():
        values = [(sample.seconds, float(getattr(sample, name))) for sample in half]
        mean = fmean(value for _, value in values)
        result.append(Trend(name, mean, slope(values) * duration, max(fraction * mean, least)))
    return result


def table(samples: Sequence[Sample], rows: int = 15) -> str:
    """Return a table of some samples, evenly spread, including the last."""
    step = max(1, -(-len(samples) // rows))
    chosen = samples[len(samples) - 1 :: -step][::-1]
    lines = [
        f"{'minute':>7} {'RSS MB':>8} {'tasks':>6} {'fds':>5} {'gc objects':>11} {'backlog':>8} {'events':>11}"
    ]
    lines += [
        f"{sample.seconds / 60:>7.1f} {sample.rss:>8.1f} {sample.tasks:>6} {sample.descriptors:>5} "
        f"{sample.objects:>11,} "
        f"{sample.backlog:>8,} {sample.events:>11,}"
        for sample in chosen
    ]
    return "\n".join(lines)


def svg(samples: Sequence[Sample], width: int = 800, height: int = 120) -> str:
    """Return an SVG with a line for each gauge, each in its own frame from zero to its maximum."""
    end = max(samples[-1].seconds, 1.0)
    parts = []
    for row, name in enumerate(GAUGES):
        top = row * (height + 30) + 20
        values = [(sample.seconds, float(getattr(sample, name))) for sample in samples]
        most = max(1.0, *(value for _, value in values))
        line = " ".join(
            f"{x / end * width:.1f},{top + height - value / most * height:.1f}" for x, value in values
        )
        parts.append(
            f'<text x="0" y="{top - 5}">{name}: at most {most:,.1f} {GAUGES[name][0]}</text>'
            f'<rect x="0" y="{top}" width="{width}" height="{height}" fill="none" stroke="#ccc"/>'
            f'<polyline points="{line}" fill="none" stroke="#36c"/>'
        )
    tall = len(GAUGES) * (height + 30) + 20
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {tall}" '
        f'font-family="sans-serif" font-size="12">{"".join(parts)}</svg>\n'
    )
