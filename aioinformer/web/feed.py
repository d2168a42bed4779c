"""ChangeFeed: the changes of an informer, for many subscribers that come, go and resume."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Generic, Self, TypeVar, get_args
from weakref import WeakSet

from .._core.checks import require_count, require_text
from .._core.loops import AsyncOnly
from .._core.tasks import finish, run_until_first
from ..deltas import DeletedFinalStateUnknown
from ..errors import AlreadyStartedError, ConfigError, InformerError, StoppedError
from ..handlers import ResourceEventHandler
from ..informer import Registration, SharedIndexInformer
from ..metrics import Sample
from ..objects.keys import KeyFunc, same_version
from ..objects.labels import LabelSelector
from ..objects.undecodable import UndecodableObject
from .history import History
from .readers import Readers
from .selection import Selection
from .subscription import Slow, Subscription

T = TypeVar("T")

HISTORY = 1000
"""Changes that a feed keeps by default."""


class ChangeFeed(AsyncOnly, Generic[T]):
    """The changes of an informer, for any number of subscribers; each gets a snapshot, or resumes after an id.

        async with informer, ChangeFeed(informer) as feed:
            async for event in feed.subscribe(label_selector="app=web"):
                print(event.type, event.key, event.id)

    An async context manager. Subscribers read from one shared history, each at its own position: the handler of the
    informer only appends to it, so slow subscribers cost the informer nothing.

    Objects that do not fit the object type do not exist for subscribers, as for listers.

    Args:
        informer: The informer, started or not.
        history: How many changes to keep, for subscribers that are slow or that resume. Each keeps an old state of an
            object in memory.

    Raises:
        ConfigError: ``history`` is not a number above 0.

    Guarantees:
        A subscriber that applies all events has the selected objects, whatever it missed. An id of another feed or
        process, or from before the history, leads to a RESET and a snapshot.
    """

    def __init__(self, informer: SharedIndexInformer[T], history: int = HISTORY) -> None:
        require_count("history", history, least=1)
        self._informer = informer
        self._registration: Registration | None = None
        self._task: asyncio.Task[None] | None = None
        self._arrived = asyncio.Event()
        self._subscriptions: WeakSet[Subscription[T]] = WeakSet()
        self._readers = Readers(repr(self))
        self.history = History(history)

    def __repr__(self) -> str:
        return f"<ChangeFeed of {self._informer.name}>"

    @property
    def informer(self) -> SharedIndexInformer[T]:
        """The informer."""
        return self._informer

    async def __aenter__(self) -> Self:
        self._readers.require_own_loop()
        if self._registration is not None:
            raise AlreadyStartedError(f"{self!r} was entered before: create another one")
        recorder: _Recorder[T] = _Recorder(self.history, self._informer.indexer.key_of, self._arrived.set)
        self._registration = self._informer.add_event_handler(recorder, name="change feed")
        self._task = asyncio.create_task(self._run(), name=repr(self))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._registration is not None
        assert self._task is not None
        self._informer.remove_event_handler(self._registration)
        self.end()
        await finish(self._task)

    def subscribe(
        self,
        after: str = "",
        *,
        label_selector: str | LabelSelector | Mapping[str, Any] | None = None,
        field_selector: str | None = None,
        where: Callable[[T], bool] | None = None,
        slow: Slow = "coalesce",
    ) -> Subscription[T]:
        """Return the events of one subscriber, as an async iterator.

        It begins with a snapshot, once the informer has synced: RESET, ADDED for each object, SYNCED. Then the changes
        follow. An object that leaves the selection is DELETED, with the last state that was selected; one that enters
        it is ADDED.

        Args:
            after: The id of the last event that was processed, to get only later changes.
            label_selector: As kubectl's ``-l``; or a mapping of labels.
            field_selector: As kubectl's ``--field-selector``, for any field, such as ``"spec.nodeName=node-1"``.
            where: A plain function of an object. Its result must depend on the object alone.
            slow: What to do if it is too slow for every change: return the newest state of each object ("coalesce");
                every change ("replay"); or raise a SlowSubscriberError when it is behind the history ("close").

        Raises:
            SelectorError: A selector cannot be parsed, or names a field that the object type lacks.
            ConfigError: Another argument is invalid.
            InformerError: The feed was not entered.
            WrongEventLoopError: The feed runs in another event loop or thread.
            ForkedError: The process was forked since the feed was entered.
        """
        selected = Selection(label_selector, field_selector, where, object_type=self._informer.object_type)
        return self.subscribe_to(selected, after, slow=slow)

    def subscribe_to(
        self, selection: Selection[T], after: str = "", *, slow: Slow = "coalesce"
    ) -> Subscription[T]:
        """Subscribe to a selection that was made before. As ``subscribe``."""
        if self._registration is None:
            raise InformerError(f"{self!r}: enter it with async with before subscribing")
        self._readers.require_own_loop()
        require_text("after", after)
        if slow not in get_args(Slow):
            raise ConfigError(f"slow must be one of {', '.join(get_args(Slow))}, not {slow!r}")
        subscription = Subscription(self.history, self._readers, selection.matches, slow, after)
        self._subscriptions.add(subscription)
        return subscription

    def end(self) -> None:
        """End all subscriptions, now and later. The history stays until the feed is left."""
        self._readers.end()

    def samples(self) -> Iterator[Sample]:
        """Yield the metrics. Memory is that of the changes, and a reference for each object of each snapshot."""
        labels, history = {"informer": self._informer.name}, self.history
        subscriptions = list(self._subscriptions)
        behind = max((subscription.behind for subscription in subscriptions), default=0)
        yield Sample("aioinformer_feed_subscribers", "gauge", labels, len(subscriptions))
        yield Sample("aioinformer_feed_behind", "gauge", labels, behind)
        yield Sample("aioinformer_feed_changes", "gauge", labels, history.changes)
        yield Sample("aioinformer_feed_snapshots", "gauge", labels, history.snapshots)
        yield Sample("aioinformer_feed_changes_total", "counter", labels, history.last)
        yield Sample("aioinformer_feed_resets_total", "counter", labels, history.resets)

    async def _run(self) -> None:
        """Begin the history after the sync, and wake subscribers, until the informer or the feed ends."""
        try:
            with suppress(StoppedError):
                await run_until_first(self._wake_subscribers, self._informer.wait_stopped)
        finally:
            self.end()

    async def _wake_subscribers(self) -> None:
        assert self._registration is not None
        await self._registration.wait_synced()
        self.history.is_recording = True
        self._arrived.set()
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            await self._readers.wake()


class _Recorder(ResourceEventHandler[T]):
    """Appends to a history. It decides by what the history has, so that a missed or repeated call does no harm."""

    def __init__(self, history: History, key_of: KeyFunc, arrived: Callable[[], object]) -> None:
        self._history = history
        self._key_of = key_of
        self._arrived = arrived

    def on_add(self, obj: T, is_in_initial_list: bool) -> None:
        self._history.put(self._key_of(obj), obj)
        self._arrived()

    def on_update(self, old: T, new: T) -> None:
        if not same_version(old, new):  # a resync
            self._history.put(self._key_of(new), new)
            self._arrived()

    def on_delete(self, obj: T | DeletedFinalStateUnknown[Any]) -> None:
        self._history.remove(self._key_of(obj))
        self._arrived()

    def on_undecodable(self, obj: UndecodableObject) -> None:
        """Forget an object that does not fit."""
        self._history.remove(self._key_of(obj))
        self._arrived()
