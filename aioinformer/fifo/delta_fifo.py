"""DeltaFIFO: for each key, what happened since it was last popped (client-go ``delta_fifo.go``, 0.30)."""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator, MutableMapping, Sequence
from operator import length_hint
from typing import Any

from .._core.callables import require_plain
from ..deltas import ADDED, DELETED, UPDATED, DeletedFinalStateUnknown, Delta, DeltaType, type_of_delta
from ..errors import RejectedObjectError, TransformError
from ..objects.keys import (
    ExplicitKey,
    KeyFunc,
    meta_namespace_key_func,
    wrap_key_func,
)
from ..protocols import KnownObjects, Transformer
from .queue import FIFO, LONGEST_BATCH, Item
from .sliced_dict import SlicedDict
from .user_callbacks import Known, key_of_newest, transform

Deltas = Sequence[Delta]

LONG = 16
"""Deltas of one key from which on they are stored as a list: copying a tuple for each further delta costs more."""

MANY = 100_000
"""Keys from which on a growing dict would block the event loop."""


class DeltaFIFO(FIFO):
    """A queue of deltas: keys in the order in which they were first queued, each with all that happened to it.

    A key that is popped and queued again goes to the back; a queued key keeps its place. Of two deletions in a row the
    queue keeps one: a real deletion rather than a tombstone, and the older of two real ones.

    Args:
        key_func: Returns an object's key.
        known_objects: The consumer's objects (its Store). ``replace`` finds deletions with it, and ``resync`` repeats
            its objects. Without it only deletions of queued keys are noticed.
        emit_delta_type_replaced: Emit Replaced instead of Sync for the objects of a ``replace``.
        transformer: Called once for each object before it is queued, never for tombstones or a resync's objects.

    Raises:
        ConfigError: The transformer is not a plain function, or ``known_objects`` lacks a method.
    """

    def __init__(
        self,
        key_func: KeyFunc = meta_namespace_key_func,
        known_objects: KnownObjects[Any] | None = None,
        emit_delta_type_replaced: bool = False,
        transformer: Transformer[Any] | None = None,
    ) -> None:
        if transformer is not None:
            require_plain("transformer", transformer)
        self._deltas = DeltaState(key_func, known_objects, emit_delta_type_replaced, transformer)
        super().__init__(self._deltas)

    def list_keys(self) -> list[str]:
        """Return the queued keys, oldest first."""
        return list(self._deltas.queue)

    def get_by_key(self, key: str) -> list[Delta] | None:
        """Return a copy of the deltas queued for a key, or None."""
        deltas = self._deltas.items.get(key)
        return None if deltas is None else list(deltas)


