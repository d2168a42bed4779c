"""The results of a run: one line per cell, read again to resume, and summarised as medians."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median

import msgspec

from .cell import Measured

Key = tuple[str, str]
"""A scenario and a client."""


class Machine(msgspec.Struct):
    """The machine of a run.

    Attributes:
        note: A further remark for the report.
    """

    tier: str
    began: str
    processor: str
    cores: int
    memory_gib: float
    kernel: str
    python: str
    note: str = ""


class Results:
    """The cells of a run in a file.

    Args:
        path: The first line is JSON of the machine, each further line that of a cell.
    """

    def __init__(self, path: Path, machine: Machine) -> None:
        self.path = path
        self.machine = machine
        self.cells: list[Measured] = []

    @classmethod
    def begin(cls, path: Path, machine: Machine) -> Results:
        """Start with an empty file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        results = cls(path, machine)
        path.write_bytes(msgspec.json.encode(machine) + b"\n")
        return results

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read the file; ignore a truncated last line."""
        complete = path.read_bytes().rpartition(b"\n")[0]
        path.write_bytes(complete + b"\n")
        first, *lines = complete.splitlines()
        results = cls(path, msgspec.json.decode(first, type=Machine))
        decode = msgspec.json.Decoder(Measured).decode
        results.cells = [decode(line) for line in lines]
        return results

    def add(self, measured: Measured) -> None:
        self.cells.append(measured)
        with self.path.open("ab") as file:
            file.write(msgspec.json.encode(measured) + b"\n")

    def has(self, scenario: str, client: str, number: int) -> bool:
        """Return whether a cell is complete."""
        return any(
            cell.scenario == scenario and cell.client == client and cell.round == number
            for cell in self.cells
        )

    def of(self, scenario: str, client: str) -> list[Measured]:
        """Return the rounds of a cell."""
        return [cell for cell in self.cells if (cell.scenario, cell.client) == (scenario, client)]

    def __iter__(self) -> Iterator[Key]:
        """Iterate over the cells, each once, in the order of their first rounds."""
        return iter(dict.fromkeys((cell.scenario, cell.client) for cell in self.cells))


class Figure(msgspec.Struct):
    """A figure over the rounds."""

    median: float
    low: float
    high: float
    rounds: int


def figures_of(rounds: list[Measured]) -> dict[str, Figure]:
    """Return the figures of a cell by name, over the rounds that have them."""
    names = dict.fromkeys(name for measured in rounds for name in measured.values)
    return {
        name: _figure([measured.values[name] for measured in rounds if name in measured.values])
        for name in names
    }


def _figure(values: list[float]) -> Figure:
    return Figure(median(values), min(values), max(values), len(values))


class Cell(msgspec.Struct):
    """A cell over its rounds, as in the JSON file of a run."""

    scenario: str
    client: str
    version: str
    status: str
    detail: str
    figures: dict[str, Figure]


class Summary(msgspec.Struct):
    """A run."""

    machine: Machine
    cells: list[Cell]

    def cell(self, scenario: str, client: str) -> Cell | None:
        cells = (cell for cell in self.cells if (cell.scenario, cell.client) == (scenario, client))
        return next(cells, None)

    def median(self, scenario: str, client: str, figure: str) -> float | None:
        """Return the median of a figure, or None if it was not measured."""
        cell = self.cell(scenario, client)
        value = None if cell is None else cell.figures.get(figure)
        return None if value is None else value.median


_WORST = ("missing", "failed", "unsupported", "saturated", "ok")


def summarize(results: Results) -> Summary:
    """Return the medians and spread of every cell; its status is the worst of its rounds."""
    cells = []
    for scenario, client in results:
        rounds = results.of(scenario, client)
        worst = min(rounds, key=lambda measured: _WORST.index(measured.status))
        version = next((measured.version for measured in rounds if measured.version), "")
        cells.append(Cell(scenario, client, version, worst.status, worst.detail, figures_of(rounds)))
    return Summary(results.machine, cells)
