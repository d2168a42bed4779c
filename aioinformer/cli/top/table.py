"""A table of ``aioinformer top``, and how its cells are written."""

from __future__ import annotations

from itertools import zip_longest
from typing import NamedTuple

from ..output import printable

LONGEST_CELL = 100
"""Characters of a cell; errors are longer."""


class Table(NamedTuple):
    """A table of the screen.

    Attributes:
        title: Its title.
        columns: Its columns.
        rows: Its rows, as texts.
    """

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]


def show_seconds(seconds: float | None) -> str:
    """Return a duration for people."""
    if seconds is None:
        return "-"
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def text_of(tables: list[Table]) -> str:
    """Return tables as plain text, without those that are empty."""
    return "\n\n".join(
        f"{table.title}\n{_aligned([table.columns, *table.rows])}" for table in tables if table.rows
    )


def _aligned(rows: list[tuple[str, ...]]) -> str:
    widths = [max(map(len, map(shorten, column))) for column in zip_longest(*rows, fillvalue="")]
    return "\n".join(
        "  ".join(shorten(cell).ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def shorten(cell: str) -> str:
    """Return a text for a cell: one line, without control characters, of at most LONGEST_CELL characters."""
    line = printable(" ".join(cell.split()))
    return line if len(line) <= LONGEST_CELL else f"{line[:LONGEST_CELL]}…"
