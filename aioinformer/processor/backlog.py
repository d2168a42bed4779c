"""Backlog policies: which notifications wait for a handler, and what happens when it is too slow for them.

client-go has the first policy only: its ``pendingNotifications`` ring is unbounded.

To add a policy, write a subclass of ``PendingNotifications``, and add its name to ``Backlog`` and ``_POLICIES``.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence, Sized
from typing import Literal, get_args

from .._core.checks import require_count
from ..deltas import DeletedFinalStateUnknown
from ..errors import ConfigError
from ..notifications import (
    AddNotification,
    DeleteNotification,
    Notification,
    UndecodableNotification,
    UpdateNotification,
)
from ..objects.keys import KeyFunc
from ..objects.undecodable import UndecodableObject

Backlog = Literal["unbounded", "block", "coalesce", "drop_oldest"]
"""What to do with notifications that a handler is too slow for.

- ``"unbounded"``: keep all, as client-go does.
- ``"block"``: keep all, and stop changing the store while the backlog is full. Other handlers, readers and the watch
  wait too.
- ``"coalesce"``: keep the newest notification of each object. The handler sees a shorter history that is as legal: adds
  before updates before deletions, and the same state in the end.
- ``"drop_oldest"``: keep the newest notifications, whatever object they are about. Each call is true, but calls may be
  missing.
