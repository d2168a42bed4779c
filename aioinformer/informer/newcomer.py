"""Newcomer: a handler that was added while an object was undecodable gets an add when the object fits again."""

from __future__ import annotations

from typing import Any

from ..deltas import DeletedFinalStateUnknown
from ..handlers import ResourceEventHandler, handler_name, on_undecodable_of, require_handler
from ..store import Indexer


def for_newcomer(handler: ResourceEventHandler[Any], indexer: Indexer[Any]) -> ResourceEventHandler[Any]:
    """Return the handler itself if every stored object fits its type or never did, else a Newcomer."""
    unseen = {indexer.key_of(obj) for obj in indexer.undecodable() if obj.last is not None}
    if not unseen:
        return handler
    require_handler(handler)
    return Newcomer(handler, indexer, unseen)


class Newcomer(ResourceEventHandler[Any]):
    """Turns the first update of objects that a handler has not seen into an add.

    Args:
        handler: The handler.
        indexer: Knows keys.
        unseen: The keys of objects that were undecodable when the handler was added. Their next update is from a state
            that only earlier handlers got.
    """

    def __init__(self, handler: ResourceEventHandler[Any], indexer: Indexer[Any], unseen: set[str]) -> None:
        self._handler = handler
        self._key_of = indexer.key_of
        self._unseen = unseen
        if (on_undecodable := on_undecodable_of(handler)) is not None:
            self.on_undecodable = on_undecodable

    def on_add(self, obj: Any, is_in_initial_list: bool) -> object:
        if self._unseen:
            self._unseen.discard(self._key_of(obj))
        return self._handler.on_add(obj, is_in_initial_list)

    def on_update(self, old: Any, new: Any) -> object:
        if self._unseen and (key := self._key_of(new)) in self._unseen:
            self._unseen.discard(key)
            return self._handler.on_add(new, False)
        return self._handler.on_update(old, new)

    def on_delete(self, obj: Any | DeletedFinalStateUnknown[Any]) -> object:
        if self._unseen and (key := self._key_of(obj)) in self._unseen:
            self._unseen.discard(key)
            if on_undecodable_of(self._handler) is None:
                return None
        return self._handler.on_delete(obj)

    def __repr__(self) -> str:
        return handler_name(self._handler)
