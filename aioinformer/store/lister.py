"""Lister: what users read (client-go ``tools/cache/listers.go``)."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from ..errors import NotFoundError
from ..keys import labels_of, namespace_of
from ..labels import LabelSelector
from .indexer import NAMESPACE_INDEX, Indexer

T = TypeVar("T")

Selector = str | LabelSelector | Callable[[Any], bool] | None
"""A label selector as kubectl's ``-l``, or parsed; a predicate on the object; or None for all."""


class Lister(Generic[T]):
    """Reads an indexer, never the API server.

    Args:
        indexer: What to read; with an index named ``"namespace"`` a namespace is found without a scan.
        resource: What the objects are called in errors.
    """

    def __init__(self, indexer: Indexer[T], resource: str = "object") -> None:
        self._indexer = indexer
        self._resource = resource

    def list(self, selector: Selector = None) -> builtins.list[T]:
        """The objects that a selector picks; the list is the caller's own.

        Raises:
            SelectorError: The label selector cannot be parsed.
        """
        return _select(self._indexer.list(), selector)

    def get(self, name: str) -> T:
        """The object of a name, for cluster-scoped objects, or of a ``"namespace/name"``.

        Raises:
            NotFoundError: There is none.
        """
        obj = self._indexer.get_by_key(name)
        if obj is None:
            raise NotFoundError(name, self._resource)
        return obj

    def namespace(self, namespace: str) -> NamespaceLister[T]:
        """A lister of one namespace; ``""`` stands for all of them, as upstream's NamespaceAll."""
        return NamespaceLister(self._indexer, namespace, self._resource)


class NamespaceLister(Generic[T]):
    """Reads one namespace of an indexer. Get one by ``Lister.namespace``."""

    def __init__(self, indexer: Indexer[T], namespace: str, resource: str) -> None:
        self._indexer = indexer
        self._namespace = namespace
        self._resource = resource

    def list(self, selector: Selector = None) -> builtins.list[T]:
        """The namespace's objects that a selector picks; the list is the caller's own.

        Raises:
            SelectorError: The label selector cannot be parsed.
        """
        if not self._namespace:
            objects = self._indexer.list()
        elif NAMESPACE_INDEX in self._indexer.indexers:
            objects = self._indexer.by_index(NAMESPACE_INDEX, self._namespace)
        else:
            objects = [obj for obj in self._indexer.list() if namespace_of(obj) == self._namespace]
        return _select(objects, selector)

    def get(self, name: str) -> T:
        """The object of a name.

        Raises:
            NotFoundError: There is none.
        """
        key = f"{self._namespace}/{name}" if self._namespace else name
        obj = self._indexer.get_by_key(key)
        if obj is None:
            raise NotFoundError(key, self._resource)
        return obj


def _select(objects: Iterable[T], selector: Selector) -> builtins.list[T]:
    if not selector:
        return builtins.list(objects)
    if callable(selector):
        return [obj for obj in objects if selector(obj)]
    parsed = LabelSelector.parse(selector) if isinstance(selector, str) else selector
    return [obj for obj in objects if parsed.matches(labels_of(obj))]
