"""What waits for a handler, and what becomes of it when there is more than the handler can take.

client-go has the first policy only: its ``pendingNotifications`` ring grows without a bound.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import Literal, Protocol, get_args

from ..checks import require_count
from ..errors import ConfigError
from ..keys import KeyFunc
from ..notifications import AddNotification, DeleteNotification, Notification, UpdateNotification

Backlog = Literal["unbounded", "block", "coalesce", "drop_oldest"]
"""What to do with notifications that a handler is too slow for.

- ``"unbounded"``: keep all, as client-go does.
- ``"block"``: keep all, and once so many wait let nothing more into the store until there is room. Other handlers,
  all readers, and soon the watch wait too.
- ``"coalesce"``: keep what is newest of each object. The handler sees a shorter history that is as legal: adds
  before updates before deletions, and the same state in the end.
- ``"drop_oldest"``: keep the newest so many, whatever they are about. Each call is true, but calls may be missing.
"""

BACKLOG_LIMIT = 10_000
"""Notifications that wait before "block" blocks and "drop_oldest" drops."""

Lost = Callable[[Notification], object]
"""Told of each notification that will not be delivered."""


class Pending(Protocol):
    """Notifications that wait, the oldest first: a deque, or one of the classes here."""

    def extend(self, notifications: Iterable[Notification], /) -> object: ...

    def popleft(self) -> Notification: ...

    def clear(self) -> None: ...

    def __len__(self) -> int: ...


def check_backlog(backlog: Backlog, limit: int) -> None:
    """Find out at registration that a policy cannot be.

    Raises:
        ConfigError: There is no such policy, or the limit is not a positive number.
    """
    if backlog not in get_args(Backlog):
        raise ConfigError(f"no backlog named {backlog!r}; there are: {', '.join(get_args(Backlog))}")
    require_count("backlog_limit", limit, least=1)


class NewestOnly(deque[Notification]):
    """At most so many notifications; each one more loses the oldest."""

    def __init__(self, limit: int, lost: Lost) -> None:
        super().__init__()
        self._limit = limit
        self._lost = lost

    def extend(self, notifications: Iterable[Notification], /) -> None:
        super().extend(notifications)
        while len(self) > self._limit:
            self._lost(self.popleft())


class NewestPerKey:
    """One notification for each object, or a deletion and what followed it.

    Objects come out in the order in which they began to wait. So there are never more than two for each object
    that the handler knows of or that is stored.
    """

    def __init__(self, key_of: KeyFunc, lost: Lost) -> None:
        self._key_of = key_of
        self._lost = lost
        self._waiting: OrderedDict[str, tuple[Notification, ...]] = OrderedDict()

    def extend(self, notifications: Iterable[Notification], /) -> None:
        waiting, key_of = self._waiting, self._key_of
        for notification in notifications:
            key = key_of(notification.obj)
            before = waiting.get(key)
            if before is None:
                waiting[key] = (notification,)
            else:
                self._merge(key, before, notification)

    def _merge(self, key: str, before: tuple[Notification, ...], notification: Notification) -> None:
        after = (*before[:-1], *merged(before[-1], notification))
        if after:
            self._waiting[key] = after
        else:
            del self._waiting[key]
        if len(after) > len(before):
            return
        self._lost(notification)
        if len(after) < len(before):
            self._lost(before[-1])

    def popleft(self) -> Notification:
        key, (notification, *rest) = self._waiting.popitem(last=False)
        if rest:
            self._waiting[key] = tuple(rest)
            self._waiting.move_to_end(key, last=False)
        return notification

    def clear(self) -> None:
        self._waiting.clear()

    def __len__(self) -> int:
        return len(self._waiting)


def merged(first: Notification, then: Notification) -> tuple[Notification, ...]:
    """Two notifications of one object as fewer, where that says the same in the end.

    An object that came and went is nothing. A deletion and what follows it stay two: the object is another one.
    """
    match first, then:
        case AddNotification(), DeleteNotification():
            return ()
        case DeleteNotification(), DeleteNotification():
            return (first,)
        case DeleteNotification(), _:
            return (first, then)
        case UpdateNotification(), DeleteNotification():
            return (then,)
        case AddNotification(), _:
            return (AddNotification(then.obj, first.is_in_initial_list),)
        case _:
            return (UpdateNotification(first.old, then.obj),)
