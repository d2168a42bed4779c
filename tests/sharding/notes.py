"""What replicas write down about their reconciles, and what that shows: overlaps, and seconds until a take-over."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import NamedTuple


class Note(NamedTuple):
    """One reconcile of one replica. Times are seconds of the machine's monotonic clock."""

    key: str
    data: str
    begin: float
    end: float
    replica: int


class _File:
    """The notes of one replica, as far as they were read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = 0
        self.begun: dict[str, tuple[str, float]] = {}
        self.notes: list[Note] = []

    def read(self, replica: int) -> None:
        with open(self.path, "rb") as file:
            file.seek(self.size)
            text = file.read()
        text = text[: text.rfind(b"\n") + 1]
        self.size += len(text)
        for line in text.decode().splitlines():
            what, key, data, at = line.split()
            if what == "begin":
                self.begun[key] = data, float(at)
            else:
                data, begin = self.begun.pop(key)
                self.notes.append(Note(key, data, begin, float(at), replica))


class Notebook:
    """The notes of all replicas: a file each, named by its number."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[int, _File] = {}

    def has_begun(self, replica: int) -> bool:
        """Return whether a replica has begun a reconcile."""
        path = self._folder / f"{replica}.log"
        return path.exists() and path.stat().st_size > 0

    def read(self, killed_at: Mapping[int, float]) -> list[Note]:
        """Return all notes, the earliest first. A reconcile of a killed replica lasts until it was killed."""
        notes = []
        for path in self._folder.glob("*.log"):
            number = int(path.stem)
            file = self._files.setdefault(number, _File(path))
            file.read(number)
            end = killed_at.get(number, monotonic())
            notes += file.notes
            notes += [Note(key, data, begin, end, number) for key, (data, begin) in file.begun.items()]
        return sorted(notes, key=lambda note: note.begin)


def overlaps_of(notes: list[Note]) -> list[tuple[Note, Note]]:
    """Return the pairs of reconciles of one object by two replicas at once."""
    last: dict[str, Note] = {}
    overlaps = []
    for note in notes:
        before = last.get(note.key)
        if before is not None and before.replica != note.replica and note.begin < before.end:
            overlaps.append((before, note))
        if before is None or note.end > before.end:
            last[note.key] = note
    return overlaps


class Takeover(NamedTuple):
    """How long the objects of a killed replica waited for another one.

    Attributes:
        seconds: The most seconds from the kill until an object was reconciled again. Others may fail meanwhile, too.
        has_survivor: Whether a replica that had worked before the kill worked until the end of the wait. One that has
            just joined waits a whole lease duration itself.
    """

    seconds: float
    has_survivor: bool


def takeovers_of(
    notes: list[Note], killed_at: Mapping[int, float], stopped_at: Mapping[int, float]
) -> list[Takeover]:
    """Return the take-over after each kill of a replica that had objects."""
    works_from: dict[int, float] = {}
    for note in notes:
        works_from.setdefault(note.replica, note.begin)
    ended_at = {**stopped_at, **killed_at}
    takeovers = []
    for killed, at in sorted(killed_at.items()):
        before = {note.key: note.replica for note in notes if note.begin <= at}
        keys = {key for key, replica in before.items() if replica == killed}
        first: dict[str, float] = {}
        for note in notes:
            if note.begin > at and note.key in keys:
                first.setdefault(note.key, note.begin)
        if first:
            last = max(first.values())
            survivors = [
                replica
                for replica, begin in works_from.items()
                if begin < at and ended_at.get(replica, last) >= last
            ]
            takeovers.append(Takeover(last - at, bool(survivors)))
    return takeovers
