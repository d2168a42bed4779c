"""Numbers, and how Prometheus has them."""

from __future__ import annotations

__all__ = ["Histogram", "Sample", "exposition", "labelled"]

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

SECONDS = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0)
"""controller-runtime's bounds for durations in a queue and of work."""


class Sample(NamedTuple):
    """One number, as Prometheus has it.

    Attributes:
        name: ``"workqueue_depth"``.
        kind: ``"gauge"``, ``"counter"`` or ``"histogram"``.
        labels: Whose it is.
        value: The number.
        suffix: For histograms, ``"_bucket"``, ``"_sum"`` or ``"_count"``.
    """

    name: str
    kind: str
    labels: dict[str, str]
    value: float
    suffix: str = ""


class Histogram:
    """How often values were how large.

    Args:
        bounds: Upper bounds, ascending; larger values count too.
    """

    __slots__ = ("_bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float] = SECONDS) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """How many values there were."""
        return sum(self.counts)

    def samples(self, name: str, labels: dict[str, str]) -> Iterator[Sample]:
        """The numbers of a histogram of this name."""
        total = 0
        for bound, count in zip((*self._bounds, "+Inf"), self.counts, strict=True):
            total += count
            yield Sample(name, "histogram", {**labels, "le": str(bound)}, total, "_bucket")
        yield Sample(name, "histogram", labels, self.sum, "_sum")
        yield Sample(name, "histogram", labels, total, "_count")


def labelled(samples: Iterable[Sample], **labels: str) -> Iterator[Sample]:
    """Numbers with more labels in front of theirs, such as ``cluster="east"``."""
    for sample in samples:
        yield sample._replace(labels={**labels, **sample.labels})


def exposition(samples: Iterable[Sample]) -> str:
    """Numbers in Prometheus' text format."""
    by_name: dict[str, list[Sample]] = {}
    for sample in samples:
        by_name.setdefault(sample.name, []).append(sample)
    lines = []
    for name, its in by_name.items():
        lines.append(f"# TYPE {name} {its[0].kind}")
        for sample in its:
            labels = ",".join(f'{label}="{_escaped(value)}"' for label, value in sample.labels.items())
            lines.append(f"{name}{sample.suffix}{f'{{{labels}}}' if labels else ''} {sample.value:.17g}")
    return "\n".join(lines) + "\n"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
