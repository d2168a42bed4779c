"""MutationCache: a cache that shows your own writes before they arrive (client-go ``mutation_cache.go``)."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, TypeVar

from .._core.checks import require_count, require_seconds
from .._core.loops import require_running_loop
from ..deltas import DeletedFinalStateUnknown
from ..errors import IndexFuncError
from ..handlers import ResourceEventHandler
from ..objects.keys import resource_version_of
from ..objects.undecodable import UndecodableObject
from ..objects.versions import NONE, number_of, require_version
from .indexer import Indexer

logger = logging.getLogger(__name__)

T = TypeVar("T")


class _Written(NamedTuple):
    obj: Any
    """None for a deletion."""
    version: int
    expires: float
    unlisted: set[str]
    """Indexes whose function raised for it, which was logged."""


class MutationCache(ResourceEventHandler[T], Generic[T]):
    """Reads an indexer as if your own writes had arrived in it already.

    For code that writes and reads on without waiting; code that can wait uses ``informer.wait_for``. A write is shown
    until the indexer has something newer, for ``ttl`` seconds at most, and only the latest ``size`` writes are kept.

    Also add it to the informer as a handler. Then a write is no longer shown after the object was deleted, and a late
    answer does not bring it back. A missed deletion says nothing about writes after the last known state: they are
    shown for their ``ttl``.

    Use it only in the event loop's thread; another thread gets WrongEventLoopError.

    Args:
        indexer: The cache.
        ttl: Seconds for which a write is shown at most.
        include_adds: Whether to also show objects that the indexer does not have: they were created just now, or
            deleted if this is not a handler of the informer.
        size: How many writes are kept, and how many deletions.

    Raises:
        ConfigError: ``ttl`` or ``size`` is invalid.
    """

    def __init__(
        self, indexer: Indexer[T], ttl: float = 300.0, *, include_adds: bool = False, size: int = 100
    ) -> None:
        require_seconds("ttl", ttl)
        require_count("size", size)
        self._indexer = indexer
        self._ttl = ttl
        self._include_adds = include_adds
        self._size = size
        # Least recently used first. Apart from each other: deletions of all objects would evict the writes.
        self._written: OrderedDict[str, _Written] = OrderedDict()
        self._deleted: OrderedDict[str, _Written] = OrderedDict()

    def __len__(self) -> int:
        """Return how many writes are kept."""
        return len(self._written)

    def mutation(self, obj: T) -> None:
        """Show an object that a write returned, unless something newer is known.

        Raises:
            KeyFuncError: The object has no key.
            ConfigError: It has no valid resourceVersion.
        """
        key = self._indexer.key_of(obj)
        version = require_version(f"metadata.resourceVersion of {key}", resource_version_of(obj))
        if version > self._newest_version(key):
            self._keep(self._written, key, obj, version)

    def get_by_key(self, key: str) -> T | None:
        """Return the object of a key from the newest write or the indexer, or None.

        Raises:
            DecodeError: The newest state is the indexer's, and does not fit the object type.
        """
        written = self._newer(key, self._indexer.find_any(key))
        return self._indexer.get_by_key(key) if written is None else written

    def get(self, obj: T | DeletedFinalStateUnknown[Any]) -> T | None:
        """Return the object of this object's key, as ``get_by_key``. Raises KeyFuncError."""
        return self.get_by_key(self._indexer.key_of(obj))

    def by_index(self, name: str, value: str) -> list[T]:
        """Return the objects with an index value, with the writes applied.

        A written object for which the index function raises is left out, and the error is logged once.

        Raises:
            UnknownIndexError: There is no such index.
        """
        index = self._indexer.index_named(name)
        by_key = {key: self._indexer.find_fitting(key) for key in sorted(index.keys(value))}
        for key, written in self._all_newer():
            by_key.pop(key, None)
            try:
                if value in index.values_of(key, written):
                    by_key[key] = written
            except IndexFuncError as error:
                unlisted = self._written[key].unlisted
                if name not in unlisted:
                    unlisted.add(name)
                    logger.error("%s", error)
        return [obj for obj in by_key.values() if obj is not None]

    def on_add(self, obj: T, is_in_initial_list: bool) -> None:
        """Forget a write that has arrived in the indexer."""
        self._newer(self._indexer.key_of(obj), obj)

    def on_update(self, old: T, new: T) -> None:
        """Forget a write that has arrived in the indexer."""
        self._newer(self._indexer.key_of(new), new)

    def on_undecodable(self, obj: UndecodableObject) -> None:
        """Forget a write that has arrived in the indexer."""
        self._newer(self._indexer.key_of(obj), obj)

    def on_delete(self, obj: T | DeletedFinalStateUnknown[Any]) -> None:
        """Stop showing writes that are older than the deletion."""
        key, version = self._indexer.key_of(obj), number_of(resource_version_of(obj))
        if version != NONE and version >= self._newest_version(key):
            self._written.pop(key, None)
            self._keep(self._deleted, key, None, version)

    def _all_newer(self) -> Iterator[tuple[str, T]]:
        _now()  # checks the thread, also if nothing was written
        for key in list(self._written):
            written = self._newer(key, self._indexer.find_any(key))
            if written is not None:
                yield key, written

    def _newer(self, key: str, stored: T | UndecodableObject | None) -> T | None:
        """Return the written object if it is newer than the stored one; forget it if it is older."""
        known = self._find(self._written, key)
        if known is None:
            return None
        if stored is None:
            return known.obj if self._include_adds else None
        if number_of(resource_version_of(stored)) >= known.version:
            del self._written[key]
            return None
        return known.obj  # type: ignore[no-any-return]

    def _newest_version(self, key: str) -> int:
        """Return the newest version of a key, written or deleted."""
        goals = self._find(self._written, key), self._find(self._deleted, key)
        return max((goal.version for goal in goals if goal is not None), default=NONE)

    def _find(self, kept: OrderedDict[str, _Written], key: str) -> _Written | None:
        now = _now()
        known = kept.pop(key, None)
        if known is None or now >= known.expires:
            return None
        kept[key] = known
        return known

    def _keep(self, kept: OrderedDict[str, _Written], key: str, obj: T | None, version: int) -> None:
        kept.pop(key, None)
        kept[key] = _Written(obj, version, _now() + self._ttl, set())
        while len(kept) > self._size:
            kept.popitem(last=False)


def _now() -> float:
    return require_running_loop("a MutationCache").time()
