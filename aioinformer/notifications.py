"""Notifications, each for one handler call (client-go addNotification, updateNotification, deleteNotification)."""

from __future__ import annotations

from typing import Any

import msgspec

from .deltas import DeletedFinalStateUnknown
from .handlers import ResourceEventHandler, on_undecodable_of
from .objects.keys import same_version
from .objects.undecodable import UndecodableObject


class AddNotification(msgspec.Struct, frozen=True, gc=False):
    """An object that is new in the store, or fits the object type for the first time."""

    new: Any
    is_in_initial_list: bool = False
    before: UndecodableObject | None = None
    """Its state before, which did not fit."""
    is_sync = False
    kind = "add"

    @property
    def obj(self) -> Any:
        """The newest known state."""
        return self.new

    def deliver(self, handler: ResourceEventHandler[Any]) -> object:
        """Call the handler and return its result, an awaitable if the handler is async."""
        return handler.on_add(self.new, self.is_in_initial_list)


class UpdateNotification(msgspec.Struct, frozen=True, gc=False):
    """An object that changed, or that a resync repeats (same resourceVersion)."""

    old: Any
    new: Any
    is_in_initial_list = False
    kind = "update"

    @property
    def is_sync(self) -> bool:
        """Whether nothing changed: a resync, or an unchanged object of a relist."""
        return same_version(self.old, self.new)

    @property
    def obj(self) -> Any:
        """The newest known state."""
        return self.new

    def deliver(self, handler: ResourceEventHandler[Any]) -> object:
        """Call the handler and return its result, an awaitable if the handler is async."""
        return handler.on_update(self.old, self.new)


class DeleteNotification(msgspec.Struct, frozen=True, gc=False):
    """An object that was deleted; ``old`` is its last state, or a DeletedFinalStateUnknown.

    A handler without ``on_undecodable`` is not called for an object that never fitted the object type: it got no add.
    """

    old: Any
    is_in_initial_list = False
    is_sync = False
    kind = "delete"

    @property
    def obj(self) -> Any:
        """The newest known state."""
        return self.old

    def deliver(self, handler: ResourceEventHandler[Any]) -> object:
        """Call the handler and return its result, an awaitable if the handler is async."""
        old = self.old
        if isinstance(old, DeletedFinalStateUnknown) and old.obj is None and old.undecodable is not None:
            return None if on_undecodable_of(handler) is None else handler.on_delete(old)
        return handler.on_delete(old)


class UndecodableNotification(msgspec.Struct, frozen=True, gc=False):
    """An object that was added or changed, or that a resync repeats, and does not fit the object type.

    A handler without ``on_undecodable`` is not called.
    """

    old: Any
    new: UndecodableObject
    is_in_initial_list: bool = False
    kind = "undecodable"

    @property
    def is_sync(self) -> bool:
        """Whether nothing changed: a resync, or an unchanged object of a relist."""
        return isinstance(self.old, UndecodableObject) and same_version(self.old, self.new)

    @property
    def obj(self) -> Any:
        """The newest known state."""
        return self.new

    def deliver(self, handler: ResourceEventHandler[Any]) -> object:
        """Call the handler, if it has ``on_undecodable``; return its result, an awaitable if it is async."""
        on_undecodable = on_undecodable_of(handler)
        return None if on_undecodable is None else on_undecodable(self.new)


Notification = AddNotification | UpdateNotification | DeleteNotification | UndecodableNotification
