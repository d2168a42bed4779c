"""RealFIFO: every event, in order of arrival (client-go ``the_real_fifo.go``)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from .._core.callables import require_plain
from .._core.checks import require_count
from ..deltas import (
    ADDED,
    BOOKMARK,
    DELETED,
    REPLACED_ALL,
    SYNC_ALL,
    UPDATED,
    BookmarkInfo,
    DeletedFinalStateUnknown,
    Delta,
    DeltaType,
    ReplacedAllInfo,
    SyncAllInfo,
    type_of_delta,
)
from ..errors import ConfigError, KeyFuncError, RejectedObjectError, TransformError
from ..objects.keys import (
    ExplicitKey,
    KeyFunc,
    meta_namespace_key_func,
    wrap_key_func,
)
from ..protocols import KnownObjects, Transformer
from .queue import FIFO, Item
from .user_callbacks import Known, key_of_newest, transform

BATCH_SIZE = 1000
"""The default ``batch_size``."""

UNBATCHABLE = (REPLACED_ALL, SYNC_ALL, BOOKMARK)


class RealFIFO(FIFO):
    """A queue of single deltas: nothing is merged or left out, and order holds across keys.

    Args:
        key_func: Returns an object's key.
        known_objects: The consumer's objects (its Store). ``replace`` finds deletions with it, and ``resync`` repeats
            its objects. Required without ``atomic_events``, forbidden with it.
        transformer: Called once for each object before it is queued, never for tombstones or a resync's objects.
        atomic_events: Queue a ``replace`` as one ReplacedAll and a ``resync`` as one SyncAll. The consumer has the
            store, and finds the deletions there.
        emit_delta_type_bookmark: Queue bookmarks; only with ``atomic_events``.
        unlock_while_processing: Let producers add while an async process function is awaited, until twice
            ``batch_size`` deltas are queued; only with ``atomic_events``.
        batch_size: The most deltas of a batch.

    Guarantees:
        A delta that was not processed (RequeueError, cancellation) goes back to the front: it is popped again before
        anything newer.

    Raises:
        ConfigError: The options exclude each other, or one has an invalid value.
    """

    keeps_order = True

    def __init__(
        self,
        key_func: KeyFunc = meta_namespace_key_func,
        known_objects: KnownObjects[Any] | None = None,
        transformer: Transformer[Any] | None = None,
        *,
        atomic_events: bool = False,
        emit_delta_type_bookmark: bool = False,
        unlock_while_processing: bool = False,
        batch_size: int = BATCH_SIZE,
    ) -> None:
        if atomic_events and known_objects is not None:
            raise ConfigError("RealFIFO: with atomic_events there must be no known_objects")
        if not atomic_events and known_objects is None:
            raise ConfigError("RealFIFO: without atomic_events there must be known_objects")
        if unlock_while_processing and not atomic_events:
            raise ConfigError("RealFIFO: unlock_while_processing needs atomic_events")
        if emit_delta_type_bookmark and not atomic_events:
            raise ConfigError("RealFIFO: emit_delta_type_bookmark needs atomic_events")
        require_count("RealFIFO: batch_size", batch_size, least=1)
        if transformer is not None:
            require_plain("transformer", transformer)
        rules = AtomicState if atomic_events else RealState
        self._real = rules(key_func, known_objects, transformer, batch_size, emit_delta_type_bookmark)
        super().__init__(self._real, room=2 * batch_size if unlock_while_processing else 0)

    async def bookmark(self, resource_version: str) -> None:
        """Queue a bookmark: every event up to this version was delivered. Does nothing unless bookmarks are emitted.

        Raises:
            QueueHeldError: Called from inside this queue's own process function.
        """
        await self.apply([Delta(BOOKMARK, BookmarkInfo(resource_version))])

    @property
    def queued(self) -> list[Delta]:
        """The queued deltas, oldest first; a copy."""
        return list(self._real.queue)


class RealState:
    """RealFIFO's rules.

    Attributes:
        queue: The queued deltas, oldest first.
        populated: Whether a first Replace, or any other verb about an object, was called.
    """

    def __init__(
        self,
        key_func: KeyFunc,
        known_objects: KnownObjects[Any] | None,
        transformer: Transformer[Any] | None,
        batch_size: int,
        emit_delta_type_bookmark: bool,
    ) -> None:
        self.queue: deque[Delta] = deque()
        self.populated = False
        self._key_func = wrap_key_func(key_func)
        self._known = Known(known_objects)
        self._transformer = transformer
        self._batch_size = batch_size
        self._emits_bookmarks = emit_delta_type_bookmark
        # Positions counted from the first delta ever queued: the end of the initial list, of what was taken, and of
        # what was processed (only up to the end of the initial list).
        self._initial_end = self._taken = self._done = 0

    def key_of(self, obj: Any) -> str:
        return key_of_newest(self._key_func, obj)

    def enqueue(self, delta: Delta) -> None:
        """Record that an object was Added, Updated or Deleted, known or not; or a Bookmark."""
        kind = delta.type
        if kind is not UPDATED and kind is not ADDED and kind is not DELETED:
            kind = type_of_delta(delta)
            if kind is BOOKMARK:
                if self._emits_bookmarks:
                    self.queue.append(delta)
                return
        key = self._key_func(delta.object)
        self.populated = True
        failure: TransformError | None = None
        if self._transformer is not None:
            try:
                delta = Delta(delta.type, transform(self._transformer, key, delta.object))
            except TransformError as error:
                if kind is not DELETED:
                    raise
                failure = error  # the deletion must not be lost
        self.queue.append(delta)
        if failure is not None:
            raise failure

    def replace(self, objects: Iterable[Any], resource_version: str) -> Iterator[None]:
        """Record a tombstone for each queued or known key that is not among the objects, then the objects.

        Everything is prepared in a copy, so abandoning it before its end changes nothing.
        """
        listed: set[str] = set()
        replaced: list[Delta] = []
        rejected: list[RejectedObjectError] = []
        for entry in self._read_list(objects, rejected):
            if entry is not None:
                key, obj = entry
                listed.add(key)
                if not isinstance(obj, ExplicitKey):
                    replaced.append(Delta(DeltaType.REPLACED, obj))
            yield
        newest: dict[str | None, Delta] = {}
        for delta in self.queue:
            newest[self._key_or_none(delta)] = delta
            yield
        gone: list[Delta] = []
        for queued, delta in newest.items():
            if queued is not None and queued not in listed and delta.type != DELETED:
                gone.append(Delta(DELETED, DeletedFinalStateUnknown(queued, delta.object)))
            yield
        for key in self._known.list_keys():
            if key not in listed and key not in newest:
                gone.append(Delta(DELETED, DeletedFinalStateUnknown(key, self._known.state(key))))
            yield
        self._append_list([*gone, *replaced])
        RejectedObjectError.raise_first(rejected)

    def resync(self) -> Iterator[None]:
        """Record a Sync of each known object that has nothing queued: a Sync never follows newer changes."""
        queued: set[str | None] = set()
        for delta in self.queue:
            queued.add(self._key_or_none(delta))
            yield
        staged: list[Delta] = []
        for key in self._known.list_keys():
            if key not in queued and (obj := self._known.state(key)) is not None:
                staged.append(Delta(DeltaType.SYNC, obj))
            yield
        self.queue.extend(staged)

    def add_if_not_present(self, deltas: list[Delta]) -> None:
        """Queue deltas unchanged, unless a delta of their key or a whole list is queued."""
        key = self.key_of(deltas)
        self.populated = True
        if not any(delta.type == REPLACED_ALL or self._key_or_none(delta) == key for delta in self.queue):
            self.queue.extend(deltas)

    def take(self) -> Item:
        self._taken += 1
        return Item([self.queue.popleft()], not self.has_synced(), 1)

    def take_batch(self) -> Item:
        """Remove the oldest deltas, as many as one call may process.

        A batch has no two deltas of one key, and all or none of the initial list. A ReplacedAll, SyncAll or Bookmark
        is a batch by itself.
        """
        queue, deltas = self.queue, list[Delta]()
        most = min(self._batch_size, len(queue))
        if self._taken < self._initial_end:
            most = min(most, self._initial_end - self._taken)
        keys: set[str] = set()
        while len(deltas) < most:
            if queue[0].type in UNBATCHABLE:
                if not deltas:
                    deltas.append(queue.popleft())
                break
            key = self._key_or_none(queue[0])
            if key in keys:
                break
            deltas.append(queue.popleft())
            if key is None:
                break
            keys.add(key)
        item = Item(deltas, not self.has_synced(), len(deltas))
        self._taken += len(deltas)
        return item

    def put_back(self, item: Item) -> None:
        """Undo a take: everything queued is newer."""
        self.queue.extendleft(reversed(item.deltas))
        self._taken -= len(item.deltas)

    def finish(self, item: Item) -> None:
        self._done += len(item.deltas)

    def has_synced(self) -> bool:
        return self.populated and self._done >= self._initial_end

    def _read_list(
        self, objects: Iterable[Any], rejected: list[RejectedObjectError]
    ) -> Iterator[tuple[str, Any] | None]:
        """Yield each object with its key, transformed; None for an object without a key.

        An object that cannot be transformed is replaced by its key, so that the known object is not deleted.
        """
        for obj in objects:
            key: str | None = None
            try:
                key = self._key_func(obj)
                yield key, obj if isinstance(obj, ExplicitKey) else transform(self._transformer, key, obj)
            except RejectedObjectError as error:
                rejected.append(error)
                yield None if key is None else (key, ExplicitKey(key))

    def _append_list(self, deltas: list[Delta]) -> None:
        self.queue.extend(deltas)
        if not self.populated:
            self.populated = True
            self._initial_end = self._taken + len(self.queue)

    def _key_or_none(self, delta: Delta) -> str | None:
        try:
            return self._key_func(delta.object)
        except KeyFuncError:  # it had a key when it was queued
            return None


class AtomicState(RealState):
    """RealFIFO's rules with ``atomic_events``: a list, or a resync, is one delta."""

    def replace(self, objects: Iterable[Any], resource_version: str) -> Iterator[None]:
        """Record the whole list, transformed, as one ReplacedAll."""
        kept: list[Any] = []
        rejected: list[RejectedObjectError] = []
        for entry in self._read_list(objects, rejected):
            if entry is not None:
                kept.append(entry[1])
            yield
        self._append_list([Delta(REPLACED_ALL, ReplacedAllInfo(resource_version, kept))])
        RejectedObjectError.raise_first(rejected)

    def resync(self) -> Iterator[None]:
        """Record a SyncAll. Queued changes of an object come before it, so no object is left out."""
        yield
        self.queue.append(Delta(SYNC_ALL, SyncAllInfo()))
