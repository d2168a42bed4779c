"""Subscription: one subscriber's way through a history."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, Literal, Self, TypeVar

import msgspec

from .._core.checks import require_timeout
from .._core.coop import Budget
from ..errors import SlowSubscriberError
from ..objects.keys import uid_of
from ..objects.meta import ADDED, DELETED, MODIFIED, SYNCED, Object
from ..watchtools import InformerEvent
from .history import UNKNOWN, Change, History, Snapshot
from .readers import Readers

T = TypeVar("T")

RESET = "RESET"
"""The type of the event that begins a snapshot: forget all objects; those that exist follow as ADDED, then SYNCED."""

Slow = Literal["coalesce", "replay", "close"]
"""What a subscriber gets that is too slow for every change:

- ``"coalesce"``: the newest state of each object. Changes that wait for it become one.
- ``"replay"``: every change.
- ``"close"``: every change, and a SlowSubscriberError when it is behind the feed's history. With the others, a RESET
  and a snapshot follow then.
"""

BATCH = 64
"""Events that a batch has at most."""

_STRIDE = 32
"""Objects or changes between two looks at the clock."""


class FeedEvent(InformerEvent[Object], Generic[Object], frozen=True, gc=False):
    """An event of a ChangeFeed.

    Attributes:
        type: RESET, ADDED, MODIFIED, DELETED or SYNCED.
        object: The newest state; of DELETED the last one that the subscriber may see; None for RESET and SYNCED.
        old: For MODIFIED, the state that the subscriber saw before.
        initial: Whether it belongs to a snapshot.
        key: The object's key.
        id: What to resume after; ``""`` if resuming here would leave a gap. Then a later event has one.
    """

    key: str = ""
    id: str = ""


class Subscription(Generic[T]):
    """The events of one subscriber, as an async iterator; ``ChangeFeed.subscribe`` returns it.

    It holds a position in the feed's history and at most one batch of events. It needs no closing. It ends when the
    feed or its informer ends.
    """

    def __init__(
        self,
        history: History,
        readers: Readers,
        matches: Callable[[T], bool] | None,
        slow: Slow,
        after: str,
    ) -> None:
        self._history = history
        self._readers = readers
        self._matches = matches
        self._slow = slow
        self._done = self._history.position_of(after)  # everything up to here was returned
        self._position = self._done  # everything up to here was returned or merged with a later change
        self._horizon = self._done  # later changes are not merged with those before
        # The subscriber may have got changes after its id from the subscription before.
        self._seen = self._done if self._done == UNKNOWN else self._history.last
        self._snapshot: Snapshot | None = None
        self._index = 0  # of the next object of the snapshot
        self._unread: deque[FeedEvent[T]] = deque()
        self._budget = Budget()

    @property
    def id(self) -> str:
        """The id to resume after; ``""`` within a snapshot."""
        return "" if self._done == UNKNOWN else self._history.id_of(self._done)

    @property
    def behind(self) -> int:
        """How many changes it has not read."""
        return 0 if self._position == UNKNOWN else self._history.last - self._position

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> FeedEvent[T]:
        while not self._unread:
            batch = await self.next_batch()
            if batch is None:
                raise StopAsyncIteration
            self._unread.extend(batch)
        return self._unread.popleft()

    async def next_batch(self, timeout: float | None = None) -> list[FeedEvent[T]] | None:
        """Wait for events, and return up to 64 of them. The iterator does not return them again.

        Args:
            timeout: Seconds; then it returns an empty list. None waits without limit.

        Returns:
            The events; None once the feed has ended.

        Raises:
            SlowSubscriberError: With ``slow="close"``, the feed no longer has the next change.
            SelectorError: A field selector names a field that is no value but an object or a list.
            Exception: The subscriber's function has raised it.
            WrongEventLoopError: The feed runs in another event loop or thread.
            ForkedError: The process was forked since the feed was entered.
            ConfigError: ``timeout`` is not a duration.
        """
        require_timeout(timeout)
        self._readers.require_own_loop()
        now = asyncio.get_running_loop().time
        end = None if timeout is None else now() + timeout
        while not self._readers.has_ended:
            if not self._is_behind:
                if not await self._readers.wait(None if end is None else end - now()):
                    return []
                self._budget = Budget()
            elif self._budget.is_spent():
                await self._budget.pause()
            elif batch := self._step(self._budget):
                return batch
            elif end is not None and now() >= end:  # there are changes, but none that is selected
                return []
        return None

    @property
    def _is_behind(self) -> bool:
        """Whether there is something to read."""
        history = self._history
        return history.is_recording and (self._snapshot is not None or self._position < history.last)

    def _step(self, budget: Budget) -> list[FeedEvent[T]]:
        """Return the next events; none if the time is up before one was found, or if none is selected."""
        history = self._history
        if self._snapshot is not None:
            return self._begin_snapshot() if self._snapshot.is_dropped else self._read_snapshot(budget)
        if not history.goes_back_to(self._done):
            return self._begin_snapshot()
        return self._read_changes(budget)

    def _begin_snapshot(self) -> list[FeedEvent[T]]:
        history = self._history
        if self._slow == "close" and 0 <= self._done < history.last:
            raise SlowSubscriberError(self._readers.name, history.last - self._done, history.size)
        self._snapshot, self._index = history.snapshot(), 0
        self._done = self._position = self._seen = UNKNOWN
        history.resets += 1
        nothing: Any = None
        return [FeedEvent(RESET, nothing, initial=True)]

    def _read_snapshot(self, budget: Budget) -> list[FeedEvent[T]]:
        snapshot, matches, events = self._snapshot, self._matches, list[FeedEvent[T]]()
        assert snapshot is not None
        objects, keys = snapshot.objects, snapshot.keys
        while self._index < len(objects):
            index = self._index
            if len(events) == BATCH or (index % _STRIDE == 0 and budget.is_spent()):
                return events
            if matches is None or matches(objects[index]):
                events.append(FeedEvent(ADDED, objects[index], None, True, keys[index]))
            self._index += 1
        self._snapshot = None
        self._done = self._position = self._horizon = snapshot.position
        nothing: Any = None
        events.append(FeedEvent(SYNCED, nothing, initial=True, id=self.id))
        return events

    def _read_changes(self, budget: Budget) -> list[FeedEvent[T]]:
        history, events = self._history, list[FeedEvent[T]]()
        if self._position == self._horizon:
            self._horizon = history.last
        merges, horizon = self._slow == "coalesce", self._horizon
        while self._position < horizon and len(events) < BATCH:
            position = self._position + 1
            if position % _STRIDE == 0 and budget.is_spent():
                break
            change = history[position]
            if not merges:
                events.extend(self._events_of(change.key, change.old, change.new))
                self._done = position
                events[-1:] = [msgspec.structs.replace(event, id=self.id) for event in events[-1:]]
            elif not 0 < change.after <= horizon:
                events.extend(self._merged_events_of(change))
            self._position = position
        if merges and self._position == horizon:
            self._done = horizon
            events[-1:] = [msgspec.structs.replace(event, id=self.id) for event in events[-1:]]
        return events

    def _merged_events_of(self, last: Change) -> list[FeedEvent[T]]:
        """Return the events of a change into which the key's former changes were merged."""
        first, seen = last, list[Any]()
        while first.before > self._done:
            before, first = first.before, self._history[first.before]
            if before <= self._seen:
                seen.append(first.new)
        if events := self._events_of(last.key, first.old, last.new):
            return events
        for state in seen:  # which was selected meanwhile
            if events := self._events_of(last.key, state, None):
                return events
        return []

    def _events_of(self, key: str, old: Any, new: Any) -> list[FeedEvent[T]]:
        """Return the events of a change, or of several. States that are not selected do not exist."""
        matches = self._matches
        if matches is not None:
            old = old if old is not None and matches(old) else None
            new = new if new is not None and matches(new) else None
        if old is None:
            return [] if new is None else [FeedEvent(ADDED, new, key=key)]
        if new is None:
            return [FeedEvent(DELETED, old, key=key)]
        if uid_of(old) != uid_of(new):  # deleted, and created again
            return [FeedEvent(DELETED, old, key=key), FeedEvent(ADDED, new, key=key)]
        return [FeedEvent(MODIFIED, new, old, key=key)]
