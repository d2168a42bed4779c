"""Store: objects by key (client-go ``tools/cache/store.go``)."""

from __future__ import annotations

import builtins
from collections.abc import Collection, Iterable
from typing import Any, Generic, TypeVar

from ..deltas import DeletedFinalStateUnknown
from ..errors import RejectedObjectError
from ..keys import ExplicitKey, KeyFunc, keyed_by, meta_namespace_key_func, resource_version_of
from ..objects import KubeObject

T = TypeVar("T")


class Store(Generic[T]):
    """Objects by key. Plain methods: no other task can run in the middle of one.

    Args:
        key_func: Gives an object's key.
    """

    def __init__(self, key_func: KeyFunc = meta_namespace_key_func) -> None:
        self.key_of: KeyFunc = keyed_by(key_func)
        """Gives an object's or tombstone's key; raises KeyFuncError."""
        self._items: dict[str, T] = {}
        self._version = ""

    @property
    def last_store_sync_resource_version(self) -> str:
        """The version of what was stored or deleted last: an object's, a Replace's or a Bookmark's
        (``LastStoreSyncResourceVersion``).

        Fed through a RealFIFO with atomic events and bookmarks: what happened up to it is here. Through a
        DeltaFIFO it is no more than the last object's, as the objects of a list are in no order. Tombstones and
        objects without a version leave it as it is.
        """
        return self._version

    def add(self, obj: T) -> None:
        """Keep an object, in place of an older one of its key.

        Raises:
            KeyFuncError: The object has no key.
        """
        rejected: builtins.list[RejectedObjectError] = []
        self.put(self.key_of(obj), obj, rejected)
        RejectedObjectError.raise_first(rejected)

    def update(self, obj: T) -> None:
        """As ``add``."""
        self.add(obj)

    def delete(self, obj: T | DeletedFinalStateUnknown[Any]) -> None:
        """Forget the object of this one's key, if there is one; ``obj`` may be a tombstone.

        Raises:
            KeyFuncError: The object has no key.
        """
        self.remove(self.key_of(obj), obj)

    def get(self, obj: T | DeletedFinalStateUnknown[Any]) -> T | None:
        """The stored object of this one's key, or None.

        Raises:
            KeyFuncError: The object has no key.
        """
        return self._items.get(self.key_of(obj))

    def get_by_key(self, key: str) -> T | None:
        """The object of a key, or None."""
        return self._items.get(key)

    def list(self) -> builtins.list[T]:
        """All objects; the list is the caller's own."""
        return builtins.list(self._items.values())

    def list_keys(self) -> builtins.list[str]:
        """All keys; the list is the caller's own."""
        return builtins.list(self._items)

    def replace(self, objects: Iterable[T], resource_version: str = "") -> None:
        """Keep just these objects. An ExplicitKey among them keeps what is stored for that key.

        Raises:
            RejectedObjectError: Some had no key; all others were taken, and the error's ``others`` are the rest.
        """
        fresh = self.fresh()
        rejected: builtins.list[RejectedObjectError] = []
        for obj in objects:
            try:
                key = self.key_of(obj)
            except RejectedObjectError as error:
                rejected.append(error)
                continue
            if not isinstance(obj, ExplicitKey):
                fresh.put(key, obj, rejected)
            elif key in self._items and key not in fresh:
                fresh.put(key, self._items[key], rejected)
        rejected += self.take_over(fresh, resource_version)
        RejectedObjectError.raise_first(rejected)

    def bookmark(self, resource_version: str) -> None:
        """Note that everything up to this version was given."""
        self._version = resource_version

    def resync(self) -> None:
        """Nothing to do: a store is what others are synced with."""

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: object) -> bool:
        return key in self._items

    def put(self, key: str, obj: T, rejected: builtins.list[RejectedObjectError]) -> T | None:
        """Keep an object whose key is known already; the one that was there before it.

        Args:
            key: Its key.
            obj: The object.
            rejected: Gets the errors of indexes that could not list it; it is stored all the same.
        """
        old = self._items.get(key)
        self._items[key] = obj
        if version := obj.resource_version if isinstance(obj, KubeObject) else resource_version_of(obj):
            self._version = version
        return old

    def remove(self, key: str, obj: T | DeletedFinalStateUnknown[Any] | None = None) -> T | None:
        """Forget the object of a key, if there is one; the one that was there.

        Args:
            key: Its key.
            obj: Its last state, as far as it is known.
        """
        if not isinstance(obj, (DeletedFinalStateUnknown, ExplicitKey)):
            self._version = resource_version_of(obj) or self._version
        return self._items.pop(key, None)

    def fresh(self) -> Store[T]:
        """An empty store of the same kind, to be filled aside by ``put`` and then taken over."""
        return Store(self.key_of)

    def take_over(
        self, fresh: Store[T], resource_version: str, instead_of: Collection[str] | None = None
    ) -> builtins.list[RejectedObjectError]:
        """Have what a fresh store has, in one step.

        Args:
            fresh: What ``fresh`` gave; it is used up.
            resource_version: The list's.
            instead_of: Keys to forget; None forgets all that is not in the fresh store.

        Returns:
            The errors of indexes that could not list an object.
        """
        if instead_of is None:
            self._items = fresh._items
        else:
            for key in instead_of:
                self._items.pop(key, None)
            self._items |= fresh._items
        self._version = resource_version
        return []
