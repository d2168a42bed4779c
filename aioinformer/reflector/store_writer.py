"""Write what a reflector has read to its store, with the batch verbs if the store has them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from .._core.cancellation import maybe_await
from .._core.checks import require_methods
from ..deltas import BOOKMARK, Delta, DeltaType
from ..errors import RejectedObjectError
from ..objects.keys import meta_namespace_key_func, wrap_key_func
from ..protocols import ReflectorStore, may_batch


class StoreWriter:
    """Writes lists and changes to a store or queue, whose verbs may be plain or async.

    A store that rejects objects stops nothing: the others are stored.

    Args:
        store: Where to write.
        on_rejected: Called with the error about rejected objects.

    Attributes:
        apply: Writes changes, oldest first. Raises RejectedObjectError after it has written the others.
        key_of: Returns an object's key, as the store sees it.
        takes_bookmarks: Whether the store wants bookmarks.
        update_version: The store's ``update_resource_version``, or None.

    Raises:
        ConfigError: The store lacks a verb.
    """

    def __init__(self, store: ReflectorStore, on_rejected: Callable[[RejectedObjectError], None]) -> None:
        replace = "replace_in_turns" if may_batch(store, "replace_in_turns", "replace") else "replace"
        require_methods("store", store, ("add", replace), "Store() or DeltaFIFO()")
        self._store = store
        self._on_rejected = on_rejected
        self._replace: Callable[[Sequence[Any], str], Awaitable[None] | None] = getattr(store, replace)
        apply = (
            getattr(store, "apply", None) if may_batch(store, "apply", "add", "update", "delete") else None
        )
        self.apply: Callable[[Sequence[Delta]], Awaitable[None]] = apply or self._apply_each
        # getattr, not isinstance: from Python 3.12 on isinstance misses what a wrapper such as a Tracer's passes on.
        self._bookmark = getattr(store, "bookmark", None)
        self.update_version = getattr(store, "update_resource_version", None)
        self.takes_bookmarks = self._bookmark is not None
        self.key_of = wrap_key_func(getattr(store, "key_of", meta_namespace_key_func))

    async def replace(self, objects: Sequence[Any], resource_version: str) -> None:
        """Replace everything in the store by a list."""
        try:
            await maybe_await(self._replace(objects, resource_version))
        except RejectedObjectError as error:
            self._on_rejected(error)

    async def _apply_each(self, deltas: Sequence[Delta]) -> None:
        verbs = {
            DeltaType.ADDED: self._store.add,
            DeltaType.UPDATED: self._store.update,
            DeltaType.DELETED: self._store.delete,
        }
        for delta_type, obj in deltas:
            try:
                if delta_type is BOOKMARK:
                    assert self._bookmark is not None
                    await maybe_await(self._bookmark(obj.resource_version))
                else:
                    await maybe_await(verbs[delta_type](obj))
            except RejectedObjectError as error:
                self._on_rejected(error)

    async def resync(self) -> None:
        """Let the store send all its objects again."""
        await maybe_await(self._store.resync())
