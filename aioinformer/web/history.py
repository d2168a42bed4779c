"""History: the newest changes of a collection, by position, and its objects. Plain rules, without waiting."""

from __future__ import annotations

import re
from collections import deque
from secrets import token_hex
from typing import Any
from weakref import ref

import msgspec

from ..fifo.sliced_dict import SlicedDict

MOST_SNAPSHOTS = 4
"""Snapshots of different moments that subscribers may be reading; the next one replaces the oldest."""

_NUMBER = re.compile(r"[0-9]{1,18}")

UNKNOWN = -1
"""The position of a subscriber that needs a snapshot."""


class Change(msgspec.Struct, gc=False):
    """A change of one object.

    Attributes:
        key: The object's key.
        old: The state before; None if it was added.
        new: The state after; None if it was deleted.
        before: The position of the key's previous change; 0 if that is forgotten, or there was none.
        after: The position of the key's next change; 0 if there is none.
    """

    key: str
    old: Any
    new: Any
    before: int
    after: int = 0


class Snapshot:
    """The objects at a position. Subscribers that begin at about the same time share it.

    Attributes:
        position: The changes up to here are in it.
        keys: The keys of the objects.
        objects: The objects, in the same order.
        is_dropped: Whether newer snapshots took its place; then it is empty.
    """

    __slots__ = ("__weakref__", "is_dropped", "keys", "objects", "position")

    def __init__(self, position: int, objects: SlicedDict[Any]) -> None:
        self.position = position
        self.keys, self.objects = objects.columns()
        self.is_dropped = False

    def drop(self) -> None:
        """Release the objects."""
        self.keys = self.objects = ()
        self.is_dropped = True


class History:
    """The newest changes and the objects of a collection.

    A position is the number of changes so far. Memory is bounded: the changes, one reference for each object, and those
    of the snapshots that are being read.

    Args:
        size: How many changes it keeps.

    Attributes:
        epoch: Names this history in ids: positions of another process mean something else.
        last: The position of the newest change.
        resets: How many snapshots subscribers have begun.
        is_recording: Whether changes are kept. Before that, they only make up the first snapshot.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.epoch = token_hex(8)
        self.last = 0
        self.resets = 0
        self.is_recording = False
        self._changes: list[Change | None] = [None] * size
        self._latest: dict[str, int] = {}
        self._objects: SlicedDict[Any] = SlicedDict()
        self._shared: Snapshot | None = None
        self._snapshots: deque[ref[Snapshot]] = deque()

    def __getitem__(self, position: int) -> Change:
        change = self._changes[position % self.size]
        assert change is not None
        return change

    @property
    def changes(self) -> int:
        """How many changes it has."""
        return min(self.last, self.size)

    @property
    def objects(self) -> int:
        """How many objects there are."""
        return len(self._objects)

    @property
    def snapshots(self) -> int:
        """How many snapshots are in memory."""
        return sum(snapshot() is not None for snapshot in self._snapshots)

    def goes_back_to(self, position: int) -> bool:
        """Return whether it has every change after a position."""
        return max(0, self.last - self.size) <= position <= self.last

    def put(self, key: str, new: Any) -> None:
        """Record that an object was added or changed."""
        old = self._objects.get(key)
        self._objects[key] = new
        if self.is_recording:
            self._record(key, old, new)

    def remove(self, key: str) -> None:
        """Record that an object is gone. Ignores unknown keys."""
        old = self._objects.pop(key, None)
        if old is not None and self.is_recording:
            self._record(key, old, None)

    def id_of(self, position: int) -> str:
        """Return the id that names a position."""
        return f"{self.epoch}-{position}"

    def position_of(self, identifier: str) -> int:
        """Return the position that an id names; UNKNOWN if it is too old, of another history, or no id at all."""
        epoch, _, number = identifier.partition("-")
        if epoch != self.epoch or not _NUMBER.fullmatch(number):
            return UNKNOWN
        position = int(number)
        return position if self.goes_back_to(position) else UNKNOWN

    def snapshot(self) -> Snapshot:
        """Return the objects, now or at a recent position from which the changes are known."""
        shared = self._shared
        if shared is None or shared.position < self.last - self.size // 2:
            shared = self._shared = Snapshot(self.last, self._objects)
            self._snapshots = deque(known for known in self._snapshots if known() is not None)
            self._snapshots.append(ref(shared))
            if len(self._snapshots) > MOST_SNAPSHOTS and (oldest := self._snapshots.popleft()()) is not None:
                oldest.drop()
        return shared

    def _record(self, key: str, old: Any, new: Any) -> None:
        self.last = position = self.last + 1
        slot = position % self.size
        forgotten = self._changes[slot]
        if forgotten is not None and self._latest.get(forgotten.key) == position - self.size:
            del self._latest[forgotten.key]
        if before := self._latest.get(key, 0):
            self[before].after = position
        self._latest[key] = position
        self._changes[slot] = Change(key, old, new, before)
        if self._shared is not None and not self.goes_back_to(self._shared.position):
            self._shared = None  # without readers, nothing refers to it now
