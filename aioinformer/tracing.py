"""Tracer: records when each watch event reaches each stage on its way to the handlers.

An informer without a tracer contains none of this code, so disabled tracing costs nothing.
"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from inspect import isawaitable
from itertools import pairwise
from math import ceil
from time import monotonic_ns
from typing import Any, NamedTuple, Self, TypeVar, cast

import msgspec

from ._core.callables import callable_name, require_plain
from ._core.cancellation import CALL_ERRORS, maybe_await
from ._core.checks import is_finite, require_count
from ._core.failure_log import FailureLog
from .controller import Config
from .deltas import Delta, DeltaType
from .errors import ConfigError
from .handlers import ResourceEventHandler
from .notifications import (
    AddNotification,
    DeleteNotification,
    Notification,
    UndecodableNotification,
    UpdateNotification,
)
from .objects.keys import key_and_version
from .objects.meta import ListOptions
from .processor import Processor, ProcessorListener
from .protocols import ListerWatcher, Queue, WatchStream

__all__ = ["StageTimes", "Trace", "Tracer"]

logger = logging.getLogger(__name__)

R = TypeVar("R")

STAGES = ("decoded", "queued", "popped", "stored", "delivered", "started", "finished")
"""The stages of an event, each named after the stamp at its end."""

_QUEUED, _POPPED, _STORED, _DELIVERED = range(2, 6)

_EVENTS = frozenset((DeltaType.ADDED, DeltaType.UPDATED, DeltaType.DELETED))

_Key = tuple[str, str]

_Stamps = list[int]
"""The stamps of one event up to _DELIVERED; 0 for a stage that is not reached."""


class Trace(msgspec.Struct, frozen=True, gc=False):
    """The timing of one event for one handler. Stamps are ``time.monotonic_ns()``.

    Attributes:
        key: The object's key.
        resource_version: The event's version.
        informer: The informer's name.
        handler: The handler's name.
        received: The watch stream returned its bytes, split into lines.
        decoded: It was decoded, and is about to be queued.
        queued: It is in the queue.
        popped: It was popped, and is about to be processed.
        stored: The store has it, and the other events of its batch.
        delivered: It was added to the handlers' backlogs.
        started: The handler was called.
        finished: The handler has returned or raised; an async one has ended.
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
        """Nanoseconds of each of STAGES. Their sum is the total."""
        stamps = (self.received, *(getattr(self, stage) for stage in STAGES))
        return tuple(after - before for before, after in pairwise(stamps))

    def seconds(self) -> dict[str, float]:
        """Return the seconds of each of STAGES, by name."""
        return {stage: nanoseconds / 1e9 for stage, nanoseconds in zip(STAGES, self.stages, strict=True)}


