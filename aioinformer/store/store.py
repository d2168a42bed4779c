"""Store: objects by key (client-go ``tools/cache/store.go``)."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from ..deltas import DeletedFinalStateUnknown
from ..errors import RejectedObjectError
from ..keys import ExplicitKey, KeyFunc, keyed_by, meta_namespace_key_func

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
        self.remove(self.key_of(obj))

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
        fresh: dict[str, T] = {}
        rejected: builtins.list[RejectedObjectError] = []
        for obj in objects:
            try:
                key = self.key_of(obj)
            except RejectedObjectError as error:
                rejected.append(error)
                continue
            if not isinstance(obj, ExplicitKey):
                fresh[key] = obj
            elif key in self._items:
                fresh[key] = self._items[key]
        rejected += self._swap(fresh)
        RejectedObjectError.raise_first(rejected)

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
        return old

    def remove(self, key: str) -> None:
        """Forget the object of a key, if there is one."""
        self._items.pop(key, None)

    def _swap(self, items: dict[str, T]) -> builtins.list[RejectedObjectError]:
        self._items = items
        return []
