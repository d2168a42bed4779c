"""Where an event's time goes: a Tracer stamps it at every hand-over on its way to the handlers.

An informer without a tracer is put together without any of this: tracing that is off costs nothing.
"""

from __future__ import annotations

import logging
from asyncio import CancelledError
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from inspect import isawaitable
from itertools import pairwise
from time import monotonic_ns
from typing import Any, Self, TypeVar, cast

import msgspec

from .api import ListOptions
from .checks import require_count
from .controller import Config
from .deltas import Delta, DeltaType
from .errors import ConfigError
from .handlers import ResourceEventHandler, callable_name, require_handler, require_plain
from .keys import key_and_version
from .notifications import Notification
from .processor import Processor, ProcessorListener
from .protocols import ListerWatcher, Queue, WatchStream
from .tasks import settle

logger = logging.getLogger(__name__)

R = TypeVar("R")

STAGES = ("decoded", "queued", "popped", "stored", "delivered", "started", "finished")
"""What an event has gone through, each stage called by the stamp at its end."""

_RECEIVED, _DECODED, _QUEUED, _POPPED, _STORED, _DELIVERED, _WAITING = range(7)

_EVENTS = frozenset((DeltaType.ADDED, DeltaType.UPDATED, DeltaType.DELETED))

_Key = tuple[str, str]


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
        delivered: It waits for the handlers.
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
    backlog drops or merges.

    Args:
        on_trace: Called with each Trace, in the informer's loop; plain and quick. What it raises is logged.
        limit: Events that may be on their way; of more the oldest are forgotten.

    Attributes:
        forgotten: How many were.
        failed: Calls of the hook that raised.

    Raises:
        ConfigError: The hook is no plain function.
    """

    def __init__(self, on_trace: Callable[[Trace], object], *, limit: int = 100_000) -> None:
        require_plain("on_trace", on_trace)
        require_count("limit", limit)
        self._on_trace = on_trace
        self._limit = limit
        self._under_way: dict[_Key, list[int]] = {}
        self._informer: str | None = None
        self.forgotten = 0
        self.failed = 0

    def __len__(self) -> int:
        """How many events are on their way."""
        return len(self._under_way)

    def attach(self, config: Config) -> None:
        """Have a controller's events stamped, from its stream to its process functions."""
        source = _TracedSource(config.list_watch)
        config.list_watch = cast(ListerWatcher, source)
        config.queue = cast(Queue, _TracedQueue(config.queue, self, source))
        config.process = self._traced(config.process)
        if config.process_batch is not None:
            config.process_batch = self._traced(config.process_batch)
        if config.at_once is not None:
            config.at_once = self._traced(config.at_once)

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

    def handler(self, handler: ResourceEventHandler[Any], name: str) -> ResourceEventHandler[Any]:
        """A handler whose calls are stamped, with this name.

        Raises:
            ConfigError: It is no handler.
        """
        require_handler(handler)
        return _TracedHandler(handler, name, self)

    def begin(self, deltas: Iterable[Delta], received: int) -> list[_Key]:
        """Events are decoded, and about to be queued."""
        now = monotonic_ns()
        begun = [key_and_version(delta.object) for delta in deltas if delta.type in _EVENTS]
        self._under_way.update((key, [received, now, 0, 0, 0, 0, 0]) for key in begun)
        while len(self._under_way) > self._limit:
            del self._under_way[next(iter(self._under_way))]
            self.forgotten += 1
        return begun

    def stamp(self, stage: int, keys: Iterable[_Key], now: int) -> None:
        """Events have come so far. The first time counts."""
        for key in keys:
            if (stamps := self._under_way.get(key)) is not None:
                stamps[stage] = stamps[stage] or now

    def waits_for(self, key: _Key, handlers: int) -> None:
        """So many handlers are to be told of an event."""
        if (stamps := self._under_way.get(key)) is None:
            return
        stamps[_WAITING] = handlers
        if not handlers:
            del self._under_way[key]

    def finish(self, obj: Any, handler: str, started: int) -> None:
        """A handler is through with an object."""
        now = monotonic_ns()
        key = key_and_version(obj)
        if (stamps := self._under_way.get(key)) is None:
            return
        stamps[_WAITING] -= 1
        if not stamps[_WAITING]:
            del self._under_way[key]
        name, version = key
        informer = self._informer or ""
        received, decoded, queued, popped, stored, delivered, _ = stamps
        trace = Trace(
            name, version, informer, handler, received, decoded, queued, popped, stored, delivered, started, now
        )  # fmt: skip
        try:
            self._on_trace(trace)
        except (Exception, CancelledError):  # a plain function: nobody cancels us in it
            self.failed += 1
            logger.exception(
                "%s: the hook of its Tracer, %s, raised for %s at %s",
                informer, callable_name(self._on_trace), name, version,
            )  # fmt: skip

    def _traced(self, process: Callable[[list[Delta], bool], R]) -> Callable[[list[Delta], bool], R]:
        def traced(deltas: list[Delta], is_in_initial_list: bool) -> R:
            if not is_in_initial_list:
                now = monotonic_ns()
                keys = [key_and_version(delta.object) for delta in deltas]
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
        return _TracedStream(await settle(self._list_watch.watch(options)), self)


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


class _TracedProcessor(Processor):
    def __init__(self, tracer: Tracer) -> None:
        super().__init__()
        self._tracer = tracer

    def distribute_all(
        self,
        notifications: Sequence[Notification],
        listeners: Iterable[ProcessorListener[Any]] | None = None,
    ) -> None:
        keys = [key_and_version(each.obj) for each in notifications if not each.is_in_initial_list]
        self._tracer.stamp(_STORED, keys, monotonic_ns())
        super().distribute_all(notifications, listeners)
        self._tracer.stamp(_DELIVERED, keys, monotonic_ns())
        for key in keys:
            self._tracer.waits_for(key, len(self.listeners))


class _TracedHandler(ResourceEventHandler[Any]):
    def __init__(self, handler: ResourceEventHandler[Any], name: str, tracer: Tracer) -> None:
        self._handler = handler
        self._name = name
        self._tracer = tracer

    def __repr__(self) -> str:
        return self._name

    def on_add(self, obj: Any, is_in_initial_list: bool) -> Any:
        if is_in_initial_list:
            return self._handler.on_add(obj, is_in_initial_list)
        return self._call(obj, lambda: self._handler.on_add(obj, is_in_initial_list))

    def on_update(self, old: Any, new: Any) -> Any:
        return self._call(new, lambda: self._handler.on_update(old, new))

    def on_delete(self, obj: Any) -> Any:
        return self._call(obj, lambda: self._handler.on_delete(obj))

    def _call(self, obj: Any, call: Callable[[], Any]) -> Any:
        started = monotonic_ns()
        is_over = True
        try:
            result = call()
            if isawaitable(result):
                is_over = False
                return self._await(result, obj, started)
            return result
        finally:
            if is_over:
                self._tracer.finish(obj, self._name, started)

    async def _await(self, result: Awaitable[Any], obj: Any, started: int) -> Any:
        try:
            return await result
        finally:
            self._tracer.finish(obj, self._name, started)


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
        """
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
    return tuple(ordered[min(len(ordered) - 1, int(share * len(ordered)))] / 1e9 for share in shares)
