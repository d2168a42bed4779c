"""Tables for people and for the docs."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table


def show(title: str, table: list[list[str]]) -> None:
    """Print a table for people, and once more as Markdown for the docs; its first row has the headings."""
    shown = Table(*table[0], title=title)
    for row in table[1:]:
        shown.add_row(*row)
    Console(width=200).print(shown)
    lines = ["| " + " | ".join(row) + " |" for row in table]
    lines.insert(1, "| --- " * len(table[0]) + "|")
    print(*lines, sep="\n")  # noqa: T201
