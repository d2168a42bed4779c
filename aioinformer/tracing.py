"""Where an event's time goes: a Tracer stamps it at every hand-over on its way to the handlers.

An informer without a tracer is put together without any of this: tracing that is off costs nothing.
"""

from __future__ import annotations

import logging
from asyncio import CancelledError
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from inspect import isawaitable
from itertools import pairwise
from math import ceil
from time import monotonic_ns
from typing import Any, NamedTuple, Self, TypeVar, cast

import msgspec

from ._core.checks import is_finite, require_count
from ._core.failure_log import FailureLog
from ._core.tasks import maybe_await
from .controller import Config
from .deltas import Delta, DeltaType
from .errors import ConfigError
from .handlers import ResourceEventHandler, callable_name, require_plain
from .notifications import AddNotification, DeleteNotification, Notification, UpdateNotification
from .objects.keys import key_and_version
from .objects.meta import ListOptions
from .processor import Processor, ProcessorListener
from .protocols import ListerWatcher, Queue, WatchStream

__all__ = ["StageTimes", "Trace", "Tracer"]

logger = logging.getLogger(__name__)

R = TypeVar("R")

STAGES = ("decoded", "queued", "popped", "stored", "delivered", "started", "finished")
"""What an event has gone through, each stage called by the stamp at its end."""

_QUEUED, _POPPED, _STORED, _DELIVERED = range(2, 6)

_EVENTS = frozenset((DeltaType.ADDED, DeltaType.UPDATED, DeltaType.DELETED))

_Key = tuple[str, str]

_Stamps = list[int]
"""Of one event, up to _DELIVERED; 0 for those to come."""


class Trace(msgspec.Struct, frozen=True, gc=False):
    """One event's way to one handler. Stamps are ``time.monotonic_ns()``.

    Attributes:
        key: The object's.
        resource_version: The event's.
        informer: The informer's name.
        handler: The handler's name.
        received: Its bytes have arrived, cut into lines: the watch stream hands it out.
        decoded: It is an object, about to be queued.
        queued: It is in the queue.
        popped: It is taken out, to be processed.
        stored: The store has it, and those that came with it.
        delivered: It waits for the handlers, or the first of them is called at once.
        started: The handler is called.
        finished: The handler has returned or raised; if it is async, its coroutine has.
    """

    key: str
    resource_version: str
    informer: str
    handler: str
    received: int
    decoded: int
    queued: int
    popped: int
    stored: int
    delivered: int
    started: int
    finished: int

    @property
    def stages(self) -> tuple[int, ...]:
        """Nanoseconds of each of STAGES. Together they are all of it."""
        stamps = (self.received, *(getattr(self, stage) for stage in STAGES))
        return tuple(after - before for before, after in pairwise(stamps))

    def seconds(self) -> dict[str, float]:
        """Seconds of each of STAGES, by its name."""
        return {stage: nanoseconds / 1e9 for stage, nanoseconds in zip(STAGES, self.stages, strict=True)}


