"""Store: objects by key (client-go ``tools/cache/store.go``)."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from typing import Any, Generic, TypeVar

from .._core.checks import require_text
from .._core.coop import snapshot, yielding
from .._core.forks import Process
from ..deltas import DeletedFinalStateUnknown
from ..errors import RejectedObjectError
from ..objects.keys import (
    ExplicitKey,
    KeyFunc,
    keyed_by,
    meta_namespace_key_func,
    resource_version_of,
)

T = TypeVar("T")


class Store(Generic[T]):
    """Objects by key. Its methods are plain: no other task can run in the middle of one.

    Objects are kept in one dict per namespace: one dict of all objects would block the event loop for longer where it
    grows.

    Other threads than the writer's may read. So code that iterates over a dict copies it first, in one step of the
    interpreter.

    Args:
        key_func: Returns an object's key.
        pack: Returns the form in which an object is stored; readers get that form. None stores it unchanged.

    Raises:
        ConfigError: There is no key function.
    """

    def __init__(
        self, key_func: KeyFunc = meta_namespace_key_func, *, pack: Callable[[T], T] | None = None
    ) -> None:
        self.key_of: KeyFunc = keyed_by(key_func)
        """Return the key of an object or tombstone. Raises KeyFuncError."""
        self._pack = pack
        self._parts: dict[str, dict[str, T]] = {}  # by namespace; none is empty
        self._version = ""
        self.kept_current_in: Process | None = None
        """The process in which an informer keeps this store current; None for a store without an informer."""

    @property
    def last_store_sync_resource_version(self) -> str:
        """The version of the last change: of an object, a Replace or a Bookmark (``LastStoreSyncResourceVersion``).

        After a RealFIFO with atomic events and bookmarks the store has every change up to it. After a DeltaFIFO it is
        only the last object's version, because a list has no order; with several namespaces it is that of the last
        event of any of them. Tombstones and objects without a version do not change it.
        """
        return self._version

    def add(self, obj: T) -> None:
        """Store an object; it replaces the stored object of its key.

        Raises:
            KeyFuncError: The object has no key.
        """
        rejected: builtins.list[RejectedObjectError] = []
        self.put(self.key_of(obj), obj, rejected)
        RejectedObjectError.raise_first(rejected)

    def update(self, obj: T) -> None:
        """As ``add``."""
        Store.add(self, obj)  # not self.add: a subclass would see every update twice

    def delete(self, obj: T | DeletedFinalStateUnknown[Any]) -> None:
        """Remove the stored object of this object's key, if any; ``obj`` may be a tombstone.

        Raises:
            KeyFuncError: The object has no key.
        """
        self.remove(self.key_of(obj), obj)

    def get(self, obj: T | DeletedFinalStateUnknown[Any]) -> T | None:
        """Return the stored object of this object's key, or None.

        Raises:
            KeyFuncError: The object has no key.
        """
        return self.get_by_key(self.key_of(obj))

    def get_by_key(self, key: str) -> T | None:
        """Return the object of a key, or None.

        Raises:
            ConfigError: The key is not a string.
        """
        try:
            part = self._parts.get(key.rpartition("/")[0])
        except (AttributeError, TypeError):
            require_text("key", key)
            raise
        return None if part is None else part.get(key)

    def list(self) -> builtins.list[T]:
        """Return all objects, one namespace after the other, as a new list."""
        parts = builtins.list(self._parts.values())
        return builtins.list(chain.from_iterable([part.values() for part in parts]))

    def list_keys(self) -> builtins.list[str]:
        """Return all keys in the order of ``list``, as a new list."""
        return builtins.list(chain.from_iterable(builtins.list(self._parts.values())))

    def list_keys_by_parts(self) -> Iterator[builtins.list[str]]:
        """Yield the keys of one namespace after the other, for callers that pause in between."""
        for namespace in builtins.list(self._parts):
            yield builtins.list(self._parts.get(namespace, ()))

    def replace(self, objects: Iterable[T], resource_version: str = "") -> None:
        """Store exactly these objects. An ExplicitKey among them keeps the stored object of that key.

        Raises:
            RejectedObjectError: The first object without a key; its ``others`` are the further ones. All other objects
                were stored.
        """
        for _ in self._replace(objects, resource_version):
            pass

    async def replace_in_turns(self, objects: Iterable[T], resource_version: str = "") -> None:
        """As ``replace``, in slices: other tasks run meanwhile.

        They read the old objects until the end. What they write meanwhile is lost.

        Cancellation: nothing is replaced.
        """
        await yielding(self._replace(snapshot(objects), resource_version))

    def bookmark(self, resource_version: str) -> None:
        """Record that every event up to this version was delivered."""
        self._version = resource_version

    def resync(self) -> None:
        """Do nothing: a resync repeats the store's objects to others."""

    def __len__(self) -> int:
        return sum(map(len, builtins.list(self._parts.values())))

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.get_by_key(key) is not None

    def exchange(self, key: str, old: T, new: T) -> None:
        """Replace a stored object by another form of it, unless it has changed."""
        if self.get_by_key(key) is old:
            self._parts[key.rpartition("/")[0]][key] = new

    def put(self, key: str, obj: T, rejected: builtins.list[RejectedObjectError]) -> T | None:
        """Store an object under a given key; return the object that it replaces.

        Args:
            key: Its key.
            obj: The object, which is packed if the store packs.
            rejected: Gets the errors of index functions; the object is stored all the same.
        """
        kept = obj if self._pack is None else self._pack(obj)  # first, because it may raise
        namespace = key.rpartition("/")[0]
        part = self._parts.get(namespace)
        if part is None:
            part = self._parts[namespace] = {}
        old = part.get(key)
        part[key] = kept
        if version := resource_version_of(obj):
            self._version = version
        return old

    def remove(self, key: str, obj: T | DeletedFinalStateUnknown[Any] | None = None) -> T | None:
        """Remove the object of a key, if any, and return it.

        Args:
            key: Its key.
            obj: Its last known state.
        """
        if not isinstance(obj, (DeletedFinalStateUnknown, ExplicitKey)):
            self._version = resource_version_of(obj) or self._version
        return self._forget(key)

    def fresh(self) -> Store[T]:
        """Return an empty store of the same kind, to fill with ``put`` and then pass to ``take_over``."""
        return Store(self.key_of, pack=self._pack)

    def catch_up(self, fresh: Store[T], rejected: builtins.list[RejectedObjectError]) -> Iterator[None]:
        """Fill a fresh store's indexes that were added to this store meanwhile. Yields after each object.

        Args:
            fresh: A filled store that ``fresh`` returned.
            rejected: Gets the errors of index functions.
        """
        return iter(())

    def take_over(
        self, fresh: Store[T], resource_version: str, instead_of: Collection[str] | None = None
    ) -> None:
        """Take the content of a fresh store, in one step. Nothing else may run between ``catch_up`` and this.

        Args:
            fresh: What ``fresh`` returned; it must not be used afterwards.
            resource_version: The list's.
            instead_of: Keys to remove; None removes everything that is not in the fresh store.
        """
        if instead_of is None:
            self._parts = fresh._parts
        else:
            for key in instead_of:
                self._forget(key)
            for namespace, part in fresh._parts.items():
                self._parts.setdefault(namespace, part).update(part)
        self._version = resource_version

    def _each(self) -> Iterator[tuple[str, T]]:
        return chain.from_iterable(part.items() for part in self._parts.values())

    def _forget(self, key: str) -> T | None:
        namespace = key.rpartition("/")[0]
        part = self._parts.get(namespace)
        if part is None:
            return None
        old = part.pop(key, None)
        if not part:
            del self._parts[namespace]
        return old

    def _replace(self, objects: Iterable[T], resource_version: str) -> Iterator[None]:
        fresh = self.fresh()
        rejected: builtins.list[RejectedObjectError] = []
        for obj in objects:
            yield
            try:
                key = self.key_of(obj)
            except RejectedObjectError as error:
                rejected.append(error)
                continue
            if not isinstance(obj, ExplicitKey):
                fresh.put(key, obj, rejected)
            elif (kept := self.get_by_key(key)) is not None and key not in fresh:
                fresh.put(key, kept, rejected)
        yield from self.catch_up(fresh, rejected)
        self.take_over(fresh, resource_version)
        RejectedObjectError.raise_first(rejected)
