"""Notifications, each for one handler call (client-go addNotification, updateNotification, deleteNotification)."""

from __future__ import annotations

from typing import Any

import msgspec

from .handlers import ResourceEventHandler
from .objects.keys import same_version


class AddNotification(msgspec.Struct, frozen=True, gc=False):
    """An object that is new in the store."""

    new: Any
    is_in_initial_list: bool = False
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
    """An object that was deleted; ``old`` is its last state, or a DeletedFinalStateUnknown."""

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
        return handler.on_delete(self.old)


Notification = AddNotification | UpdateNotification | DeleteNotification