"""

BACKLOG_LIMIT = 10_000
"""Notifications that wait before "block" blocks and "drop_oldest" drops."""


class PendingNotifications:
    """The notifications that wait for one handler, oldest first. This policy keeps all of them.

    Args:
        limit: Notifications that may wait, for policies that have a limit.
        key_func: Gives an object's key, for policies that tell objects apart.

    Attributes:
        depth: Notifications that were added and are not delivered, dropped or merged.
        high_water: The largest depth so far.
        lost: Notifications that the policy dropped or merged.
        is_closed: Whether ``close`` was called.
        waiting: What ``take`` returns; empty if nothing waits.
        arrived: Set when a notification is added, and at the end. Its waiter clears it.
        initial: Notifications of an initial list that are not delivered.
    """

    forwards_all = True
    """Whether one batch takes everything; else a batch is one notification, and the rest stays here."""
    warns_when_behind = True
    """Whether a growing backlog is worth a warning."""

    def __init__(self, limit: int, key_func: KeyFunc) -> None:
        self._limit = limit
        self._key_func = key_func
        self._waiting: deque[Notification] = deque()
        self.waiting: Sized = self._waiting
        self.arrived = asyncio.Event()
        self._initial_delivered = asyncio.Event()
        self._initial_delivered.set()
        self.initial = 0
        self.depth = 0
        self.high_water = 0
        self.lost = 0
        self.is_closed = False

    def add(self, notifications: Sequence[Notification]) -> None:
        """Add notifications. Never waits; ignored once closed."""
        if self.is_closed or not notifications:
            return
        initial = 0
        for notification in notifications:
            initial += notification.is_in_initial_list
        if initial:
            self.initial += initial
            self._initial_delivered.clear()
        self.depth += len(notifications)
        self._keep(notifications)
        if self.depth > self.high_water:
            self.high_water = self.depth
        self.arrived.set()

    def record_delivered(self, notification: Notification) -> None:
        """Count a notification whose handler call has ended."""
        self.depth -= 1
        if notification.is_in_initial_list:
            self._record_initial_done()

    def close(self) -> None:
        """Drop everything that waits, and wake all waiters."""
        self.is_closed = True
        self._clear()
        self.arrived.set()
        self._initial_delivered.set()  # nothing more will come

    async def wait_initial_delivered(self) -> None:
        """Wait until every notification of the initial list was delivered or dropped."""
        await self._initial_delivered.wait()

    @property
    def is_full(self) -> bool:
        """Whether the store must wait for this handler."""
        return False

    async def wait_for_room(self) -> None:
        """Wait until the backlog is not full, or closed."""

    # What a policy decides -----------------------------------------------------------------------------------

    def take(self) -> Sequence[Notification]:
        """Remove and return the next batch."""
        batch = list(self._waiting)
        self._waiting.clear()
        return batch

    def _keep(self, notifications: Sequence[Notification]) -> None:
        self._waiting.extend(notifications)

    def _clear(self) -> None:
        self._waiting.clear()

    def _lose(self, notification: Notification) -> None:
        """Count a notification that will not be delivered."""
        self.lost += 1
        self.depth -= 1
        if notification.is_in_initial_list:
            self._record_initial_done()

    def _record_initial_done(self) -> None:
        self.initial -= 1
        if not self.initial:
            self._initial_delivered.set()


class Blocking(PendingNotifications):
    """Keeps all notifications, and asks the store to wait while ``limit`` or more of them wait."""

    def __init__(self, limit: int, key_func: KeyFunc) -> None:
        super().__init__(limit, key_func)
        self._room = asyncio.Event()

    @property
    def is_full(self) -> bool:
        return self.depth >= self._limit and not self.is_closed

    async def wait_for_room(self) -> None:
        while self.is_full:
            self._room.clear()
            await self._room.wait()

    def record_delivered(self, notification: Notification) -> None:
        super().record_delivered(notification)
        if not self.is_full:
            self._room.set()

    def close(self) -> None:
        super().close()
        self._room.set()


class DropOldest(PendingNotifications):
    """Keeps at most ``limit`` notifications; each further one drops the oldest."""

    forwards_all = False
    warns_when_behind = False

    def _keep(self, notifications: Sequence[Notification]) -> None:
        self._waiting.extend(notifications)
        while len(self._waiting) > self._limit:
            self._lose(self._waiting.popleft())

    def take(self) -> Sequence[Notification]:
        return (self._waiting.popleft(),)


class Coalescing(PendingNotifications):
    """Keeps one notification for each object, or a deletion and what followed it.

    Objects come out in the order in which they began to wait. At most two notifications wait for each object that the
    handler knows of or that is stored, and a third while it does not fit the object type.
    """

    forwards_all = False
    warns_when_behind = False

    def __init__(self, limit: int, key_func: KeyFunc) -> None:
        super().__init__(limit, key_func)
        self.waiting = self._by_key = OrderedDict[str, tuple[Notification, ...]]()

    def _keep(self, notifications: Sequence[Notification]) -> None:
        for notification in notifications:
            key = self._key_func(notification.obj)
            before = self._by_key.get(key)
            if before is None:
                self._by_key[key] = (notification,)
            else:
                self._merge(key, before, notification)

    def _merge(self, key: str, before: tuple[Notification, ...], notification: Notification) -> None:
        if is_over(before[-1], notification):
            self._lose(before[-1])
            before = before[:-1]
            if not before:
                self._by_key[key] = (notification,)
                return
        after = (*before[:-1], *merge(before[-1], notification, key))
        if after:
            self._by_key[key] = after
        else:
            del self._by_key[key]
        if len(after) > len(before):
            return
        self._lose(notification)
        if len(after) < len(before):
            self._lose(before[-1])

    def take(self) -> Sequence[Notification]:
        key, (notification, *rest) = self._by_key.popitem(last=False)
        if rest:
            self._by_key[key] = tuple(rest)
            self._by_key.move_to_end(key, last=False)
        return (notification,)

    def _clear(self) -> None:
        self._by_key.clear()


_POLICIES: Mapping[Backlog, type[PendingNotifications]] = {
    "unbounded": PendingNotifications,
    "block": Blocking,
    "coalesce": Coalescing,
    "drop_oldest": DropOldest,
}


def make_pending(backlog: Backlog, limit: int, key_func: KeyFunc) -> PendingNotifications:
    """Return the pending notifications of a policy.

    Args:
        backlog: The policy's name.
        limit: Notifications that may wait before "block" blocks and "drop_oldest" drops.
        key_func: Gives an object's key, for "coalesce".

    Raises:
        ConfigError: There is no such policy, or the limit is not a positive number.
    """
    if backlog not in get_args(Backlog):
        raise ConfigError(f"no backlog named {backlog!r}; there are: {', '.join(get_args(Backlog))}")
    require_count("backlog_limit", limit, least=1)
    return _POLICIES[backlog](limit, key_func)


def is_over(first: Notification, then: Notification) -> bool:
    """Return whether a known object that did not fit the object type fits again, or is gone."""
    return (
        isinstance(first, UndecodableNotification)
        and first.old is not None
        and not isinstance(then, UndecodableNotification)
    )


def merge(first: Notification, then: Notification, key: str = "") -> tuple[Notification, ...]:
    """Merge two notifications of one object into fewer that lead to the same state.

    An object that was added and deleted leaves nothing. A deletion and what follows it stay two, because the object
    is a new one. So do a state that fits and a later one that does not. Not called if ``is_over``.

    Args:
        first: The earlier one.
        then: The later one.
        key: The object's key.
    """
    match first, then:
        case UndecodableNotification(), UndecodableNotification():
            return (UndecodableNotification(first.old, then.new, first.is_in_initial_list),)
        case _, UndecodableNotification():
            return (first, then)
        case UndecodableNotification(), DeleteNotification():  # of an object that the handler does not know
            return ()
        case UndecodableNotification(), _:
            return (AddNotification(then.obj, first.is_in_initial_list),)
        case AddNotification(before=None), DeleteNotification():
            return ()
        case AddNotification(before=UndecodableObject() as before), DeleteNotification():
            return (DeleteNotification(DeletedFinalStateUnknown(key, before.last, before)),)
        case DeleteNotification(), DeleteNotification():
            return (first,)
        case DeleteNotification(), _:
            return (first, then)
        case UpdateNotification(), DeleteNotification():
            return (then,)
        case AddNotification(), _:
            return (AddNotification(then.obj, first.is_in_initial_list, first.before),)
        case _:
            return (UpdateNotification(first.old, then.obj),)