class DeltaState:
    """DeltaFIFO's rules.

    Attributes:
        items: The deltas of each queued key, oldest first, never empty. Short ones are tuples: the garbage collector
            soon stops tracking a tuple of Deltas, but would visit a hundred thousand lists again and again.
        queue: The keys in popping order; the same keys as in ``items``.
        populated: Whether a first Replace, or any other verb, was called.
        initial_waiting: How many keys of the first Replace were not popped yet. They are at the front of the queue.
        initial_popped: The keys of the first Replace that were popped and not processed. Keys, not their number: a key
            queued meanwhile must not stand in for an item that was put back.
    """

    def __init__(
        self,
        key_func: KeyFunc,
        known_objects: KnownObjects[Any] | None,
        emit_delta_type_replaced: bool,
        transformer: Transformer[Any] | None,
    ) -> None:
        self.items: MutableMapping[str, Deltas] = {}
        self.queue: deque[str] = deque()
        self.populated = False
        self.initial_waiting = 0
        self.initial_popped: set[str] = set()
        self._key_func = wrap_key_func(key_func)
        self._known = Known(known_objects)
        self._replace_type = DeltaType.REPLACED if emit_delta_type_replaced else DeltaType.SYNC
        self._transformer = transformer

    def key_of(self, obj: Any) -> str:
        return key_of_newest(self._key_func, obj)

    def enqueue(self, delta: Delta) -> None:
        """Record that an object was Added, Updated or Deleted.

        A deletion of an object that is neither queued nor known is dropped: a relist has reported it before.
        """
        kind = delta.type
        if kind is not UPDATED and kind is not ADDED and kind is not DELETED:
            kind = type_of_delta(delta)
        key = self._key_func(delta.object)
        self.populated = True
        deltas = self.items.get(key)
        is_deletion = kind is DELETED
        if is_deletion and deltas is None and not self._known.has(key):
            return
        if is_deletion and isinstance(delta.object, DeletedFinalStateUnknown) and delta.object.obj is None:
            delta = Delta(DELETED, DeletedFinalStateUnknown(key, self._last_state(key)))
        failure: TransformError | None = None
        if self._transformer is not None:
            try:
                delta = Delta(delta.type, transform(self._transformer, key, delta.object))
            except TransformError as error:
                if not is_deletion:
                    raise
                failure = error  # the deletion must not be lost
        if deltas is None:
            self.queue.append(key)
            self.items[key] = (delta,)
        elif isinstance(deltas, list):
            _append(deltas, delta)
        else:
            self.items[key] = _with_delta(deltas, delta)
        if failure is not None:
            raise failure

    def replace(self, objects: Iterable[Any], resource_version: str) -> Iterator[None]:
        """Record the collection's objects, then a tombstone for each other queued or known key.

        Everything is prepared in a copy, so abandoning it before its end changes nothing.
        """
        unstaged: set[str] = set()  # a set of all listed keys would block the event loop where it grows
        staged = _Staged(self, length_hint(objects))
        rejected: list[RejectedObjectError] = []
        for obj in objects:
            try:
                key = self.key_of(obj)
                if isinstance(obj, ExplicitKey):
                    unstaged.add(key)
                else:
                    delta = Delta(self._replace_type, transform(self._transformer, key, obj))
                    of_key = staged.items.get(key)
                    if isinstance(of_key, list):  # staged here; copying it for each delta would cost n²
                        _append(of_key, delta)
                    else:
                        staged.put(key, _with_delta(of_key or self.items.get(key, ()), delta))
            except TransformError as error:
                unstaged.add(error.key)
                rejected.append(error)
            except RejectedObjectError as error:
                rejected.append(error)
            yield
        for missing in self._missing(staged.items, unstaged):
            if missing is not None:
                tombstone = DeletedFinalStateUnknown(missing, self._last_state(missing))
                staged.put(
                    missing, _with_delta(self.items.get(missing, ()), Delta(DeltaType.DELETED, tombstone))
                )
            yield
        initial = len(staged.queue) if staged.items else 0  # what was queued before comes first
        yield from self._take_over(staged)
        if not self.populated:
            self.populated = True
            self.initial_waiting = initial
        RejectedObjectError.raise_first(rejected)

    def resync(self) -> Iterator[None]:
        """Record a Sync of each known object that has nothing queued: a Sync never follows newer changes."""
        known = self._known.list_keys()
        staged = _Staged(self, len(known))
        for key in known:
            if key not in self.items and (obj := self._known.state(key)) is not None:
                staged.put(key, (Delta(DeltaType.SYNC, obj),))
            yield
        yield from self._take_over(staged)

    def add_if_not_present(self, deltas: list[Delta]) -> None:
        """Queue deltas unchanged, unless their key is queued."""
        key = self.key_of(deltas)
        self.populated = True
        self._insert(key, deltas)

    def take(self) -> Item:
        return self.take_batch(1)

    def take_batch(self, most: int = LONGEST_BATCH) -> Item:
        """Remove the oldest items, as many as one call may process: all or none of the initial list."""
        queue, items = self.queue, self.items
        waiting, popped = self.initial_waiting, self.initial_popped
        # Popped keys of the initial list are queued again: they were put back.
        remaining = waiting + len(popped) if popped else waiting
        is_in_initial_list = bool(remaining) or not self.populated
        by_key: dict[str, Deltas] = {}
        deltas: list[Delta] = []
        count = 0
        while queue and count < most:
            count += 1
            key = queue.popleft()
            by_key[key] = of_key = items.pop(key)
            deltas += of_key
            if remaining:
                if waiting:
                    waiting -= 1
                    popped.add(key)
                    remaining -= 1
                elif key in popped:
                    remaining -= 1
                if not remaining:
                    break
        self.initial_waiting = waiting
        if not queue:
            self.items = {}  # a dict never shrinks
        return Item(deltas, is_in_initial_list, count, by_key)

    def put_back(self, item: Item) -> None:
        for key, deltas in item.by_key.items():
            self._insert(key, deltas)

    def finish(self, item: Item) -> None:
        self.initial_popped.difference_update(item.by_key)

    def has_synced(self) -> bool:
        return self.populated and not self.initial_waiting and not self.initial_popped

    def _insert(self, key: str, deltas: Iterable[Delta]) -> None:
        if key not in self.items:
            self.queue.append(key)
            self.items[key] = tuple(deltas)

    def _take_over(self, staged: _Staged) -> Iterator[None]:
        """Replace the queued deltas of the staged keys. Changes nothing before its end."""
        for key, deltas in self.items.items():
            staged.items.setdefault(key, deltas)
            yield
        self.queue, self.items = staged.queue, staged.items

    def _missing(self, staged: Container[str], unstaged: Container[str]) -> Iterator[str | None]:
        """Yield queued and known keys that are in neither container, queued ones first, and None for each other key."""
        for key in self.items:
            yield None if key in staged or key in unstaged else key
        for key in self._known.list_keys():
            yield None if key in staged or key in unstaged or key in self.items else key

    def _last_state(self, key: str) -> Any:
        """Return the newest known state of a key, unwrapped from its tombstone if it is in one."""
        if key in self.items:
            newest = self.items[key][-1].object
            return newest.obj if isinstance(newest, DeletedFinalStateUnknown) else newest
        return self._known.state(key)


class _Staged:
    """A copy of a queue's items and order, to replace them later.

    Args:
        state: The queue's state, which must not change meanwhile.
        most: The expected number of keys.
    """

    __slots__ = ("_queued", "items", "queue")

    def __init__(self, state: DeltaState, most: int) -> None:
        self.items: MutableMapping[str, Deltas] = SlicedDict() if most > MANY else {}
        self.queue = state.queue.copy()
        self._queued = state.items

    def put(self, key: str, deltas: Deltas) -> None:
        """Stage the deltas of a key, at its place if it is queued."""
        if key not in self.items and key not in self._queued:
            self.queue.append(key)
        self.items[key] = deltas


def _with_delta(deltas: Deltas, delta: Delta) -> Deltas:
    """Return deltas with one more."""
    if not deltas:
        return (delta,)
    grown = list(deltas)
    _append(grown, delta)
    return grown if len(grown) >= LONG else tuple(grown)


def _append(deltas: list[Delta], delta: Delta) -> None:
    """Append a delta; keep one of two deletions in a row."""
    if not deltas or deltas[-1].type != DELETED or delta.type != DELETED:
        deltas.append(delta)
    elif isinstance(deltas[-1].object, DeletedFinalStateUnknown):
        deltas[-1] = delta
