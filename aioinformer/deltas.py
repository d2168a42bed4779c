"""What can happen, as a queue records it (client-go ``tools/cache/delta_fifo.go``, ``the_real_fifo.go``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any, Generic, TypeVar

import msgspec

from .errors import ConfigError

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
    REPLACED_ALL = "ReplacedAll"
    """The whole collection as it was listed, in one: its object is a ReplacedAllInfo."""
    SYNC_ALL = "SyncAll"
    """Nothing changed in the whole collection: its object is a SyncAllInfo."""
    BOOKMARK = "Bookmark"
    """Up to this version nothing else has happened: its object is a BookmarkInfo."""


ADDED = DeltaType.ADDED
UPDATED = DeltaType.UPDATED
DELETED = DeltaType.DELETED
REPLACED_ALL = DeltaType.REPLACED_ALL
SYNC_ALL = DeltaType.SYNC_ALL
BOOKMARK = DeltaType.BOOKMARK
"""Before Python 3.12 an enum's member is looked up slowly; these are asked for at every event."""


class Delta(msgspec.Struct, frozen=True, gc=False):
    """One change: what happened, and the object's state after it (before it, for a deletion).

    What is about the whole collection (ReplacedAll, SyncAll, Bookmark) has an info instead of an object.

    Unpacks as ``delta_type, obj = delta``.
    """

    # A plain string does as well, so types are compared by value.
    type: DeltaType
    object: Any

    def __iter__(self) -> Iterator[Any]:
        return iter((self.type, self.object))


def type_of_delta(delta: Delta) -> DeltaType:
    """A delta's type, also where it is a plain string.

    Raises:
        ConfigError: It is none.
    """
    try:
        return DeltaType(delta.type)
    except ValueError as error:
        raise ConfigError(
            f"a queue takes Deltas of the types {', '.join(DeltaType)}, not {type(delta).__name__} of {delta.type!r}"
        ) from error


class ReplacedAllInfo(msgspec.Struct, frozen=True):
    """A whole collection.

    Args:
        resource_version: The list's.
        objects: The objects in the list's order, transformed. An ExplicitKey among them stands for an object that
            is there and of which no more is known.
    """

    resource_version: str
    objects: Sequence[Any]

    def __repr__(self) -> str:
        return f"ReplacedAllInfo(resource_version={self.resource_version!r}, {len(self.objects)} objects)"


class SyncAllInfo(msgspec.Struct, frozen=True):
    """A resync of everything."""


class BookmarkInfo(msgspec.Struct, frozen=True):
    """A bookmark of the server's.

    Args:
        resource_version: Everything up to it was sent.
    """

    resource_version: str


class DeletedFinalStateUnknown(msgspec.Struct, Generic[T], frozen=True, gc=False):
    """A deletion that was noticed by a list, its watch event having been missed.

    Args:
        key: The key of the deleted object.
        obj: The last state that was known here: it may be stale, and is None where none was known.
    """

    key: str
    obj: T | None

    @property
    def name(self) -> str:
        """The deleted object's name."""
        return self.key.rpartition("/")[2]

    @property
    def namespace(self) -> str:
        """``""`` for cluster-scoped objects."""
        return self.key.rpartition("/")[0]
