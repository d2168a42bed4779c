"""What can happen to an object, as the queue records it (client-go ``tools/cache/delta_fifo.go``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

import msgspec

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


DELETED = DeltaType.DELETED
"""Before Python 3.12 an enum's member is looked up slowly; this one is asked for at every event."""


class Delta(msgspec.Struct, frozen=True, gc=False):
    """One change: what happened, and the object's state after it (before it, for a deletion).

    Unpacks as ``delta_type, obj = delta``.
    """

    type: DeltaType
    object: Any

    def __iter__(self) -> Iterator[Any]:
        return iter((self.type, self.object))


@dataclass(frozen=True)  # slots and type arguments do not go together before Python 3.12
class DeletedFinalStateUnknown(Generic[T]):
    """A deletion that was noticed by a list, its watch event having been missed.

    Args:
        key: The key of the deleted object.
        obj: The last state that was known here: it may be stale, and is None where none was known.
    """

    key: str
    obj: T | None
