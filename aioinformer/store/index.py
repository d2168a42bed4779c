"""Index: which keys have which value (client-go ``thread_safe_store.go``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from .._core.cancellation import CALL_ERRORS
from ..errors import IndexFuncError, RejectedObjectError
from ..objects.keys import namespace_of, resource_version_of

T = TypeVar("T")

IndexFunc = Callable[[T], Iterable[str]]
"""Returns the index values of an object."""


def meta_namespace_index_func(obj: Any) -> list[str]:
    """Return an object's namespace as its index value (``MetaNamespaceIndexFunc``)."""
    return [namespace_of(obj)]


FEW = 8
"""Values up to which a search in a tuple is as fast as building a set."""


class Bucket(msgspec.Struct, gc=False):
    """The keys with one value, in order of arrival."""

    value: str
    keys: dict[str, None]


class Index:
    """One index: a bucket of keys for each value, and the values of each key.

    A key with one value, as most are, costs two dict entries; the garbage collector tracks neither.

    Args:
        name: For errors.
        func: Returns an object's values.
    """

    def __init__(self, name: str, func: IndexFunc[Any]) -> None:
        self.name = name
        self.func = func
        self._buckets: dict[str, Bucket] = {}
        self._listed: dict[str, str | tuple[str, ...]] = {}

    def keys(self, value: str) -> Iterable[str]:
        """Return the keys with a value."""
        bucket = self._buckets.get(value)
        return () if bucket is None else bucket.keys

    def values_of(self, key: str, obj: Any) -> tuple[str, ...]:
        """Return an object's values without duplicates. Raises IndexFuncError."""
        try:
            values = self.func(obj)
            if type(values) is list and len(values) == 1 and type(values[0]) is str:
                return (values[0],)
            if values is None:
                raise TypeError(
                    "it returned None; it must return a list of strings; to index a field, pass its path, such as "
                    "'spec.nodeName', instead of a function"
                )
            unique = tuple(dict.fromkeys(values))
            if isinstance(values, str) or not all(isinstance(value, str) for value in unique):
                raise TypeError(f"it returned {_kind_of(values)}; it must return a list of strings")
            return unique
        except CALL_ERRORS as error:
            raise IndexFuncError(self.name, key, error, resource_version_of(obj)) from error

    def put(self, key: str, obj: Any, rejected: list[RejectedObjectError]) -> None:
        """Index an object; if the index function raises, record the error and index it under no value."""
        values: tuple[str, ...] = ()
        try:
            values = self.values_of(key, obj)
        except IndexFuncError as error:
            rejected.append(error)
        self._list(key, values)

    def remove(self, key: str) -> None:
        """Remove a key."""
        self._list(key, ())

    def values(self) -> list[str]:
        """Return the values that have keys."""
        return list(self._buckets)

    def fill(self, items: Iterable[tuple[str, Any]], rejected: list[RejectedObjectError]) -> None:
        """Index many objects."""
        for key, obj in items:
            self.put(key, obj, rejected)

    def clear(self) -> None:
        """Remove all keys."""
        self._buckets = {}
        self._listed = {}

    def fresh(self) -> Index:
        """Return an empty index of the same kind, to fill and then pass to ``take_over``."""
        return FreshIndex(self)

    def take_over(self, fresh: Index, instead_of: Iterable[str] | None) -> None:
        """Take the content of a fresh index, in place of these keys, or of all if None."""
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
        """Add the content of an index with other keys: much faster than key by key."""
        for value, bucket in other._buckets.items():
            mine = self._buckets.setdefault(value, bucket)
            mine.keys.update(bucket.keys)
        self._listed.update(other._listed)

    def _values(self, key: str) -> tuple[str, ...]:
        listed = self._listed.get(key, ())
        return (listed,) if isinstance(listed, str) else listed

    def _list(self, key: str, values: tuple[str, ...]) -> None:
        """Set the values of a key. It keeps its place in the buckets of values that it already had."""
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
        """Add a key to the bucket of a value; return the bucket's own string, which all keys share."""
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
    """An index that is filled while another one is in use, and then replaces its content.

    Args:
        of: The other index.

    Attributes:
        changed: The keys with other values than in the other index. Comparing all keys at the end would block the event
            loop.
    """

    def __init__(self, of: Index) -> None:
        super().__init__(of.name, of.func)
        self._of = of
        self.changed: list[str] = []

    def put(self, key: str, obj: Any, rejected: list[RejectedObjectError]) -> None:
        super().put(key, obj, rejected)
        if self._listed.get(key) != self._of._listed.get(key):
            self.changed.append(key)

    def remove(self, key: str) -> None:
        super().remove(key)
        if key in self._of._listed:
            self.changed.append(key)


class NamespaceIndex(Index):
    """The index by namespace of a store whose keys begin with the namespace: it reads the store's own parts.

    Args:
        name: For errors.
        parts: Returns the store's parts.
    """

    def __init__(self, name: str, parts: Callable[[], Mapping[str, Mapping[str, Any]]]) -> None:
        super().__init__(name, meta_namespace_index_func)
        self._parts = parts

    def keys(self, value: str) -> Iterable[str]:
        return self._parts().get(value, ())

    def values(self) -> list[str]:
        return list(self._parts())

    def put(self, key: str, obj: Any, rejected: list[RejectedObjectError]) -> None:
        """Do nothing: the store has it."""

    def fill(self, items: Iterable[tuple[str, Any]], rejected: list[RejectedObjectError]) -> None:
        """Do nothing: the store has all."""

    def fresh(self) -> Index:
        return self

    def take_over(self, fresh: Index, instead_of: Iterable[str] | None) -> None:
        """Do nothing: the store has done it."""


def _kind_of(values: Any) -> str:
    """Return the type of what an index function returned, and of its items, without the values."""
    kinds = sorted({type(value).__name__ for value in values}) if isinstance(values, (list, tuple)) else ()
    return f"a {type(values).__name__}{' of ' if kinds else ''}{', '.join(kinds)}"