class Tracer:
    """Stamps the watch events of one informer, and tells a hook of each once a handler is through with it.

    ``SharedInformerFactory(on_trace=)`` and ``Manager(on_trace=)`` make one for each of their informers.

    Objects of a list, resyncs and tombstones are no events, and have no trace. Nor have events that a handler's
    backlog drops or merges. Events of an object whose type has no version are told apart by its key alone: of those
    that are in the queue together one has a trace.

    Args:
        on_trace: Called with each Trace, in the informer's loop; plain and quick. What it raises is logged.
        limit: Events that may be on their way; of more the oldest are forgotten.

    Attributes:
        forgotten: How many were, and how many for others that could not be told apart from them.
        failed: Calls of the hook that raised.

    Raises:
        ConfigError: The hook is no plain function.
    """

    def __init__(self, on_trace: Callable[[Trace], object], *, limit: int = 100_000) -> None:
        require_plain("on_trace", on_trace)
        require_count("limit", limit)
        self._on_trace = on_trace
        self._limit = limit
        self._under_way: OrderedDict[_Key, _Stamps] = OrderedDict()
        self._informer: str | None = None
        self._failures = FailureLog("the hook of a Tracer", logger)
        self.forgotten = 0
        self.failed = 0

    def __len__(self) -> int:
        """How many events are on their way to the backlogs of the handlers."""
        return len(self._under_way)

    def attach(self, config: Config) -> None:
        """Have a controller's events stamped, from its stream to its process functions."""
        source = _TracedSource(config.list_watch)
        config.list_watch = cast(ListerWatcher, source)
        config.queue = cast(Queue, _TracedQueue(config.queue, self, source))
        config.process = self._traced(config.process)
        if config.process_batch is not None:
            config.process_batch = self._traced(config.process_batch)

    def processor(self, informer: str) -> Processor:
        """The processor of the informer of this name, which stamps what it distributes.

        Raises:
            ConfigError: The tracer has an informer already.
        """
        if self._informer is not None:
            raise ConfigError(
                f"{informer}: this Tracer is that of {self._informer}, and one is for one informer: make another one "
                "with the same hook"
            )
        self._informer = informer
        return _TracedProcessor(self)

    def begin(self, deltas: Iterable[Delta], received: int) -> list[_Key]:
        """Events are decoded, and about to be queued."""
        now = monotonic_ns()
        begun = [key_and_version(delta.object) for delta in deltas if delta.type in _EVENTS]
        for key in begun:
            self.forgotten += self._under_way.pop(key, None) is not None
            self._under_way[key] = [received, now, 0, 0, 0, 0]
        while len(self._under_way) > self._limit:
            self._under_way.popitem(last=False)
            self.forgotten += 1
        return begun

    def stamp(self, stage: int, keys: Iterable[_Key], now: int) -> None:
        """Events have come so far. The first time counts."""
        for key in keys:
            if (stamps := self._under_way.get(key)) is not None:
                stamps[stage] = stamps[stage] or now

    def stored(self, notification: Notification, now: int) -> tuple[_Key, _Stamps] | None:
        """A notification is about to be distributed: its event, if it is of one, which is on its way no more."""
        if isinstance(notification, AddNotification) and notification.is_in_initial_list:
            return None
        key = key_and_version(notification.obj)
        stamps = self._under_way.get(key)
        if stamps is None or not stamps[_POPPED]:  # one that is still queued is another one
            return None
        del self._under_way[key]
        stamps[_STORED] = now
        return None if notification.is_sync else (key, stamps)

    def finish(self, key: _Key, stamps: _Stamps, handler: str, started: int) -> None:
        """A handler is through with an event."""
        now = monotonic_ns()
        name, version = key
        informer = self._informer or ""
        received, decoded, queued, popped, stored, delivered = stamps
        trace = Trace(
            name, version, informer, handler, received, decoded, queued, popped, stored, delivered, started, now
        )  # fmt: skip
        try:
            self._on_trace(trace)
        except (Exception, CancelledError) as error:  # a plain function: nobody cancels us in it
            self.failed += 1
            self._failures.log(
                error, "%s: the hook of its Tracer, %s, raised for %s at %s",
                informer, callable_name(self._on_trace), name, version,
                traceback=error,
            )  # fmt: skip

    def _traced(self, process: Callable[[list[Delta], bool], R]) -> Callable[[list[Delta], bool], R]:
        def traced(deltas: list[Delta], is_in_initial_list: bool) -> R:
            if not is_in_initial_list:
                now = monotonic_ns()
                keys = [key_and_version(delta.object) for delta in deltas if delta.type in _EVENTS]
                self.stamp(_QUEUED, keys, now)  # what is processed at once is not through with being queued
                self.stamp(_POPPED, keys, now)
            return process(deltas, is_in_initial_list)

        return traced


class _TracedSource:
    """A ListerWatcher that knows when the last batch came out of its stream."""

    def __init__(self, list_watch: ListerWatcher) -> None:
        self._list_watch = list_watch
        self.received = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._list_watch, name)

    async def watch(self, options: ListOptions) -> WatchStream:
        return _TracedStream(await maybe_await(self._list_watch.watch(options)), self)


class _TracedStream:
    def __init__(self, stream: Any, source: _TracedSource) -> None:
        self._stream = stream
        self._source = source

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)  # aclose, where it has one

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        batch = await anext(self._stream)
        self._source.received = monotonic_ns()
        return batch


class _TracedQueue:
    """A queue whose batches are stamped before and after they are taken."""

    def __init__(self, queue: Queue, tracer: Tracer, source: _TracedSource) -> None:
        self._queue = queue
        self._tracer = tracer
        self._source = source

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    def __len__(self) -> int:
        return len(self._queue)

    async def apply(self, events: Iterable[Delta]) -> None:
        deltas = list(events)
        begun = self._tracer.begin(deltas, self._source.received)
        try:
            await self._queue.apply(deltas)
        finally:
            self._tracer.stamp(_QUEUED, begun, monotonic_ns())


