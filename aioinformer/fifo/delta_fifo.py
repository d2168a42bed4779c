"""DeltaFIFO: for each key, what happened to it since it was last popped (client-go ``delta_fifo.go``, 0.30)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..deltas import DELETED, DeletedFinalStateUnknown, Delta, DeltaType
from ..errors import RejectedObjectError, TransformError
from ..keys import ExplicitKey, KeyFunc, keyed_by, meta_namespace_key_func
from ..protocols import KnownObjects, Transformer
from .callouts import Known, key_of_newest, transformed
from .queue import FIFO, LONGEST_BATCH, Item

Deltas = tuple[Delta, ...]


class DeltaFIFO(FIFO):
    """A queue of deltas: keys in the order in which they were first queued, each with all that happened to it.

    A key popped and queued again goes to the back; a key that is queued keeps its place. Of two deletions in a
    row one stays: a real one rather than a tombstone, and of two real ones the older.

    Args:
        key_func: Gives an object's key.
        known_objects: What the consumer already has (its Store): ``replace`` finds deletions by it, ``resync``
            repeats it. Without it only deletions of queued keys are noticed.
        emit_delta_type_replaced: Emit Replaced, not Sync, for the objects of a ``replace``.
        transformer: Called once for each object before it is queued, never for tombstones or a resync's objects.
    """

    def __init__(
        self,
        key_func: KeyFunc = meta_namespace_key_func,
        known_objects: KnownObjects[Any] | None = None,
        emit_delta_type_replaced: bool = False,
        transformer: Transformer | None = None,
    ) -> None:
        self._deltas = DeltaState(key_func, known_objects, emit_delta_type_replaced, transformer)
        super().__init__(self._deltas)

    def list_keys(self) -> list[str]:
        """The queued keys, oldest first."""
        return list(self._deltas.queue)

    async def add_if_not_present(self, deltas: list[Delta]) -> None:
        """Put popped deltas back, unless something newer is queued for their key.

        Raises:
            KeyFuncError: There are no deltas, or their object has no key.
            QueueHeldError: Called from inside this queue's own process function.
        """
        async with self._held():
            self._deltas.add_if_not_present(deltas)

    def get_by_key(self, key: str) -> list[Delta] | None:
        """A copy of what is queued for a key, or None."""
        deltas = self._deltas.items.get(key)
        return None if deltas is None else list(deltas)

    def key_of(self, obj: Any) -> str:
        """The key of an object, a tombstone, or (that of the newest of) a list of deltas.

        Raises:
            KeyFuncError: There is none.
        """
        return self._deltas.key_of(obj)


class DeltaState:
    """DeltaFIFO's rules.

    Attributes:
        items: The deltas of each queued key, oldest first, never empty. Tuples: the garbage collector soon forgets
            about one of Deltas, where it would go through a hundred thousand lists again and again.
        queue: The keys in the order of popping; the same keys as ``items``.
        populated: Whether a first Replace, or any other verb, has been seen.
        initial_population: The keys of the first Replace that are still to be worked off. Keys, not their number:
            what is queued meanwhile must not stand in for an item that was put back.
    """

    def __init__(
        self,
        key_func: KeyFunc,
        known_objects: KnownObjects[Any] | None,
        emit_delta_type_replaced: bool,
        transformer: Transformer | None,
    ) -> None:
        self.items: dict[str, Deltas] = {}
        self.queue: deque[str] = deque()
        self.populated = False
        self.initial_population: set[str] = set()
        self._key_func = keyed_by(key_func)
        self._known = Known(known_objects)
        self._replace_type = DeltaType.REPLACED if emit_delta_type_replaced else DeltaType.SYNC
        self._transformer = transformer

    def key_of(self, obj: Any) -> str:
        return key_of_newest(self._key_func, obj)

    def enqueue(self, delta: Delta) -> None:
        """Record that an object was Added, Updated or Deleted.

        A deletion of what is neither queued nor known is dropped: a relist has dealt with it before.
        """
        key = self._key_func(delta.object)
        self.populated = True
        deltas = self.items.get(key)
        is_deletion = delta.type is DELETED
        if is_deletion and deltas is None and not self._known.has(key):
            return
        if is_deletion and isinstance(delta.object, DeletedFinalStateUnknown) and delta.object.obj is None:
            delta = Delta(DELETED, DeletedFinalStateUnknown(key, self._last_state(key)))
        failure: TransformError | None = None
        if self._transformer is not None:
            try:
                delta = Delta(delta.type, transformed(self._transformer, key, delta.object))
            except TransformError as error:
                if not is_deletion:
                    raise
                failure = error  # the deletion itself must not be lost
        if deltas is None:
            self.queue.append(key)
        self.items[key] = (delta,) if deltas is None else _appended(deltas, delta)
        if failure is not None:
            raise failure

    def replace(self, objects: Sequence[Any], resource_version: str) -> Iterator[None]:
        """Record the collection's objects, then a tombstone for each queued or known key that is not among them.

        Everything is prepared aside, so that abandoning it before its end changes nothing.
        """
        listed: set[str] = set()
        staged: dict[str, Deltas] = {}
        rejected: list[RejectedObjectError] = []
        for obj in objects:
            try:
                key = self.key_of(obj)
                listed.add(key)
                if not isinstance(obj, ExplicitKey):
                    delta = Delta(self._replace_type, transformed(self._transformer, key, obj))
                    staged[key] = _appended(staged.get(key) or self.items.get(key, ()), delta)
            except RejectedObjectError as error:
                rejected.append(error)
            yield
        for missing in self._missing(listed):
            if missing is not None:
                tombstone = DeletedFinalStateUnknown(missing, self._last_state(missing))
                staged[missing] = _appended(self.items.get(missing, ()), Delta(DeltaType.DELETED, tombstone))
            yield
        initial: set[str] = set()
        if not self.populated:
            for key in staged:
                initial.add(key)
                yield
        yield from self._take_over(staged)
        if not self.populated:
            self.populated = True
            self.initial_population = initial
        RejectedObjectError.raise_first(rejected)

    def resync(self) -> Iterator[None]:
        """Record a Sync of each known object that has nothing queued: a Sync never follows newer news."""
        staged: dict[str, Deltas] = {}
        for key in self._known.list_keys():
            if key not in self.items and (obj := self._known.state(key)) is not None:
                staged[key] = (Delta(DeltaType.SYNC, obj),)
            yield
        yield from self._take_over(staged)

    def add_if_not_present(self, deltas: list[Delta]) -> None:
        """Queue deltas as they are, unless their key is queued."""
        key = self.key_of(deltas)
        self.populated = True
        self._insert(key, deltas)

    def take(self) -> Item:
        key = self.queue.popleft()
        deltas = self.items.pop(key)
        return Item(list(deltas), not self.has_synced(), {key: deltas})

    def take_batch(self) -> Item:
        """Remove the oldest items, as many as may be processed together: all or none of the initial list."""
        queue, items, initial = self.queue, self.items, self.initial_population
        is_in_initial_list = not self.has_synced()
        still_initial = len(initial)
        by_key: dict[str, Deltas] = {}
        deltas: list[Delta] = []
        for _ in range(min(len(queue), LONGEST_BATCH)):
            key = queue.popleft()
            by_key[key] = of_key = items.pop(key)
            deltas += of_key
            if initial and key in initial:
                still_initial -= 1
                if not still_initial:
                    break
        return Item(deltas, is_in_initial_list, by_key)

    def put_back(self, item: Item) -> None:
        for key, deltas in item.by_key.items():
            self._insert(key, deltas)

    def done(self, item: Item) -> None:
        self.initial_population.difference_update(item.by_key)

    def has_synced(self) -> bool:
        return self.populated and not self.initial_population

    def _insert(self, key: str, deltas: Iterable[Delta]) -> None:
        if key not in self.items:
            self.queue.append(key)
            self.items[key] = tuple(deltas)

    def _take_over(self, staged: dict[str, Deltas]) -> Iterator[None]:
        """Queue these, in place of what is queued for their keys; changes nothing before its end."""
        news: list[str] = []
        for key in staged:
            if key not in self.items:
                news.append(key)
            yield
        for key, deltas in self.items.items():
            staged.setdefault(key, deltas)
            yield
        self.queue.extend(news)
        self.items = staged

    def _missing(self, listed: set[str]) -> Iterator[str | None]:
        """The keys that were not listed, queued ones first; None stands for one that was."""
        for key in self.items:
            yield None if key in listed else key
        for key in self._known.list_keys():
            yield None if key in listed or key in self.items else key

    def _last_state(self, key: str) -> Any:
        """The newest state of a key that is known here, out of its tombstone if it is in one."""
        if key in self.items:
            newest = self.items[key][-1].object
            return newest.obj if isinstance(newest, DeletedFinalStateUnknown) else newest
        return self._known.state(key)


def _appended(deltas: Deltas, delta: Delta) -> Deltas:
    """The deltas with one more; of two deletions in a row one is kept."""
    if not deltas or deltas[-1].type is not DELETED or delta.type is not DELETED:
        return (*deltas, delta)
    return (*deltas[:-1], delta) if isinstance(deltas[-1].object, DeletedFinalStateUnknown) else deltas
