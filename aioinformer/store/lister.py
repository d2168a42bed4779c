"""Lister: read-only access to a cache (client-go ``tools/cache/listers.go``)."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from .._core.callables import require_plain
from .._core.checks import require_text
from .._core.coop import Budget
from .._core.forks import forked_error
from ..errors import ConfigError, NotFoundError
from ..objects.keys import labels_of, namespace_of
from ..objects.labels import LabelSelector
from ..objects.undecodable import UndecodableObject
from .indexer import NAMESPACE_INDEX, Indexer

T = TypeVar("T")

Selector = str | LabelSelector | Mapping[str, Any] | Callable[[T], bool] | None
"""Which objects to list:

- a label selector, as text (kubectl's ``-l``) or parsed;
- a mapping of required labels, or an object's ``spec.selector`` with ``matchLabels`` and ``matchExpressions``;
- a predicate on the object;
- None for all.
"""


class Lister(Generic[T]):
    """Reads an indexer, never the API server.

    Objects that do not fit the object type are left out of lists, whatever the selector; see ``undecodable``.

    In a process that was forked since the informer's start, its methods raise ForkedError: nothing keeps that copy of
    the cache current. ``informer.store`` and ``informer.indexer`` read the copy all the same.

    Args:
        indexer: The cache. With an index named ``"namespace"`` a namespace is found without a scan.
        resource: The name of the objects in errors.
    """

    def __init__(self, indexer: Indexer[T], resource: str = "object") -> None:
        self._indexer = indexer
        self._resource = resource

    def list(self, selector: Selector[T] = None) -> builtins.list[T]:
        """Return the objects that match a selector, as a new list.

        Raises:
            SelectorError: The label selector cannot be parsed.
            ConfigError: The selector has an unknown type.
            ForkedError: The process was forked since the informer's start.
        """
        return _select(_current(self._indexer, self._resource).list(), selector)

    async def list_in_turns(self, selector: Selector[T] = None) -> builtins.list[T]:
        """As ``list``, of a snapshot, in slices: other tasks run meanwhile. Raises as ``list``."""
        return await _in_turns(_current(self._indexer, self._resource).list(), selector)

    def get(self, name: str) -> T:
        """Return the object of a ``"namespace/name"``, or of a name if it is cluster-scoped.

        Raises:
            NotFoundError: There is no such object.
            DecodeError: The object does not fit the object type.
            ConfigError: The name is not a string.
            ForkedError: The process was forked since the informer's start.
        """
        require_text("name", name)
        obj = _current(self._indexer, self._resource).get_by_key(name)
        if obj is None:
            raise NotFoundError(name, self._resource, self._hint(name))
        return obj

    def undecodable(self) -> builtins.list[UndecodableObject]:
        """Return the objects that do not fit the object type, as a new list."""
        return _current(self._indexer, self._resource).undecodable()

    def _hint(self, name: str) -> str:
        indexer = self._indexer
        if "/" in name or NAMESPACE_INDEX not in indexer.indexers:
            return ""
        namespaced = any(indexer.list_index_func_values(NAMESPACE_INDEX))
        return f"these objects have a namespace: use a key such as 'default/{name}'" if namespaced else ""

    def namespace(self, ns: str) -> NamespaceLister[T]:
        """Return a lister of one namespace; ``""`` means all, as upstream's NamespaceAll.

        Raises:
            ConfigError: The namespace is not a string. (None would mean all.)
        """
        require_text("namespace", ns)
        return NamespaceLister(self._indexer, ns, self._resource)


class NamespaceLister(Generic[T]):
    """Reads one namespace of an indexer. ``Lister.namespace`` returns one."""

    def __init__(self, indexer: Indexer[T], namespace: str, resource: str) -> None:
        self._indexer = indexer
        self._namespace = namespace
        self._resource = resource

    def list(self, selector: Selector[T] = None) -> builtins.list[T]:
        """Return the namespace's objects that match a selector, as a new list.

        Raises:
            SelectorError: The label selector cannot be parsed.
            ConfigError: The selector has an unknown type.
            ForkedError: The process was forked since the informer's start.
        """
        return _select(self._objects(), selector)

    async def list_in_turns(self, selector: Selector[T] = None) -> builtins.list[T]:
        """As ``list``, of a snapshot, in slices: other tasks run meanwhile. Raises as ``list``."""
        return await _in_turns(self._objects(), selector)

    def get(self, name: str) -> T:
        """Return the object of a name.

        Raises:
            NotFoundError: There is no such object.
            DecodeError: The object does not fit the object type.
            ConfigError: The name is not a string.
            ForkedError: The process was forked since the informer's start.
        """
        require_text("name", name)
        key = f"{self._namespace}/{name}" if self._namespace else name
        obj = _current(self._indexer, self._resource).get_by_key(key)
        if obj is None:
            raise NotFoundError(key, self._resource)
        return obj

    def undecodable(self) -> builtins.list[UndecodableObject]:
        """Return the namespace's objects that do not fit the object type, as a new list."""
        return [
            obj
            for obj in _current(self._indexer, self._resource).undecodable()
            if self._namespace in ("", obj.namespace)
        ]

    def _objects(self) -> builtins.list[T]:
        indexer = _current(self._indexer, self._resource)
        if not self._namespace:
            return indexer.list()
        if NAMESPACE_INDEX in indexer.indexers:
            return indexer.by_index(NAMESPACE_INDEX, self._namespace)
        return [obj for obj in indexer.list() if namespace_of(obj) == self._namespace]


def _current(indexer: Indexer[T], resource: str) -> Indexer[T]:
    """Return the indexer, unless it is a copy of the parent process's, which nothing keeps current.

    Raises:
        ForkedError: It is such a copy.
    """
    if (process := indexer.kept_current_in) is not None and process.was_forked:
        raise forked_error(f"the informer of {resource}")
    return indexer


def _select(objects: builtins.list[T], selector: Selector[T]) -> builtins.list[T]:
    picks = _predicate(selector)
    return objects if picks is None else [obj for obj in objects if picks(obj)]


async def _in_turns(objects: builtins.list[T], selector: Selector[T]) -> builtins.list[T]:
    picks, budget = _predicate(selector), Budget()
    if picks is None:
        return objects
    picked: builtins.list[T] = []
    for obj in objects:
        if picks(obj):
            picked.append(obj)
        if budget.is_spent():
            await budget.pause()
    return picked


def _predicate(selector: Selector[T]) -> Callable[[T], bool] | None:
    """Return a selector as a predicate; None if it matches every object."""
    if selector is None or isinstance(selector, (str, LabelSelector, Mapping)):
        if not selector:
            return None
        matches = LabelSelector.of(selector).matches
        return lambda obj: matches(labels_of(obj))
    if not callable(selector):
        raise ConfigError(
            f"a selector must be a label selector such as 'app=web', or a function of an object, not {selector!r}"
        )
    require_plain("a selector", selector)
    return selector