class _Way(NamedTuple):
    """One event's way to one handler. A backlog that loses the notification loses this with it."""

    tracer: Tracer
    handler: str
    key: _Key
    stamps: _Stamps

    def timed(self, deliver: Callable[[ResourceEventHandler[Any]], object], handler: Any) -> object:
        started = monotonic_ns()
        self.stamps[_DELIVERED] = self.stamps[_DELIVERED] or started  # called in the step that delivers
        is_over = True
        try:
            result = deliver(handler)
            if isawaitable(result):
                is_over = False
                return self._awaited(result, started)
            return result
        finally:
            if is_over:
                self._finish(started)

    async def _awaited(self, result: Awaitable[object], started: int) -> object:
        try:
            return await result
        finally:
            self._finish(started)

    def _finish(self, started: int) -> None:
        self.tracer.finish(self.key, self.stamps, self.handler, started)


class _TracedAdd(AddNotification, frozen=True, gc=False, kw_only=True):
    way: _Way

    def deliver(self, handler: ResourceEventHandler[Any]) -> object:
        return self.way.timed(super().deliver, handler)


class _TracedUpdate(UpdateNotification, frozen=True, gc=False, kw_only=True):
    way: _Way

    def deliver(self, handler: ResourceEventHandler[Any]) -> object:
        return self.way.timed(super().deliver, handler)


class _TracedDelete(DeleteNotification, frozen=True, gc=False, kw_only=True):
    way: _Way

    def deliver(self, handler: ResourceEventHandler[Any]) -> object:
        return self.way.timed(super().deliver, handler)


def _on(way: _Way, notification: Notification) -> Notification:
    match notification:
        case AddNotification():
            return _TracedAdd(notification.new, notification.is_in_initial_list, way=way)
        case UpdateNotification():
            return _TracedUpdate(notification.old, notification.new, way=way)
        case DeleteNotification():
            return _TracedDelete(notification.old, way=way)


class _TracedProcessor(Processor):
    def __init__(self, tracer: Tracer) -> None:
        super().__init__()
        self._tracer = tracer

    def distribute_all(
        self,
        notifications: Sequence[Notification],
        listeners: Iterable[ProcessorListener[Any]] | None = None,
    ) -> None:
        now = monotonic_ns()
        events = [self._tracer.stored(notification, now) for notification in notifications]
        for listener in self.listeners if listeners is None else listeners:
            traced = [
                notification
                if event is None
                else _on(_Way(self._tracer, listener.name, *event), notification)
                for notification, event in zip(notifications, events, strict=True)
            ]
            super().distribute_all(traced, [listener])
        delivered = monotonic_ns()
        for event in events:
            if event is not None:
                _, stamps = event
                stamps[_DELIVERED] = stamps[_DELIVERED] or delivered


class StageTimes:
    """A hook for a Tracer: percentiles of each stage over the last traces.

    Args:
        traces: How many are kept.
    """

    def __init__(self, traces: int = 100_000) -> None:
        require_count("traces", traces)
        self._stages: deque[tuple[int, ...]] = deque(maxlen=traces)

    def __call__(self, trace: Trace) -> None:
        self._stages.append(trace.stages)

    def __len__(self) -> int:
        return len(self._stages)

    def percentiles(self, *shares: float) -> dict[str, tuple[float, ...]]:
        """For each of STAGES, and for ``"total"``, its percentiles in seconds, by nearest rank.

        Args:
            shares: Such as ``0.5, 0.99``.

        Raises:
            ConfigError: One is more than all, or less than none.
        """
        for share in shares:
            if not is_finite(share) or not 0 <= share <= 1:
                raise ConfigError(f"a share is a number from 0 to 1, like 0.99 for 99 %, not {share!r}")
        columns = self._columns()
        columns["total"] = tuple(sum(stages) for stages in self._stages)
        return {name: ranked(sorted(values), shares) for name, values in columns.items() if values}

    def means(self) -> dict[str, float]:
        """The mean of each of STAGES in seconds: they add up to the mean of the whole."""
        count = len(self._stages)
        return {name: sum(values) / count / 1e9 for name, values in self._columns().items()}

    def _columns(self) -> dict[str, tuple[int, ...]]:
        return dict(zip(STAGES, zip(*self._stages, strict=True), strict=False))


def ranked(ordered: list[int], shares: tuple[float, ...]) -> tuple[float, ...]:
    """Percentiles of nanoseconds in seconds, by nearest rank."""
    ranks = (ceil(round(share * len(ordered), 6)) for share in shares)  # 0.07 of 100 is a little more than 7
    return tuple(ordered[min(max(rank, 1), len(ordered)) - 1] / 1e9 for rank in ranks)
