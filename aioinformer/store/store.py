"""Store: objects by key (client-go ``tools/cache/store.go``)."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from typing import Any, Generic, TypeVar

from .._core.checks import require_text
from .._core.coop import run_in_slices, snapshot
from .._core.forks import Process
from ..deltas import DeletedFinalStateUnknown
from ..errors import RejectedObjectError
from ..objects.keys import (
    ExplicitKey,
    KeyFunc,
    meta_namespace_key_func,
    resource_version_of,
    wrap_key_func,
)
from ..objects.undecodable import UndecodableObject
from .index import Index

T = TypeVar("T")


class Store(Generic[T]):
    """Objects by key. Its methods are plain: no other task can run in the middle of one.

    Objects are kept in one dict per namespace: one dict of all objects would block the event loop for longer where it
    grows.

    An UndecodableObject, which does not fit the object type, is kept apart from the others: ``get_by_key`` raises its
    error for that key alone, ``list`` leaves it out, ``list_keys`` has its key, and ``undecodable`` returns it.

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
        self.key_of: KeyFunc = wrap_key_func(key_func)
        """Return the key of an object or tombstone. Raises KeyFuncError."""
        self._pack = pack
        self._parts: dict[str, dict[str, T]] = {}  # by namespace; none is empty
        # By key. While an object changes from one to the other, other threads find it in one of them or in both.
        self._undecodable: dict[str, UndecodableObject] = {}
        self._version = ""
        self._maintained: tuple[Index, ...] = ()  # the indexes that follow each change
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
        key = self.key_of(obj)
        self.put_any(key, obj, self.find_any(key), rejected)
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
            DecodeError: The stored object does not fit the object type.
        """
        return self.get_by_key(self.key_of(obj))

    def get_by_key(self, key: str) -> T | None:
        """Return the object of a key, or None.

        Raises:
            ConfigError: The key is not a string.
            DecodeError: The stored object does not fit the object type.
        """
        try:
            namespace = key.rpartition("/")[0]
            part = self._parts.get(namespace)
        except (AttributeError, TypeError):
            require_text("key", key)
            raise
        if part is not None and (obj := part.get(key)) is not None:
            return obj
        if (unfit := self._undecodable.get(key)) is not None:
            raise unfit.error
        part = self._parts.get(namespace)  # another thread may have put it there just now
        return None if part is None else part.get(key)

    def find_any(self, key: str) -> T | UndecodableObject | None:
        """Return what is stored under a key, also an UndecodableObject, or None. For the thread that writes."""
        part = self._parts.get(key.rpartition("/")[0])
        obj = None if part is None else part.get(key)
        return self._undecodable.get(key) if obj is None and self._undecodable else obj

    def find_fitting(self, key: str) -> T | None:
        """Return the object of a key if it fits the object type, else None."""
        part = self._parts.get(key.rpartition("/")[0])
        return None if part is None else part.get(key)

    def undecodable(self) -> builtins.list[UndecodableObject]:
        """Return the stored objects that do not fit the object type, as a new list."""
        return builtins.list(self._undecodable.values())

    @property
    def undecodable_count(self) -> int:
        """How many stored objects do not fit the object type."""
        return len(self._undecodable)

    def list(self) -> builtins.list[T]:
        """Return all objects that fit the object type, one namespace after the other, as a new list."""
        parts = builtins.list(self._parts.values())
        return builtins.list(chain.from_iterable([part.values() for part in parts]))

    def list_keys(self) -> builtins.list[str]:
        """Return all keys in the order of ``list``, as a new list; those of undecodable objects at the end."""
        keys = builtins.list(chain.from_iterable(builtins.list(self._parts.values())))
        return builtins.list(dict.fromkeys((*keys, *self._undecodable))) if self._undecodable else keys

    def list_keys_by_parts(self) -> Iterator[builtins.list[str]]:
        """Yield the keys of one namespace after the other, for callers that pause in between.

        Those of undecodable objects are left out.
        """
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
        await run_in_slices(self._replace(snapshot(objects), resource_version))

    def bookmark(self, resource_version: str) -> None:
        """Record that every event up to this version was delivered."""
        self._version = resource_version

    def resync(self) -> None:
        """Do nothing: a resync repeats the store's objects to others."""

    def __len__(self) -> int:
        return sum(map(len, builtins.list(self._parts.values()))) + len(self._undecodable)

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, str):
            return False
        return self.find_any(key) is not None or self.find_fitting(key) is not None

    def exchange(self, key: str, old: T, new: T) -> None:
        """Replace a stored object by another form of it, unless it has changed."""
        if self.find_fitting(key) is old:
            self._parts[key.rpartition("/")[0]][key] = new

    def put(
        self, key: str, obj: T, rejected: builtins.list[RejectedObjectError]
    ) -> T | UndecodableObject | None:
        """Store an object under a given key; return the object that it replaces, which may be an UndecodableObject.

        Args:
            key: Its key.
            obj: The object, which is packed if the store packs. Not an UndecodableObject: see ``put_undecodable``.
            rejected: Gets the errors of index functions; the object is stored all the same.
        """
        kept = obj if self._pack is None else self._pack(obj)  # first, because it may raise
        namespace = key.rpartition("/")[0]
        part = self._parts.get(namespace)
        if part is None:
            part = self._parts[namespace] = {}
        old: T | UndecodableObject | None = part.get(key)
        part[key] = kept
        if self._undecodable:
            old = self._undecodable.pop(key, old)
        if version := resource_version_of(obj):
            self._version = version
        for index in self._maintained:
            index.put(key, obj, rejected)
        return old

    def put_any(self, key: str, obj: Any, old: Any, rejected: builtins.list[RejectedObjectError]) -> None:
        """Store an object, which may be an UndecodableObject, under a given key.

        Args:
            key: Its key.
            obj: The object.
            old: What is known under its key, here or in the store that this one will replace; None for nothing.
            rejected: As for ``put``.
        """
        if isinstance(obj, UndecodableObject):
            self.put_undecodable(key, obj.after(old))
        else:
            self.put(key, obj, rejected)

    def put_undecodable(self, key: str, obj: UndecodableObject) -> None:
        """Store an object that does not fit the object type, under a given key, in place of what is stored there."""
        self._undecodable[key] = obj
        self._forget_fitting(key)
        self._version = obj.resource_version or self._version
        for index in self._maintained:
            index.remove(key)

    def remove(
        self, key: str, obj: T | DeletedFinalStateUnknown[Any] | None = None
    ) -> T | UndecodableObject | None:
        """Remove the object of a key, if any, and return it, which may be an UndecodableObject.

        Args:
            key: Its key.
            obj: Its last known state.
        """
        if not isinstance(obj, (DeletedFinalStateUnknown, ExplicitKey)):
            self._version = resource_version_of(obj) or self._version
        old = self._forget_fitting(key)
        for index in self._maintained:
            index.remove(key)
        return self._undecodable.pop(key, old) if self._undecodable else old

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
        unfit = {} if instead_of is None else {**self._undecodable}
        if unfit or fresh._undecodable:
            unfit = {key: obj for key, obj in unfit.items() if key not in fresh} | fresh._undecodable
            self._undecodable = self._undecodable | unfit
        if instead_of is None:
            self._parts = fresh._parts
        else:
            for key in fresh._undecodable:
                self._forget_fitting(key)
            for namespace, part in fresh._parts.items():
                self._parts.setdefault(namespace, part).update(part)
            for key in instead_of:
                self._forget_fitting(key)
                unfit.pop(key, None)
        self._undecodable = unfit
        self._version = resource_version

    def _pairs(self) -> Iterator[tuple[str, T]]:
        return chain.from_iterable(part.items() for part in self._parts.values())

    def _forget_fitting(self, key: str) -> T | None:
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
            known = self.find_any(key)
            listed = known if isinstance(obj, ExplicitKey) else obj
            if listed is not None and (listed is obj or key not in fresh):
                fresh.put_any(key, listed, known, rejected)
        yield from self.catch_up(fresh, rejected)
        self.take_over(fresh, resource_version)
        RejectedObjectError.raise_first(rejected)
