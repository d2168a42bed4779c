"""Indexer: a store that also finds objects by what they say (client-go ``thread_safe_store.go``)."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

from ..deltas import DeletedFinalStateUnknown
from ..errors import IndexerConflictError, IndexFuncError, RejectedObjectError, UnknownIndexError
from ..keys import KeyFunc, meta_namespace_key_func, namespace_of
from .store import Store

T = TypeVar("T")

IndexFunc = Callable[[Any], Iterable[str]]
"""The values under which an object is listed in an index."""

NAMESPACE_INDEX = "namespace"


def meta_namespace_index_func(obj: Any) -> builtins.list[str]:
    """Lists an object under its namespace (``MetaNamespaceIndexFunc``)."""
    return [namespace_of(obj)]


class Indexer(Store[T]):
    """A store with named indexes.

    An index function that raises loses nothing but its own entry: the object is stored, and the write then raises
    IndexFuncError. An index function is called once for each object stored.

    Args:
        key_func: Gives an object's key.
        indexers: Index functions by name; more can be added at any time.
    """

    def __init__(
        self,
        key_func: KeyFunc = meta_namespace_key_func,
        indexers: Mapping[str, IndexFunc] | None = None,
    ) -> None:
        super().__init__(key_func)
        self._indexes: dict[str, _Index] = {}
        self.add_indexers(indexers or {})

    @property
    def indexers(self) -> dict[str, IndexFunc]:
        """The index functions by name; a copy."""
        return {name: index.func for name, index in self._indexes.items()}

    def add_indexers(self, indexers: Mapping[str, IndexFunc]) -> None:
        """Add indexes; what is stored is indexed at once. All are added or none.

        Raises:
            IndexerConflictError: A name is taken.
            IndexFuncError: A function raised for a stored object; the indexes are added, without those entries.
        """
        if taken := sorted(self._indexes.keys() & indexers.keys()):
            raise IndexerConflictError(f"indexer conflict: {', '.join(taken)} already exists")
        added = {name: _Index(name, func) for name, func in indexers.items()}
        rejected = [error for index in added.values() for error in index.fill(self._items)]
        self._indexes |= added
        RejectedObjectError.raise_first(rejected)

    def index(self, name: str, obj: T) -> builtins.list[T]:
        """The objects that share a value of this index with an object (which need not be stored).

        Raises:
            UnknownIndexError: There is no such index.
            IndexFuncError: The index function raised for ``obj``.
        """
        index = self._index(name)
        values = index.values_of(self.key_of(obj), obj)
        keys = {key: None for value in values for key in index.keys(value)}
        return [self._items[key] for key in keys]

    def index_keys(self, name: str, value: str) -> builtins.list[str]:
        """The sorted keys of the objects listed under a value. Raises UnknownIndexError."""
        return sorted(self._index(name).keys(value))

    def by_index(self, name: str, value: str) -> builtins.list[T]:
        """The objects listed under a value. Raises UnknownIndexError."""
        items = self._items
        return [items[key] for key in self._index(name).keys(value)]

    def list_index_func_values(self, name: str) -> builtins.list[str]:
        """The values under which anything is listed. Raises UnknownIndexError."""
        return builtins.list(self._index(name).buckets)

    def _index(self, name: str) -> _Index:
        try:
            return self._indexes[name]
        except KeyError:
            raise UnknownIndexError(name, self._indexes) from None

    def put(self, key: str, obj: T, rejected: builtins.list[RejectedObjectError]) -> T | None:
        old = Store.put(self, key, obj, rejected)
        for index in self._indexes.values():
            rejected += index.put(key, obj)
        return old

    def remove(self, key: str, obj: T | DeletedFinalStateUnknown[Any] | None = None) -> T | None:
        old = super().remove(key, obj)
        for index in self._indexes.values():
            index.remove(key)
        return old

    def fresh(self) -> Indexer[T]:
        return Indexer(self.key_of, self.indexers)

    def take_over(
        self, fresh: Store[T], resource_version: str, instead_of: Collection[str] | None = None
    ) -> builtins.list[RejectedObjectError]:
        rejected = super().take_over(fresh, resource_version, instead_of)
        for name, index in self._indexes.items():
            indexed = fresh._indexes.get(name) if isinstance(fresh, Indexer) else None
            if indexed is None:  # it was added since
                indexed = _Index(name, index.func)
                rejected += indexed.fill(fresh._items)
            index.take_over(indexed, fresh._items, instead_of)
        return rejected


class _Index:
    """One index: the keys under each value, in the order of their coming, and the values of each key."""

    def __init__(self, name: str, func: IndexFunc) -> None:
        self.name = name
        self.func = func
        self.buckets: dict[str, dict[str, None]] = {}
        self._values: dict[str, tuple[str, ...]] = {}

    def keys(self, value: str) -> Iterable[str]:
        return self.buckets.get(value, ())

    def values_of(self, key: str, obj: Any) -> tuple[str, ...]:
        try:
            values = self.func(obj)
            if isinstance(values, str):
                raise TypeError(f"it returned {values!r}; it must return a list of strings")
            return tuple(dict.fromkeys(values))
        except Exception as error:
            raise IndexFuncError(self.name, key, error) from error

    def put(self, key: str, obj: Any) -> builtins.list[RejectedObjectError]:
        rejected: builtins.list[RejectedObjectError] = []
        try:
            values = self.values_of(key, obj)
        except IndexFuncError as error:
            values = ()
            rejected.append(error)
        self.put_values(key, values)
        return rejected

    def put_values(self, key: str, values: tuple[str, ...]) -> None:
        """List a key under these values and no other."""
        old = self._values.get(key, ())
        if values != old:
            self._unlist(key, (value for value in old if value not in values))
            for value in values:
                self.buckets.setdefault(value, {})[key] = None
            if values:
                self._values[key] = values
            else:
                del self._values[key]

    def remove(self, key: str) -> None:
        self._unlist(key, self._values.pop(key, ()))

    def fill(self, items: Mapping[str, Any]) -> builtins.list[RejectedObjectError]:
        """Index just these objects."""
        self.buckets = {}
        self._values = {}
        return [error for key, obj in items.items() for error in self.put(key, obj)]

    def take_over(self, other: _Index, keys: Iterable[str], instead_of: Iterable[str] | None) -> None:
        """Have what another index has, for these keys; or all that it has, and nothing else."""
        if instead_of is None:
            self.buckets, self._values = other.buckets, other._values
            return
        for key in instead_of:
            self.remove(key)
        for key in keys:
            self.put_values(key, other._values.get(key, ()))

    def _unlist(self, key: str, values: Iterable[str]) -> None:
        for value in values:
            bucket = self.buckets[value]
            bucket.pop(key, None)
            if not bucket:
                del self.buckets[value]
