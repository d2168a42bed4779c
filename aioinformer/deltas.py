"""What can happen to an object, as the queue records it (client-go ``tools/cache/delta_fifo.go``)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")


class DeltaType(StrEnum):
    """The kind of a change."""

    ADDED = "Added"
    UPDATED = "Updated"
    DELETED = "Deleted"
    REPLACED = "Replaced"
    """Seen in a (re)list: the object may or may not have changed."""
    SYNC = "Sync"
    """Nothing changed: a resync, or a Replace on a queue that does not emit Replaced."""


class Delta(NamedTuple):
    """One change: what happened, and the object's state after it (before it, for a deletion)."""

    type: DeltaType
    object: Any


@dataclass(frozen=True, slots=True)
class DeletedFinalStateUnknown(Generic[T]):
    """A deletion that was noticed by a list, its watch event having been missed.

    Args:
        key: The key of the deleted object.
        obj: The last state that was known here: it may be stale, and is None where none was known.
    """

    key: str
    obj: T | None
