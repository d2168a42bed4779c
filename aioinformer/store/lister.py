"""Lister: what users read (client-go ``tools/cache/listers.go``)."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from .._core.checks import require_text
from .._core.coop import Budget
from ..errors import ConfigError, NotFoundError
from ..handlers import require_plain
from ..objects.keys import labels_of, namespace_of
from ..objects.labels import LabelSelector
from .indexer import NAMESPACE_INDEX, Indexer

T = TypeVar("T")

Selector = str | LabelSelector | Mapping[str, Any] | Callable[[T], bool] | None
"""A label selector as kubectl's ``-l``, or parsed; the labels to be there; what the spec of an object selects, with
``matchLabels`` and ``matchExpressions``; a predicate on the object; None for all."""


class Lister(Generic[T]):
    """Reads an indexer, never the API server.

    Args:
        indexer: What to read; with an index named ``"namespace"`` a namespace is found without a scan.
        resource: What the objects are called in errors.
    """

    def __init__(self, indexer: Indexer[T], resource: str = "object") -> None:
        self._indexer = indexer
        self._resource = resource

    def list(self, selector: Selector[T] = None) -> builtins.list[T]:
        """The objects that a selector picks; the list is the caller's own.

        Raises:
            SelectorError: The label selector cannot be parsed.
            ConfigError: It is no selector.
        """
        return _select(self._indexer.list(), selector)

    async def list_in_turns(self, selector: Selector[T] = None) -> builtins.list[T]:
        """As ``list``, of the objects that there are now, letting others run meanwhile. Raises as ``list``."""
        return await _in_turns(self._indexer.list(), selector)

    def get(self, name: str) -> T:
        """The object of a name, for cluster-scoped objects, or of a ``"namespace/name"``.

        Raises:
            NotFoundError: There is none.
            ConfigError: It is no name.
        """
        require_text("name", name)
        obj = self._indexer.get_by_key(name)
        if obj is None:
            raise NotFoundError(name, self._resource, self._hint(name))
        return obj

    def _hint(self, name: str) -> str:
        indexer = self._indexer
        if "/" in name or NAMESPACE_INDEX not in indexer.indexers:
            return ""
        namespaced = any(indexer.list_index_func_values(NAMESPACE_INDEX))
        return f"these are in namespaces, such as 'default/{name}'" if namespaced else ""

    def namespace(self, ns: str) -> NamespaceLister[T]:
        """A lister of one namespace; ``""`` stands for all of them, as upstream's NamespaceAll.

        Raises:
            ConfigError: It is no string: None would stand for all, too.
        """
        require_text("namespace", ns)
        return NamespaceLister(self._indexer, ns, self._resource)


class NamespaceLister(Generic[T]):
    """Reads one namespace of an indexer. Get one by ``Lister.namespace``."""

    def __init__(self, indexer: Indexer[T], namespace: str, resource: str) -> None:
        self._indexer = indexer
        self._namespace = namespace
        self._resource = resource

    def list(self, selector: Selector[T] = None) -> builtins.list[T]:
        """The namespace's objects that a selector picks; the list is the caller's own.

        Raises:
            SelectorError: The label selector cannot be parsed.
            ConfigError: It is no selector.
        """
        return _select(self._objects(), selector)

    async def list_in_turns(self, selector: Selector[T] = None) -> builtins.list[T]:
        """As ``list``, of the objects that there are now, letting others run meanwhile. Raises as ``list``."""
        return await _in_turns(self._objects(), selector)

    def get(self, name: str) -> T:
        """The object of a name.

        Raises:
            NotFoundError: There is none.
            ConfigError: It is no name.
        """
        require_text("name", name)
        key = f"{self._namespace}/{name}" if self._namespace else name
        obj = self._indexer.get_by_key(key)
        if obj is None:
            raise NotFoundError(key, self._resource)
        return obj

    def _objects(self) -> builtins.list[T]:
        if not self._namespace:
            return self._indexer.list()
        if NAMESPACE_INDEX in self._indexer.indexers:
            return self._indexer.by_index(NAMESPACE_INDEX, self._namespace)
        return [obj for obj in self._indexer.list() if namespace_of(obj) == self._namespace]


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
    """Whether a selector picks an object; None for one that leaves nothing out."""
    if selector is None or isinstance(selector, (str, LabelSelector, Mapping)):
        if not selector:
            return None
        matches = LabelSelector.of(selector).matches
        return lambda obj: matches(labels_of(obj))
    if not callable(selector):
        raise ConfigError(
            f"a selector is a label selector such as 'app=web', or a function of an object, not {selector!r}"
        )
    require_plain("a selector", selector)
    return selector
