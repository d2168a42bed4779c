"""Deltas: the changes that a queue records (client-go ``tools/cache/delta_fifo.go``, ``the_real_fifo.go``)."""

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
    """The whole collection as it was listed, as one delta: its object is a ReplacedAllInfo."""
    SYNC_ALL = "SyncAll"
    """Nothing changed in the whole collection: its object is a SyncAllInfo."""
    BOOKMARK = "Bookmark"
    """Every change up to a version was delivered: its object is a BookmarkInfo."""


ADDED = DeltaType.ADDED
UPDATED = DeltaType.UPDATED
DELETED = DeltaType.DELETED
REPLACED_ALL = DeltaType.REPLACED_ALL
SYNC_ALL = DeltaType.SYNC_ALL
BOOKMARK = DeltaType.BOOKMARK
"""Names for members that are used for every event: before Python 3.12 the lookup on an enum is slow."""

OF_ONE_OBJECT = frozenset({ADDED, UPDATED, DELETED, DeltaType.REPLACED, DeltaType.SYNC})
"""The types of deltas about one object; the others are about the whole collection."""


class Delta(msgspec.Struct, frozen=True, gc=False):
    """One change: what happened, and the object's state after it (before it, for a deletion).

    A delta about the whole collection (ReplacedAll, SyncAll, Bookmark) has an info object instead.

    Unpacks as ``delta_type, obj = delta``.
    """

    # May be a plain string, so types are compared by value.
    type: DeltaType
    object: Any

    def __iter__(self) -> Iterator[Any]:
        return iter((self.type, self.object))


def type_of_delta(delta: Delta) -> DeltaType:
    """Return a delta's type, also if it is a plain string.

    Raises:
        ConfigError: There is no such type.
    """
    try:
        return DeltaType(delta.type)
    except ValueError as error:
        raise ConfigError(
            f"there are Deltas of the types {', '.join(DeltaType)}, not {type(delta).__name__} of {delta.type!r}"
        ) from error


class ReplacedAllInfo(msgspec.Struct, frozen=True):
    """The content of a ReplacedAll: a whole collection.

    Args:
        resource_version: The version of the list.
        objects: The objects in the list's order, transformed. An ExplicitKey stands for an object that exists with
            unknown content.
    """

    resource_version: str
    objects: Sequence[Any]

    def __repr__(self) -> str:
        return f"ReplacedAllInfo(resource_version={self.resource_version!r}, {len(self.objects)} objects)"


class SyncAllInfo(msgspec.Struct, frozen=True):
    """The content of a SyncAll: nothing."""


class BookmarkInfo(msgspec.Struct, frozen=True):
    """The content of a Bookmark.

    Args:
        resource_version: The server has sent every event up to it.
    """

    resource_version: str


class DeletedFinalStateUnknown(msgspec.Struct, Generic[T], frozen=True, gc=False, repr_omit_defaults=True):
    """A tombstone: the deletion of an object whose last state is not known, or does not fit the object type.

    A list found that the object is gone, and the DELETED event was missed; or the object was undecodable.

    Args:
        key: The key of the deleted object.
        obj: The last known state of the object type. It may be stale; None if no state is known.
        undecodable: The last state, if it does not fit the object type: an UndecodableObject.
    """

    key: str
    obj: T | None
    undecodable: Any = None

    @property
    def name(self) -> str:
        """The deleted object's name."""
        return self.key.rpartition("/")[2]

    @property
    def namespace(self) -> str:
        """The deleted object's namespace; ``""`` for a cluster-scoped object."""
        return self.key.rpartition("/")[0]