class Tracer:
    """Stamps the watch events of one informer, and calls a hook with a Trace after each handler call.

    ``SharedInformerFactory(on_trace=)`` and ``Manager(on_trace=)`` create one for each of their informers.

    Objects of lists, resyncs and tombstones have no trace, nor have events that a handler's backlog drops or merges.
    If an object type has no version, the events of one object are indistinguishable: of those queued together, only
    one has a trace.

    Args:
        on_trace: A fast sync function, called with each Trace in the informer's event loop. Its errors are logged.
        limit: The maximum number of events in the pipeline. The oldest further ones are dropped.

    Attributes:
        forgotten: Events that were dropped, or replaced by an indistinguishable one.
        failed: Calls of the hook that raised.

    Raises:
        ConfigError: The hook is not a plain function.
    """

    def __init__(self, on_trace: Callable[[Trace], object], *, limit: int = 100_000) -> None:
        require_plain("on_trace", on_trace)
        require_count("limit", limit)
        self._on_trace = on_trace
        self._limit = limit
        self._in_pipeline: OrderedDict[_Key, _Stamps] = OrderedDict()
        self._informer: str | None = None
        self._failures = FailureLog("the hook of a Tracer", logger)
        self.forgotten = 0
        self.failed = 0

    def __len__(self) -> int:
        """Return how many events have not reached the handlers' backlogs."""
        return len(self._in_pipeline)

    def attach(self, config: Config) -> None:
        """Wrap a controller's source, queue and process functions so that they stamp events."""
        source = _TracedSource(config.list_watch)
        config.list_watch = cast(ListerWatcher, source)
        config.queue = cast(Queue, _TracedQueue(config.queue, self, source))
        config.process = self._trace_process(config.process)
        if config.process_batch is not None:
            config.process_batch = self._trace_process(config.process_batch)

    def processor(self, informer: str) -> Processor:
        """Return a processor that stamps events, for the informer of this name.

        Raises:
            ConfigError: The tracer has an informer already.
        """
        if self._informer is not None:
            raise ConfigError(
                f"{informer}: this Tracer belongs to {self._informer}; create another Tracer with the same hook"
            )
        self._informer = informer
        return _TracedProcessor(self)

    def begin(self, deltas: Iterable[Delta], received: int) -> list[_Key]:
        """Record events that are decoded and about to be queued."""
        now = monotonic_ns()
        begun = [key_and_version(delta.object) for delta in deltas if delta.type in _EVENTS]
        for key in begun:
            self.forgotten += self._in_pipeline.pop(key, None) is not None
            self._in_pipeline[key] = [received, now, 0, 0, 0, 0]
        while len(self._in_pipeline) > self._limit:
            self._in_pipeline.popitem(last=False)
            self.forgotten += 1
        return begun

    def stamp(self, stage: int, keys: Iterable[_Key], now: int) -> None:
        """Stamp a stage of events, unless it is stamped already."""
        for key in keys:
            if (stamps := self._in_pipeline.get(key)) is not None:
                stamps[stage] = stamps[stage] or now

    def stored(self, notification: Notification, now: int) -> tuple[_Key, _Stamps] | None:
        """Stamp and return the event of a notification that is about to be distributed, or None if there is none."""
        if isinstance(notification, AddNotification) and notification.is_in_initial_list:
            return None
        key = key_and_version(notification.obj)
        stamps = self._in_pipeline.get(key)
        if stamps is None or not stamps[_POPPED]:  # still queued: another event of the object
            return None
        del self._in_pipeline[key]
        stamps[_STORED] = now
        return None if notification.is_sync else (key, stamps)

    def finish(self, key: _Key, stamps: _Stamps, handler: str, started: int) -> None:
        """Create the Trace of a handler call that has ended, and call the hook."""
        now = monotonic_ns()
        name, version = key
        informer = self._informer or ""
        received, decoded, queued, popped, stored, delivered = stamps
        trace = Trace(
            name, version, informer, handler, received, decoded, queued, popped, stored, delivered, started, now
        )  # fmt: skip
        try:
            self._on_trace(trace)
        except CALL_ERRORS as error:
            self.failed += 1
            self._failures.log(
                error, "%s: the Tracer's hook %s raised for %s at %s",
                informer, callable_name(self._on_trace), name, version,
                traceback=error,
            )  # fmt: skip

    def _trace_process(self, process: Callable[[list[Delta], bool], R]) -> Callable[[list[Delta], bool], R]:
        def process_traced(deltas: list[Delta], is_in_initial_list: bool) -> R:
            if not is_in_initial_list:
                now = monotonic_ns()
                keys = [key_and_version(delta.object) for delta in deltas if delta.type in _EVENTS]
                self.stamp(_QUEUED, keys, now)  # popped before apply() returned
                self.stamp(_POPPED, keys, now)
            return process(deltas, is_in_initial_list)

        return process_traced


class _TracedSource:
    """A ListerWatcher that records when its stream returned the last batch."""

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
        return getattr(self._stream, name)  # aclose, if it has one

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        batch = await anext(self._stream)
        self._source.received = monotonic_ns()
        return batch


class _TracedQueue:
    """A queue that stamps events before and after they are queued."""

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


class _Path(NamedTuple):
    """The stamps of one event for one handler. A backlog that drops the notification drops them too."""

    tracer: Tracer
    handler: str
    key: _Key
    stamps: _Stamps

    def time_delivery(self, deliver: Callable[[ResourceEventHandler[Any]], object], handler: Any) -> object:
        started = monotonic_ns()
        self.stamps[_DELIVERED] = (
            self.stamps[_DELIVERED] or started
        )  # the call started before distribution ended
        is_over = True
        try:
            result = deliver(handler)
            if isawaitable(result):
                is_over = False
                return self._await(result, started)
            return result
        finally:
            if is_over:
                self._finish(started)

    async def _await(self, result: Awaitable[object], started: int) -> object:
        try:
            return await result
        finally:
            self._finish(started)

    def _finish(self, started: int) -> None:
        self.tracer.finish(self.key, self.stamps, self.handler, started)


