"""One index of an Indexer: which keys are listed under which value (client-go ``thread_safe_store.go``)."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from ..errors import IndexFuncError, RejectedObjectError
from ..objects.keys import namespace_of, resource_version_of

T = TypeVar("T")

IndexFunc = Callable[[T], Iterable[str]]
"""The values under which an object is listed in an index."""


def meta_namespace_index_func(obj: Any) -> list[str]:
    """Lists an object under its namespace (``MetaNamespaceIndexFunc``)."""
    return [namespace_of(obj)]


FEW = 8
"""Values that are looked through as quickly as a set of them is made."""


class Bucket(msgspec.Struct, gc=False):
    """The keys listed under one value, in the order of their coming."""

    value: str
    keys: dict[str, None]


class Index:
    """The buckets of an index, and the values of those that each key is in.

    A key that is listed once, as most are, costs two entries of dicts; the garbage collector sees neither.

    Args:
        name: For errors.
        func: Gives an object's values.
    """

    def __init__(self, name: str, func: IndexFunc[Any]) -> None:
        self.name = name
        self.func = func
        self._buckets: dict[str, Bucket] = {}
        self._listed: dict[str, str | tuple[str, ...]] = {}

    def keys(self, value: str) -> Iterable[str]:
        """The keys listed under a value."""
        bucket = self._buckets.get(value)
        return () if bucket is None else bucket.keys

    def values_of(self, key: str, obj: Any) -> tuple[str, ...]:
        """An object's values, each once. Raises IndexFuncError."""
        try:
            values = self.func(obj)
            if type(values) is list and len(values) == 1 and type(values[0]) is str:
                return (values[0],)
            found = tuple(dict.fromkeys(values))
            if isinstance(values, str) or not all(isinstance(value, str) for value in found):
                raise TypeError(f"it returned {values!r}; it must return a list of strings")
            return found
        except (Exception, CancelledError) as error:  # a plain function: nobody cancels us in it
            raise IndexFuncError(self.name, key, error, resource_version_of(obj)) from error

    def put(self, key: str, obj: Any, rejected: list[RejectedObjectError]) -> None:
        """List an object; under nothing, with an error, if its values cannot be had."""
        values: tuple[str, ...] = ()
        try:
            values = self.values_of(key, obj)
        except IndexFuncError as error:
            rejected.append(error)
        self._list(key, values)

    def remove(self, key: str) -> None:
        """List a key under nothing."""
        self._list(key, ())

    def values(self) -> list[str]:
        """The values under which anything is listed."""
        return list(self._buckets)

    def fill(self, items: Iterable[tuple[str, Any]], rejected: list[RejectedObjectError]) -> None:
        """List these objects."""
        for key, obj in items:
            self.put(key, obj, rejected)

    def clear(self) -> None:
        """List nothing."""
        self._buckets = {}
        self._listed = {}

    def fresh(self) -> Index:
        """An index to be filled aside and then taken over."""
        return FreshIndex(self)

    def take_over(self, fresh: Index, instead_of: Iterable[str] | None) -> None:
        """Have what a fresh index has, instead of these keys or of all."""
        if instead_of is None:
            self._buckets, self._listed = fresh._buckets, fresh._listed
            return
        assert isinstance(fresh, FreshIndex)
        for key in instead_of:
            self.remove(key)
        if len(fresh.changed) >= len(fresh._listed) and self._listed.keys().isdisjoint(fresh.changed):
            self._merge(fresh)
        else:
            for key in fresh.changed:
                self._list(key, fresh._values(key))

    def _merge(self, other: Index) -> None:
        """Have what another index has, which lists other keys: much faster than one by one."""
        for value, bucket in other._buckets.items():
            mine = self._buckets.setdefault(value, bucket)
            mine.keys.update(bucket.keys)
        self._listed.update(other._listed)

    def _values(self, key: str) -> tuple[str, ...]:
        listed = self._listed.get(key, ())
        return (listed,) if isinstance(listed, str) else listed

    def _list(self, key: str, values: tuple[str, ...]) -> None:
        """List a key under these values and no other; where it was it keeps its place."""
        listed = self._listed.get(key)
        if listed is None and len(values) == 1:
            self._listed[key] = self._put_in(key, values[0])
            return
        old = self._values(key)
        if old == values:
            return
        kept = values if len(values) <= FEW else frozenset(values)
        for value in old:
            if value not in kept:
                self._unlist(key, value)
        shared = tuple(self._put_in(key, value) for value in values)
        if shared:
            self._listed[key] = shared[0] if len(shared) == 1 else shared
        else:
            del self._listed[key]

    def _put_in(self, key: str, value: str) -> str:
        """List a key under a value; the value as it is kept for all keys."""
        bucket = self._buckets.get(value)
        if bucket is None:
            bucket = self._buckets[value] = Bucket(value, {})
        bucket.keys[key] = None
        return bucket.value

    def _unlist(self, key: str, value: str) -> None:
        bucket = self._buckets[value]
        bucket.keys.pop(key, None)
        if not bucket.keys:
            del self._buckets[value]


class FreshIndex(Index):
    """An index that is filled aside, for another to take it over.

    Args:
        of: The other one.

    Attributes:
        changed: The keys that the other one lists otherwise. To compare all in the end would hold the event loop.
    """

    def __init__(self, of: Index) -> None:
        super().__init__(of.name, of.func)
        self._of = of
        self.changed: list[str] = []

    def put(self, key: str, obj: Any, rejected: list[RejectedObjectError]) -> None:
        super().put(key, obj, rejected)
        if self._listed.get(key) != self._of._listed.get(key):
            self.changed.append(key)


class NamespaceIndex(Index):
    """The index of ``meta_namespace_index_func`` where keys begin with the namespace: a store is in such parts itself.

    Args:
        name: For errors.
        parts: Gives the store's parts.
    """

    def __init__(self, name: str, parts: Callable[[], Mapping[str, Mapping[str, Any]]]) -> None:
        super().__init__(name, meta_namespace_index_func)
        self._parts = parts

    def keys(self, value: str) -> Iterable[str]:
        return self._parts().get(value, ())

    def values(self) -> list[str]:
        return list(self._parts())

    def put(self, key: str, obj: Any, rejected: list[RejectedObjectError]) -> None:
        """It is there."""

    def remove(self, key: str) -> None:
        """It is gone."""

    def fill(self, items: Iterable[tuple[str, Any]], rejected: list[RejectedObjectError]) -> None:
        """All are there."""

    def fresh(self) -> Index:
        return self

    def take_over(self, fresh: Index, instead_of: Iterable[str] | None) -> None:
        """The store has."""
