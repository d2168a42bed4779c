"""Indexer: a store that also finds objects by index values (client-go ``thread_safe_store.go``)."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import chain
from typing import Any, TypeVar

from .._core.callables import require_arguments, require_plain
from .._core.coop import Budget
from ..errors import ConfigError, IndexerConflictError, RejectedObjectError, UnknownIndexError
from ..objects.fields import field
from ..objects.keys import (
    KeyFunc,
    deletion_handling_meta_namespace_key_func,
    key_and_version,
    meta_namespace_key_func,
)
from .index import Index, IndexFunc, NamespaceIndex, meta_namespace_index_func
from .store import Store

T = TypeVar("T")

Indexers = Mapping[str, IndexFunc[T] | str]
"""Index functions by name; a path such as ``"spec.nodeName"`` indexes objects by that field."""

NAMESPACE_INDEX = "namespace"


class Indexer(Store[T]):
    """A store with named indexes.

    An index function is called once for each stored object. If it raises, the object is stored without that index,
    and the write then raises IndexFuncError. It is never called for an UndecodableObject, which is in no index.

    In another thread (see Store) an index may still list an object under the value that it had a moment ago.

    Args:
        key_func: Returns an object's key.
        indexers: Index functions, or paths of fields (see ``field``), by name; more can be added at any time.
        pack: Returns the form in which an object is stored.
        object_type: The type of the objects, to check paths against the fields of a Struct.
    """

    def __init__(
        self,
        key_func: KeyFunc = meta_namespace_key_func,
        indexers: Indexers[Any] | None = None,
        *,
        pack: Callable[[T], T] | None = None,
        object_type: type[T] | None = None,
    ) -> None:
        super().__init__(key_func, pack=pack)
        self._object_type = object_type
        self._indexes: dict[str, Index] = {}  # replaced, never changed: other threads read it
        self._begun: dict[str, Index] = {}  # still being filled
        self._replacements = 0
        self.add_indexers(indexers or {})

    @property
    def indexers(self) -> dict[str, IndexFunc[T]]:
        """The index functions by name; a copy."""
        return {name: index.func for name, index in self._indexes.items()}

    def add_indexers(self, indexers: Indexers[T]) -> None:
        """Add indexes, all or none. Indexes the stored objects at once, which blocks the event loop for large stores.

        ``add_indexers_in_turns`` does not block it.

        Raises:
            IndexerConflictError: A name is taken.
            ConfigError: A path is invalid or not a field of the object type, a function is not a plain function of one
                object, or ``indexers`` is not a mapping.
            IndexFuncError: A function raised for a stored object; the indexes are added without those entries.
        """
        added = self._make(indexers)
        rejected: builtins.list[RejectedObjectError] = []
        for index in added.values():
            index.fill(self._pairs(), rejected)
        self._set_indexes(self._indexes | added)
        RejectedObjectError.raise_first(rejected)

    async def add_indexers_in_turns(self, indexers: Indexers[T]) -> None:
        """As ``add_indexers``, in slices: other tasks run meanwhile, and may write. The indexes exist at the end.

        Cancellation: nothing is added.

        Raises:
            IndexerConflictError: A name is taken, or about to be taken.
            ConfigError: A path is invalid or not a field of the object type, a function is not a plain function of one
                object, or ``indexers`` is not a mapping.
            IndexFuncError: A function raised for a stored object; the indexes are added without those entries.
        """
        added = self._make(indexers)
        self._begun |= added
        self._set_indexes(self._indexes)
        try:
            rejected = await self._fill_in_turns(added)
            self._indexes = self._indexes | added
        finally:
            for name in added:
                del self._begun[name]
            self._set_indexes(self._indexes)
        RejectedObjectError.raise_first(rejected)

    def index(self, name: str, obj: T) -> builtins.list[T]:
        """Return the objects that share an index value with an object, which need not be stored.

        Raises:
            UnknownIndexError: There is no such index.
            IndexFuncError: The index function raised for ``obj``.
        """
        index = self.index_named(name)
        values = index.values_of(key_and_version(obj)[0], obj)
        return self._get_all(dict.fromkeys(chain.from_iterable(map(index.keys, values))))

    def index_keys(self, name: str, value: str) -> builtins.list[str]:
        """Return the sorted keys of the objects with an index value. Raises UnknownIndexError.

        Of the index by namespace that every factory's informer has, these are also the keys of undecodable objects.
        """
        index = self.index_named(name)
        keys = index.keys(value)
        if self._undecodable and isinstance(index, NamespaceIndex):
            unfit = builtins.list(self._undecodable)  # other threads may read
            keys = {*keys, *(key for key in unfit if key.rpartition("/")[0] == value)}
        return sorted(keys)

    def by_index(self, name: str, value: str) -> builtins.list[T]:
        """Return the objects with an index value. Raises UnknownIndexError."""
        index = self.index_named(name)
        if isinstance(index, NamespaceIndex):
            return builtins.list(self._parts.get(value, {}).values())
        return self._get_all(builtins.list(index.keys(value)))

    def list_index_func_values(self, name: str) -> builtins.list[str]:
        """Return the values of an index that have objects. Raises UnknownIndexError."""
        return self.index_named(name).values()

    def fresh(self) -> Indexer[T]:
        fresh = Indexer[T](self.key_of, pack=self._pack)
        fresh._set_indexes({name: index.fresh() for name, index in self._indexes.items()})
        return fresh

    def catch_up(self, fresh: Store[T], rejected: builtins.list[RejectedObjectError]) -> Iterator[None]:
        assert isinstance(fresh, Indexer)
        while added := {
            name: index.fresh() for name, index in self._indexes.items() if name not in fresh._indexes
        }:
            for key, obj in fresh._pairs():
                for index in added.values():
                    index.put(key, obj, rejected)
                yield
            fresh._set_indexes(fresh._indexes | added)

    def take_over(
        self, fresh: Store[T], resource_version: str, instead_of: Collection[str] | None = None
    ) -> None:
        assert isinstance(fresh, Indexer)
        super().take_over(fresh, resource_version, instead_of)
        for name, index in self._indexes.items():
            index.take_over(fresh._indexes[name], instead_of)
        self._replacements += 1

    def index_named(self, name: str) -> Index:
        """Return an index by name. Raises UnknownIndexError."""
        try:
            return self._indexes[name]
        except KeyError:
            raise UnknownIndexError(name, self._indexes) from None

    def _set_indexes(self, indexes: dict[str, Index]) -> None:
        self._indexes = indexes
        self._maintained = tuple(
            index
            for index in (*indexes.values(), *self._begun.values())
            if not isinstance(index, NamespaceIndex)  # the store maintains its parts
        )

    def _make(self, indexers: Indexers[T]) -> dict[str, Index]:
        """Return new indexes; check that their names are free."""
        if not isinstance(indexers, Mapping):
            raise ConfigError(f"indexers must map names to index functions or field paths, not {indexers!r}")
        if taken := sorted((self._indexes.keys() | self._begun.keys()) & indexers.keys()):
            raise IndexerConflictError(f"indexer conflict: {', '.join(taken)} already exists")
        return {name: self._make_one(name, func) for name, func in indexers.items()}

    def _make_one(self, name: str, func: IndexFunc[T] | str) -> Index:
        if isinstance(func, str):
            path = field(func)
            path.require_known(self._object_type)
            return Index(name, path.values)
        if func is meta_namespace_index_func and self.key_of is deletion_handling_meta_namespace_key_func:
            return NamespaceIndex(name, lambda: self._parts)
        what = f"the index {name!r}"
        require_arguments(what, func, ("obj",))
        require_plain(what, func, may_yield=True)
        return Index(name, func)

    def _get_all(self, keys: Collection[str]) -> builtins.list[T]:
        """Return the objects of keys, a collection that does not change meanwhile."""
        parts = self._parts
        try:
            return [parts[key.rpartition("/")[0]][key] for key in keys]
        except KeyError:  # another thread reads, and the object was removed meanwhile
            return [obj for key in keys if (obj := self.find_fitting(key)) is not None]

    async def _fill_in_turns(self, added: dict[str, Index]) -> builtins.list[RejectedObjectError]:
        """Index the stored objects in new indexes; ``put`` indexes what is written meanwhile."""
        budget = Budget()
        while True:
            rejected: builtins.list[RejectedObjectError] = []
            replacements = self._replacements
            for key in chain.from_iterable(self.list_keys_by_parts()):
                if (obj := self.find_fitting(key)) is not None:
                    for index in added.values():
                        index.put(key, obj, rejected)
                if budget.is_spent():
                    await budget.pause()
                    if replacements != self._replacements:
                        break
            else:
                return rejected
            for index in added.values():
                index.clear()