class _TracedAdd(AddNotification, frozen=True, gc=False, kw_only=True):
    path: _Path

    def deliver(self, handler: ResourceEventHandler[Any]) -> object:
        return self.path.time_delivery(super().deliver, handler)


class _TracedUpdate(UpdateNotification, frozen=True, gc=False, kw_only=True):
    path: _Path

    def deliver(self, handler: ResourceEventHandler[Any]) -> object:
        return self.path.time_delivery(super().deliver, handler)


class _TracedDelete(DeleteNotification, frozen=True, gc=False, kw_only=True):
    path: _Path

    def deliver(self, handler: ResourceEventHandler[Any]) -> object:
        return self.path.time_delivery(super().deliver, handler)


class _TracedUndecodable(UndecodableNotification, frozen=True, gc=False, kw_only=True):
    path: _Path

    def deliver(self, handler: ResourceEventHandler[Any]) -> object:
        return self.path.time_delivery(super().deliver, handler)


def _on(path: _Path, notification: Notification) -> Notification:
    match notification:
        case AddNotification():
            return _TracedAdd(
                notification.new, notification.is_in_initial_list, notification.before, path=path
            )
        case UpdateNotification():
            return _TracedUpdate(notification.old, notification.new, path=path)
        case DeleteNotification():
            return _TracedDelete(notification.old, path=path)
        case UndecodableNotification():
            return _TracedUndecodable(
                notification.old, notification.new, notification.is_in_initial_list, path=path
            )


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
                else _on(_Path(self._tracer, listener.name, *event), notification)
                for notification, event in zip(notifications, events, strict=True)
            ]
            super().distribute_all(traced, [listener])
        delivered = monotonic_ns()
        for event in events:
            if event is not None:
                _, stamps = event
                stamps[_DELIVERED] = stamps[_DELIVERED] or delivered


class StageTimes:
    """A hook for a Tracer that computes percentiles of each stage over the last traces.

    Args:
        traces: How many traces to keep.
    """

    def __init__(self, traces: int = 100_000) -> None:
        require_count("traces", traces)
        self._stages: deque[tuple[int, ...]] = deque(maxlen=traces)

    def __call__(self, trace: Trace) -> None:
        self._stages.append(trace.stages)

    def __len__(self) -> int:
        return len(self._stages)

    def summary(self) -> dict[str, Any]:
        """Return what the debug page and ``aioinformer top`` say: the median and the 99th percentile of each stage."""
        shares = self.percentiles(0.5, 0.99)
        return {
            "traces": len(self),
            "seconds": {name: list(percentiles) for name, percentiles in shares.items()},
        }

    def percentiles(self, *shares: float) -> dict[str, tuple[float, ...]]:
        """Return percentiles in seconds, by nearest rank, for each of STAGES and ``"total"``.

        Args:
            shares: Such as ``0.5, 0.99``.

        Raises:
            ConfigError: A share is not between 0 and 1.
        """
        for share in shares:
            if not is_finite(share) or not 0 <= share <= 1:
                raise ConfigError(
                    f"a share must be a number from 0 to 1, such as 0.99 for 99 %, not {share!r}"
                )
        columns = self._columns()
        columns["total"] = tuple(sum(stages) for stages in self._stages)
        return {name: percentiles_of(sorted(values), shares) for name, values in columns.items() if values}

    def means(self) -> dict[str, float]:
        """Return the mean of each of STAGES in seconds. Their sum is the mean total."""
        count = len(self._stages)
        return {name: sum(values) / count / 1e9 for name, values in self._columns().items()}

    def _columns(self) -> dict[str, tuple[int, ...]]:
        return dict(zip(STAGES, zip(*self._stages, strict=True), strict=False))


def percentiles_of(ordered: list[int], shares: tuple[float, ...]) -> tuple[float, ...]:
    """Return percentiles of nanoseconds, in seconds, by nearest rank."""
    ranks = (
        ceil(round(share * len(ordered), 6)) for share in shares
    )  # in floats, 0.07 * 100 is a little more than 7
    return tuple(ordered[min(max(rank, 1), len(ordered)) - 1] / 1e9 for rank in ranks)
