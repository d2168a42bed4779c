"""Decode list items and watch events into objects and changes. An undecodable object does not stop the others.

What happens to an object that does not fit the object type:

- An UndecodableObject takes its place, in lists and events, also in a deletion. It goes the way of every object, so
  that the store never keeps a state that is known to be old.
- If not even the key can be read, ``missed`` is set, and the reflector relists later.
- In each case it is counted and logged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from .._core.coop import Budget, snapshot
from ..client.error_mapping import invalid_event, status_error
from ..deltas import BOOKMARK as BOOKMARK_DELTA
from ..deltas import BookmarkInfo, Delta, DeltaType
from ..errors import ApiError, DecodeError, KeyFuncError
from ..objects.codec import Codec, decode_bookmark
from ..objects.keys import KeyFunc, lacks_version, resource_version_of
from ..objects.meta import (
    ADDED,
    BOOKMARK,
    DELETED,
    ERROR,
    MODIFIED,
    NO_EVENT,
    ListResult,
    TypeMeta,
    WatchEvent,
)
from ..objects.undecodable import undecodable
from .scope import OtherNamespaceError, lacks_namespace

DELTA_TYPES: Mapping[str, DeltaType] = {
    ADDED: DeltaType.ADDED,
    MODIFIED: DeltaType.UPDATED,
    DELETED: DeltaType.DELETED,
}


class Changes(msgspec.Struct, frozen=True):
    """The changes in a batch of events.

    Attributes:
        deltas: The changes, for the store.
        version: The version after them; ``""`` if no event has one.
        taken: How many events were decoded, including bookmarks.
        from_any: Whether the following events may still be the initial collection, which has no order.
        bookmarked: Whether the batch has a bookmark.
        failure: The ERROR at its end.
    """

    deltas: list[Delta]
    version: str
    taken: int
    from_any: bool
    bookmarked: bool
    failure: ApiError | None


def version_of_event(obj: Any, raw: Any) -> str:
    """Return the version of an event, also if the object's type has no field for it.

    Args:
        obj: The decoded object.
        raw: The object as it arrived.
    """
    version = resource_version_of(obj)
    if not version and lacks_version(type(obj)):
        with suppress(DecodeError):
            return resource_version_of(decode_bookmark(raw))
    return version


class EventDecoder:
    """Decodes list items and events.

    Args:
        codec: Decodes objects.
        key_of: Returns an object's key.
        takes_bookmarks: Whether the store wants bookmarks.
        on_rejected: Called for each dropped object, event or line.
        pack: Packs an object of a list while it waits for the rest of the list.
        on_undecodable: Called for each object that does not fit the object type; None for ``on_rejected``.

    Attributes:
        missed: Whether something arrived of which not even the key can be read: the store may lack it.
    """

    def __init__(
        self,
        codec: Codec[Any],
        key_of: KeyFunc,
        takes_bookmarks: bool,
        on_rejected: Callable[[DecodeError], None],
        pack: Callable[[Any], Any] | None = None,
        on_undecodable: Callable[[DecodeError], None] | None = None,
    ) -> None:
        self._codec = codec
        self._has_namespace = not lacks_namespace(codec.object_type)
        self._key_of = key_of
        self._takes_bookmarks = takes_bookmarks
        self._on_rejected = on_rejected
        self._on_undecodable = on_undecodable or on_rejected
        self._pack = pack
        self._budget = Budget()  # for all pieces: a list may have many small ones, and never wait
        self.missed = False

    async def objects_of(self, piece: ListResult) -> list[Any]:
        """Return the objects of a piece of a list, without those of which not even the key can be read."""
        objects: list[Any] = []
        budget = self._budget
        for item in snapshot(piece.items):
            try:
                obj = self._codec.decode(item, piece.type_meta)
            except DecodeError as error:
                obj = self._undecodable(item, piece.type_meta, error)
            if obj is not None:
                objects.append(self._pack_object(obj))
            if budget.is_spent():
                await budget.pause()
        return objects

    def object_of(self, event: WatchEvent) -> Any:
        """Return the object of an initial event; None if not even its key can be read."""
        if event.type not in DELTA_TYPES:
            self._reject_unknown(event)
            return None
        try:
            obj = self._codec.decode(event.object)
        except DecodeError as error:
            obj = self._undecodable(event.object, None, error)
        return None if obj is None else self._pack_object(obj)

    def changes_of(self, batch: list[WatchEvent], from_any: bool) -> Changes:
        """Return the changes of a batch of events, up to its ERROR if it has one.

        Args:
            batch: The events.
            from_any: Whether their watch started at any version: then its first ADDED events are the collection.
        """
        deltas: list[Delta] = []
        newest: Any = None
        newest_raw: Any = None
        failure: ApiError | None = None
        taken = 0
        bookmarked = False
        decode = self._codec.decode
        obj: Any
        for event in batch:
            kind = event.type
            delta_type = DELTA_TYPES.get(kind)
            if delta_type is not None:
                try:
                    obj = decode(event.object)
                except DecodeError as error:
                    obj = self._undecodable(event.object, None, error)
                    if obj is None:
                        continue
                deltas.append(Delta(delta_type, obj))
            elif kind == BOOKMARK:
                try:
                    obj = decode_bookmark(event.object)
                except DecodeError as error:
                    self._on_rejected(error)
                    continue
                bookmarked = True
                if self._takes_bookmarks and (version := resource_version_of(obj)):
                    deltas.append(Delta(BOOKMARK_DELTA, BookmarkInfo(version)))
            elif kind == ERROR:
                failure = status_error(event.object)
                break
            else:
                self._reject_unknown(event)
                continue
            taken += 1
            if from_any and kind != ADDED:
                from_any = False
            if not from_any:
                newest, newest_raw = obj, event.object
        version = resource_version_of(newest) or version_of_event(newest, newest_raw)
        return Changes(deltas, version, taken, from_any, bookmarked, failure)

    def _pack_object(self, obj: Any) -> Any:
        return obj if self._pack is None else self._pack(obj)

    def _undecodable(self, value: Any, type_meta: TypeMeta | None, error: DecodeError) -> Any:
        """Report a value that cannot be decoded; return its UndecodableObject, or None.

        If not even its key can be read, the store may lack it: ``missed`` is set.
        """
        if not isinstance(error, OtherNamespaceError):
            with suppress(DecodeError, KeyFuncError):
                obj = undecodable(value, type_meta, str(error), has_namespace=self._has_namespace)
                self._key_of(obj)
                self._on_undecodable(error)
                return obj
            self.missed = True
        self._on_rejected(error)
        return None

    def _reject_unknown(self, event: WatchEvent) -> None:
        if event.type == NO_EVENT:
            self.missed = True
            self._on_rejected(invalid_event(event.object))
        else:
            self._on_rejected(DecodeError(f"a watch event of unknown type {event.type!r:.80}"))
