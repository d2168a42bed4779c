"""Store: objects by key (client-go ``tools/cache/store.go``)."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain
from typing import Any, Generic, TypeVar

from .._core.checks import require_text
from .._core.coop import snapshot, yielding
from ..deltas import DeletedFinalStateUnknown
from ..errors import RejectedObjectError
from ..objects.keys import (
    ExplicitKey,
    KeyFunc,
    keyed_by,
    meta_namespace_key_func,
    resource_version_of,
)

T = TypeVar("T")


class Store(Generic[T]):
    """Objects by key. Plain methods: no other task can run in the middle of one.

    There is a dict for each namespace: to grow one of all objects would hold the event loop for longer.

    Other threads than the one that writes may read: so a dict that may change is gone through in one step of the
    interpreter's.

    Args:
        key_func: Gives an object's key.
        pack: Gives an object the form in which it is kept; readers get that. None keeps it as it is.

    Raises:
        ConfigError: There is no key function.
    """

    def __init__(
        self, key_func: KeyFunc = meta_namespace_key_func, *, pack: Callable[[T], T] | None = None
    ) -> None:
        self.key_of: KeyFunc = keyed_by(key_func)
        """Gives an object's or tombstone's key; raises KeyFuncError."""
        self._pack = pack
        self._parts: dict[str, dict[str, T]] = {}  # by what keys begin with; none is empty
        self._version = ""

    @property
    def last_store_sync_resource_version(self) -> str:
        """The version of what was stored or deleted last: an object's, a Replace's or a Bookmark's
        (``LastStoreSyncResourceVersion``).

        Fed through a RealFIFO with atomic events and bookmarks: what happened up to it is here. Through a
        DeltaFIFO it is no more than the last object's, as the objects of a list are in no order; and where several
        namespaces are read, of the one that was heard of last. Tombstones and objects without a version leave it as
        it is.
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
        Store.add(self, obj)  # no call of a subclass's own: it would see every update twice

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
        return self.get_by_key(self.key_of(obj))

    def get_by_key(self, key: str) -> T | None:
        """The object of a key, or None.

        Raises:
            ConfigError: It is no key.
        """
        try:
            part = self._parts.get(key.rpartition("/")[0])
        except (AttributeError, TypeError):
            require_text("key", key)
            raise
        return None if part is None else part.get(key)

    def list(self) -> builtins.list[T]:
        """All objects, one namespace after the other; the list is the caller's own."""
        parts = builtins.list(self._parts.values())
        return builtins.list(chain.from_iterable([part.values() for part in parts]))

    def list_keys(self) -> builtins.list[str]:
        """All keys, in the order of ``list``; the list is the caller's own."""
        return builtins.list(chain.from_iterable(builtins.list(self._parts.values())))

    def list_keys_by_parts(self) -> Iterator[builtins.list[str]]:
        """The keys, a part after the other, each as it is when it is asked for: for many objects, in turns."""
        for namespace in builtins.list(self._parts):
            yield builtins.list(self._parts.get(namespace, ()))

    def replace(self, objects: Iterable[T], resource_version: str = "") -> None:
        """Keep just these objects. An ExplicitKey among them keeps what is stored for that key.

        Raises:
            RejectedObjectError: Some had no key; all others were taken, and the error's ``others`` are the rest.
        """
        for _ in self._replace(objects, resource_version):
            pass

    async def replace_in_turns(self, objects: Iterable[T], resource_version: str = "") -> None:
        """As ``replace``, for many objects: others run meanwhile, and see the old ones up to the end. What they
        write is lost then.

        Cancellation: nothing is replaced.
        """
        await yielding(self._replace(snapshot(objects), resource_version))

    def bookmark(self, resource_version: str) -> None:
        """Note that everything up to this version was given."""
        self._version = resource_version

    def resync(self) -> None:
        """Nothing to do: a store is what others are synced with."""

    def __len__(self) -> int:
        return sum(map(len, builtins.list(self._parts.values())))

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.get_by_key(key) is not None

    def exchange(self, key: str, old: T, new: T) -> None:
        """Keep an object in another form, if it is what is stored."""
        if self.get_by_key(key) is old:
            self._parts[key.rpartition("/")[0]][key] = new

    def put(self, key: str, obj: T, rejected: builtins.list[RejectedObjectError]) -> T | None:
        """Keep an object whose key is known already; the one that was there before it.

        Args:
            key: Its key.
            obj: The object. It is packed, where objects are.
            rejected: Gets the errors of indexes that could not list it; it is stored all the same.
        """
        kept = obj if self._pack is None else self._pack(obj)  # first: it may raise
        namespace = key.rpartition("/")[0]
        part = self._parts.get(namespace)
        if part is None:
            part = self._parts[namespace] = {}
        old = part.get(key)
        part[key] = kept
        if version := resource_version_of(obj):
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
        return self._forget(key)

    def fresh(self) -> Store[T]:
        """An empty store of the same kind, to be filled aside by ``put`` and then taken over."""
        return Store(self.key_of, pack=self._pack)

    def catch_up(self, fresh: Store[T], rejected: builtins.list[RejectedObjectError]) -> Iterator[None]:
        """Have a filled store list its objects in indexes that this one was given meanwhile, a step for each object.

        Args:
            fresh: What ``fresh`` gave.
            rejected: Gets the errors of indexes that could not list an object.
        """
        return iter(())

    def take_over(
        self, fresh: Store[T], resource_version: str, instead_of: Collection[str] | None = None
    ) -> None:
        """Have what a fresh store has, in one step. Nothing else may run between ``catch_up`` and this.

        Args:
            fresh: What ``fresh`` gave; it is used up.
            resource_version: The list's.
            instead_of: Keys to forget; None forgets all that is not in the fresh store.
        """
        if instead_of is None:
            self._parts = fresh._parts
        else:
            for key in instead_of:
                self._forget(key)
            for namespace, part in fresh._parts.items():
                self._parts.setdefault(namespace, part).update(part)
        self._version = resource_version

    def _each(self) -> Iterator[tuple[str, T]]:
        return chain.from_iterable(part.items() for part in self._parts.values())

    def _forget(self, key: str) -> T | None:
        namespace = key.rpartition("/")[0]
        part = self._parts.get(namespace)
        if part is None:
            return None
        old = part.pop(key, None)
        if not part:
            del self._parts[namespace]
        return old

    def _replace(self, objects: Iterable[T], resource_version: str) -> Iterator[None]:
        fresh = self.fresh()
        rejected: builtins.list[RejectedObjectError] = []
        for obj in objects:
            yield
            try:
                key = self.key_of(obj)
            except RejectedObjectError as error:
                rejected.append(error)
                continue
            if not isinstance(obj, ExplicitKey):
                fresh.put(key, obj, rejected)
            elif (kept := self.get_by_key(key)) is not None and key not in fresh:
                fresh.put(key, kept, rejected)
        yield from self.catch_up(fresh, rejected)
        self.take_over(fresh, resource_version)
        RejectedObjectError.raise_first(rejected)
