"""benchmarks/soak.py: it measures, and finds values that grow."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.soak import soak
from benchmarks.soak_report import GAUGES, Sample, slope, svg, table, trends


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="measures by Linux's /proc")
async def test_soak_of_a_few_seconds() -> None:
    result = await soak(3.0, rate=200.0, objects=50, trouble_every=1.0, every=0.2)
    assert not result.wrong
    assert result.guests
    assert result.troubles
    assert len(result.samples) > 5
    last = result.samples[-1]
    assert last.events > 200
    assert last.rss > 10
    assert last.descriptors > 3
    assert [trend.name for trend in result.trends()] == list(GAUGES), "which so short a run cannot judge"


def samples(**growing: float) -> list[Sample]:
    """Return half an hour of noisy but flat samples, with gauges that grow by these amounts."""
    flat = {"rss": 100.0, "tasks": 50.0, "descriptors": 20.0, "objects": 80_000.0, "backlog": 1000.0}
    made = []
    for number in range(180):
        noise = (number * 7919 % 13 - 6) / 600
        values = {name: value * (1 + noise) for name, value in flat.items()}
        for name, most in growing.items():
            values[name] += most * number / 180
        made.append(
            Sample(
                seconds=number * 10.0,
                rss=values["rss"],
                tasks=round(values["tasks"]),
                descriptors=round(values["descriptors"]),
                objects=round(values["objects"]),
                backlog=round(values["backlog"]),
                events=number * 2000,
            )
        )
    return made


def test_noise_is_flat() -> None:
    assert [trend.is_flat for trend in trends(samples())] == [True] * len(GAUGES)


@pytest.mark.parametrize(
    ("name", "rise"),
    [("rss", 6.0), ("tasks", 8.0), ("descriptors", 8.0), ("objects", 5000.0), ("backlog", 1000.0)],
)
def test_growing_value_is_found(name: str, rise: float) -> None:
    """Growth of RSS by 18 bytes for each of 360,000 events is found."""
    by_name = {trend.name: trend for trend in trends(samples(**{name: rise}))}
    assert [gauge for gauge in GAUGES if not by_name[gauge].is_flat] == [name]
    assert by_name[name].rise == pytest.approx(rise / 2, rel=0.1)
    assert "GROWS" in str(by_name[name])


def test_value_that_grows_in_the_first_half_only_is_flat() -> None:
    run = samples()
    cold = [Sample(sample.seconds, sample.rss / 2, 10, 5, 1000, 0, sample.events) for sample in run[:80]]
    assert all(trend.is_flat for trend in trends(cold + run[80:]))


def test_the_slope() -> None:
    assert slope([(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]) == pytest.approx(2.0)
    assert slope([(1.0, 7.0)]) == 0.0
    spike = [(float(x), 1000.0 if 10 < x < 15 else 5.0) for x in range(50)]
    assert slope(spike) == 0.0


def test_table_and_plot() -> None:
    run = samples()
    lines = table(run, rows=10).splitlines()
    assert len(lines) == 11
    assert lines[-1].split()[0] == f"{run[-1].seconds / 60:.1f}"
    drawn = ElementTree.fromstring(svg(run))
    assert len(drawn.findall("{http://www.w3.org/2000/svg}polyline")) == len(GAUGES)
