"""What a server sends, as objects and changes. One that cannot be read stops no other."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from .._core.coop import Budget, snapshot
from ..client.error_mapping import no_event, status_error
from ..deltas import BOOKMARK as BOOKMARK_DELTA
from ..deltas import BookmarkInfo, DeletedFinalStateUnknown, Delta, DeltaType
from ..errors import ApiError, DecodeError, KeyFuncError
from ..objects.codec import Codec, codec_for, decode_bookmark
from ..objects.keys import (
    ExplicitKey,
    KeyFunc,
    lacks_version,
    resource_version_of,
)
from ..objects.kube_object import KubeObject
from ..objects.meta import (
    ADDED,
    BOOKMARK,
    DELETED,
    ERROR,
    MODIFIED,
    NO_EVENT,
    ListResult,
    WatchEvent,
)

DELTA_TYPES = {ADDED: DeltaType.ADDED, MODIFIED: DeltaType.UPDATED, DELETED: DeltaType.DELETED}


class Changes(msgspec.Struct, frozen=True):
    """What a batch of events says.

    Attributes:
        deltas: The changes, for the store.
        version: The version up to which they go; ``""`` where they say none.
        taken: How many events were taken, bookmarks among them.
        from_any: Whether the events that follow may still be the collection, in no order.
        bookmarked: Whether a bookmark is among them.
        failure: The ERROR that ends them.
    """

    deltas: list[Delta]
    version: str
    taken: int
    from_any: bool
    bookmarked: bool
    failure: ApiError | None


def version_of_event(obj: Any, raw: Any) -> str:
    """The version of an event, also where its object's type forgets that.

    Args:
        obj: The object.
        raw: What the event brought it as.
    """
    version = resource_version_of(obj)
    if not version and lacks_version(type(obj)):
        with suppress(DecodeError):
            return resource_version_of(decode_bookmark(raw))
    return version


class EventDecoder:
    """Turns list items and events into objects and changes.

    Args:
        codec: Decodes objects.
        key_of: Gives an object's key.
        takes_bookmarks: Whether bookmarks are changes, too.
        reject: Told of each object, event or line that is dropped.
        pack: Gives an object of a list the form in which it waits for the rest of it.

    Attributes:
        missed: Whether something came that could not be read at all, so that nobody knows what the store lacks.
    """

    def __init__(
        self,
        codec: Codec[Any],
        key_of: KeyFunc,
        takes_bookmarks: bool,
        reject: Callable[[DecodeError], None],
        pack: Callable[[Any], Any] | None = None,
    ) -> None:
        self._codec = codec
        self._key_of = key_of
        self._takes_bookmarks = takes_bookmarks
        self._reject = reject
        self._pack = pack
        self.missed = False

    async def objects_of(self, piece: ListResult) -> list[Any]:
        """The objects of a list's piece. One that cannot be decoded leaves its key, so that it is not deleted."""
        objects: list[Any] = []
        budget = Budget()
        for item in snapshot(piece.items):
            try:
                objects.append(self._packed(self._codec.decode(item, piece.type_meta)))
            except DecodeError as error:
                self._reject(error)
                if (key := self._key_of_bad_item(item)) is not None:
                    objects.append(key)
            if budget.is_spent():
                await budget.pause()
        return objects

    def object_of(self, event: WatchEvent) -> Any:
        """The object of an initial event; of one that cannot be decoded what is left of it."""
        if event.type not in DELTA_TYPES:
            self._reject_unknown(event)
            return None
        try:
            return self._packed(self._codec.decode(event.object))
        except DecodeError as error:
            return self._what_is_left_of(event, error)

    def changes_of(self, batch: list[WatchEvent], from_any: bool) -> Changes:
        """The changes of a batch of events, up to its ERROR if it has one.

        Args:
            batch: The events.
            from_any: Whether they are those of a watch from any version, of which the first ADDED are the collection.
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
                    left = self._what_is_left_of(event, error)
                    if isinstance(left, DeletedFinalStateUnknown):
                        deltas.append(Delta(delta_type, left))
                        taken += 1
                        from_any = False
                    continue
                deltas.append(Delta(delta_type, obj))
            elif kind == BOOKMARK:
                try:
                    obj = decode_bookmark(event.object)
                except DecodeError as error:
                    self._reject(error)
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
        return Changes(deltas, version_of_event(newest, newest_raw), taken, from_any, bookmarked, failure)

    def _packed(self, obj: Any) -> Any:
        return obj if self._pack is None else self._pack(obj)

    def _what_is_left_of(self, event: WatchEvent, error: DecodeError) -> Any:
        """The key of an event's object that cannot be decoded, as a tombstone if it was deleted, or None."""
        self._reject(error)
        key = self._key_of_bad_item(event.object)
        return key if key is None or event.type != DELETED else DeletedFinalStateUnknown(str(key), None)

    def _reject_unknown(self, event: WatchEvent) -> None:
        if event.type == NO_EVENT:
            self.missed = True
            self._reject(no_event(event.object))
        else:
            self._reject(DecodeError(f"a watch event of unknown type {event.type!r:.80}"))

    def _key_of_bad_item(self, item: Any) -> ExplicitKey | None:
        """The key of what cannot be decoded; None, and it was missed, if not even that can be read."""
        try:
            return ExplicitKey(self._key_of(codec_for(KubeObject).decode(item)))
        except (DecodeError, KeyFuncError):
            self.missed = True
            return None
