"""A work queue: each item is processed by one worker at a time (client-go ``util/workqueue``).

Priorities are those of controller-runtime (``pkg/controller/priorityqueue``), with ageing so that none starves another.
Delays and additions during processing follow client-go, except that the highest of several priorities counts, and that
``cancel_delayed`` exists.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Collection, Container, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

from .._core.checks import require_count, require_methods
from .._core.forks import Process, current_process, forked_error, require_same_process
from ..errors import ConfigError, QueueShutDownError, WorkQueueError, shorten
from .buckets import Bucket, Buckets
from .delays import Delays
from .metrics import QueueMetrics
from .rate_limiters import RateLimiter, default_controller_rate_limiter

T = TypeVar("T", bound=Hashable)

AGEING = 10
"""Default number of items that go before a lower priority gets its turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkQueueState:
    """A snapshot of a work queue.

    Attributes:
        name: The queue's name.
        depth: Items that wait for a worker.
        depths: The same by priority.
        processing: Items that workers have and are not done with.
        delayed: Items that wait for their delay to pass.
        waiting_workers: Workers that wait in ``get``.
        shutting_down: Whether the queue accepts no more items.
    """

    name: str
    depth: int
    depths: dict[int, int]
    processing: int
    delayed: int
    waiting_workers: int
    shutting_down: bool

    def __str__(self) -> str:
        by_priority = ", ".join(f"{count} at {priority}" for priority, count in self.depths.items())
        text = f"{self.depth} queued" + (f" ({by_priority})" if len(self.depths) > 1 else "")
        text += f", {self.processing} in process, {self.delayed} delayed"
        return f"{text}; shutting down" if self.shutting_down else text


class WorkQueue(Generic[T]):
    """A queue whose items are processed once, however often they are added, and by one worker at a time.

    ``get`` returns an item to a worker, which calls ``done`` at the end. An item that is added while it is processed
    is queued again after ``done``. Plain methods act at once; coroutines wait. Use a queue in one event loop only. From
    other threads, call ``loop.call_soon_threadsafe(queue.add, item)``: a plain ``add`` would wake no worker.

    Args:
        rate_limiter: Delays of ``add_rate_limited``; None for client-go's default.
        name: Name in metrics and states.
        ageing: The highest priority goes first, but one item of a priority goes first after it was passed over so many
            times. So no priority starves, and a new item of the highest priority waits for at most one item of each
            lower priority. 1 or more.
        metrics: Records what happens; None for no metrics.

    Attributes:
        waiting: The items that wait for a worker, to read.

    Raises:
        ConfigError: ``ageing`` is not a whole number of 1 or more, or the rate limiter lacks a method.

    Guarantees:
        Items of one priority come in the order in which they were added or became due; an item added while it was
        processed, as if added at ``done``. No item is lost: if a worker is cancelled in ``get``, the next worker gets
        the item.
    """

    def __init__(
        self,
        rate_limiter: RateLimiter[T] | None = None,
        *,
        name: str = "",
        ageing: int = AGEING,
        metrics: QueueMetrics[T] | None = None,
    ) -> None:
        require_count("ageing", ageing)
        if not ageing:
            raise ConfigError("ageing must be 1 or more: with 0 the lowest priority would go first")
        if rate_limiter is not None:
            methods = ("when", "forget", "num_requeues")
            require_methods("rate_limiter", rate_limiter, methods, "ItemExponentialFailureRateLimiter()")
        self.name = name
        self._rate_limiter = default_controller_rate_limiter() if rate_limiter is None else rate_limiter
        self._metrics = metrics
        self._buckets = Buckets[T](ageing)
        self._queued: dict[T, Bucket[T]] = self._buckets.bucket_of
        self.waiting: Collection[T] = self._queued
        self._processing: dict[T, int] = {}
        self._again: dict[T, int] = {}
        self._delays = Delays[T](self.add)
        self._delayed: Container[T] = self._delays.pending
        self._getters: OrderedDict[asyncio.Future[None], None] = OrderedDict()
        self._drained: list[asyncio.Future[None]] = []
        self._process: Process | None = None  # the workers'
        self._shutting_down = False
        self._draining = False
        if metrics is not None:
            metrics.watch(lambda: len(self._queued) + len(self._again))

    def __repr__(self) -> str:
        return f"<WorkQueue {self.name}: {self.state}>"

    def __len__(self) -> int:
        """The number of items that wait for a worker, without those in process or delayed."""
        return len(self._queued)

    def __bool__(self) -> bool:
        return True

    # -- adding --------------------------------------------------------------------------------------------

    def add(self, item: T, priority: int = 0) -> None:
        """Add an item.

        An item that waits already keeps its place, unless this priority is higher. An item in process is queued again
        after ``done``. A queue that is shutting down ignores the call.

        Args:
            item: A hashable item.
            priority: A whole number; higher priorities go first.

        Raises:
            ConfigError: The priority is not a whole number.
            ForkedError: Its workers are in the parent process.
        """
        if type(priority) is not int and not isinstance(priority, int):
            raise _wrong_priority(priority)
        if (process := self._process) is not None and process.was_forked:
            raise forked_error(f"work queue {self.name!r}")
        if self._shutting_down:
            return
        if item in self._processing:
            again = self._again.get(item)
            if again is None or again < priority:
                self._again[item] = priority
                if again is None and self._metrics is not None:
                    self._metrics.added(item)
            return
        bucket = self._queued.get(item)
        if bucket is not None:
            if bucket.priority < priority:
                self._buckets.raise_to(item, priority)
            return
        self._buckets.push(item, priority)
        if self._getters:
            self._wake_one()
        if self._metrics is not None:  # last, so that an error in it loses no item
            self._metrics.added(item)

    def add_after(self, item: T, delay: float, priority: int = 0) -> None:
        """Add an item after a delay. The earliest of several due times and the highest of several priorities count.

        A plain ``add`` meanwhile does not change the delayed one; ``cancel_delayed`` removes it.

        Args:
            item: A hashable item.
            delay: Seconds; 0 or less adds it at once.
            priority: As for ``add``.

        Raises:
            ConfigError: The delay is not a finite number, or the priority is not a whole number.
            WrongEventLoopError: No event loop runs here.
            ForkedError: Its workers are in the parent process.
        """
        if not isinstance(priority, int):
            raise _wrong_priority(priority)
        if self._shutting_down:
            return
        self._delays.check(delay)
        if delay <= 0:
            self.add(item, priority)
        else:
            self._delays.add(item, delay, priority)
        if self._metrics is not None:
            self._metrics.retried(item)

    def add_rate_limited(self, item: T, priority: int = 0, *, at_least: float = 0.0) -> float:
        """Add an item when the rate limiter allows it.

        Args:
            item: A hashable item.
            priority: As for ``add``.
            at_least: Minimum delay in seconds, such as a server's Retry-After.

        Returns:
            The delay in seconds.
        """
        delay = max(self._rate_limiter.when(item), at_least)
        self.add_after(item, delay, priority)
        return delay

    def cancel_delayed(self, item: T) -> bool:
        """Remove an item that ``add_after`` or ``add_rate_limited`` has not added yet. Returns whether it was there."""
        return item in self._delayed and self._delays.cancel(item)

    def discard(self, item: T) -> bool:
        """Remove an item that waits for a worker. Returns whether it was there; an item in process is not affected."""
        if item not in self._queued:
            return False
        self._buckets.discard(item)
        if self._metrics is not None:
            self._metrics.discarded(item)
        if self._drained and self._is_empty():
            self._wake_drained()
        return True

    def forget(self, item: T) -> None:
        """Reset the rate limiter for an item. A worker must still call ``done``."""
        self._rate_limiter.forget(item)

    def num_requeues(self, item: T) -> int:
        """Return how often the rate limiter has delayed an item since it was forgotten."""
        return self._rate_limiter.num_requeues(item)

    # -- processing ----------------------------------------------------------------------------------------

    async def get(self) -> T:
        """Wait for the next item and return it. No other worker gets it until ``done``.

        Raises:
            QueueShutDownError: The queue is shut down and empty.
            ForkedError: Its workers are in the parent process.

        Cancellation: no item is lost, and none stays in process.
        """
        if (process := self._process) is None or process.was_forked:
            self._require_same_process()
        while not self._queued:
            if self._shutting_down:
                raise QueueShutDownError(f"work queue {self.name!r} is shut down")
            future = asyncio.get_running_loop().create_future()
            self._getters[future] = None
            try:
                await future
            except asyncio.CancelledError:
                if future.cancelled():
                    self._getters.pop(future, None)
                elif self._queued:  # this worker was woken
                    self._wake_one()
                raise
        item, priority = self._buckets.pop()
        self._processing[item] = priority
        if self._metrics is not None:
            try:
                self._metrics.got(item)
            except BaseException:  # the item reached no worker
                self._again.setdefault(item, priority)
                self._take_back(item)
                raise
        return item

    def done(self, item: T) -> None:
        """End the processing of an item, successful or not.

        Raises:
            WorkQueueError: The item is not in process.
        """
        if item not in self._processing:
            raise WorkQueueError(f"{shorten(item)} is not in process in {self!r}: get it before done()")
        self._take_back(item)
        if self._metrics is not None:
            self._metrics.done(item)

    def _take_back(self, item: T) -> None:
        del self._processing[item]
        if self._again and (priority := self._again.pop(item, None)) is not None:
            self._buckets.push(item, priority)
            if self._getters:
                self._wake_one()
        elif self._drained and self._is_empty():
            self._wake_drained()

    def priority_of(self, item: T) -> int:
        """Return the priority with which an item in process was queued.

        Raises:
            WorkQueueError: The item is not in process.
        """
        try:
            return self._processing[item]
        except KeyError:
            raise WorkQueueError(f"{shorten(item)} is not in process in {self!r}: get it first") from None

    @asynccontextmanager
    async def processing(self) -> AsyncIterator[T]:
        """Get the next item, and call ``done`` at the end of the ``async with`` block. Raises as ``get``."""
        item = await self.get()
        try:
            yield item
        finally:
            self.done(item)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        """Return the next item, as ``get``; end when the queue is shut down and empty. Call ``done`` for each item."""
        try:
            return await self.get()
        except QueueShutDownError:
            raise StopAsyncIteration from None

    # -- ending --------------------------------------------------------------------------------------------

    def shut_down(self) -> None:
        """Accept no more items. Queued items are still processed; delayed items are dropped."""
        self._begin_shutdown(draining=False)
        self._wake_drained()

    async def shut_down_with_drain(self) -> None:
        """Accept no more items, and wait until all queued items and items in process are done.

        Delayed items are dropped. Workers must continue meanwhile. ``shut_down`` ends the waiting.

        Cancellation: the queue stays shut down.
        """
        self._require_same_process()
        self._begin_shutdown(draining=True)
        while self._draining and not self._is_empty():
            future = asyncio.get_running_loop().create_future()
            self._drained.append(future)
            try:
                await future
            finally:
                if future in self._drained:
                    self._drained.remove(future)

    @property
    def is_shutting_down(self) -> bool:
        """Whether the queue accepts no more items."""
        return self._shutting_down

    @property
    def items_processing(self) -> list[T]:
        """The items in process."""
        return list(self._processing)

    @property
    def state(self) -> WorkQueueState:
        """A snapshot of the queue."""
        return WorkQueueState(
            name=self.name,
            depth=len(self._queued),
            depths=self._buckets.depths(),
            processing=len(self._processing),
            delayed=len(self._delays),
            waiting_workers=len(self._getters),
            shutting_down=self._shutting_down,
        )

    def _begin_shutdown(self, *, draining: bool) -> None:
        self._draining = draining
        self._shutting_down = True
        self._delays.clear()
        for future in self._getters:
            if not future.done():
                future.set_result(None)
        self._getters.clear()

    def _is_empty(self) -> bool:
        return not self._queued and not self._processing

    def _wake_drained(self) -> None:
        for future in self._drained:
            if not future.done():
                future.set_result(None)

    def _require_same_process(self) -> None:
        """Check that its workers are in this process; the first worker decides that."""
        if self._process is None:
            self._process = current_process()
        else:
            require_same_process(self._process, f"work queue {self.name!r}")

    def _wake_one(self) -> None:
        getters = self._getters
        while getters:
            future, _ = getters.popitem(last=False)
            if not future.done():
                future.set_result(None)
                return


def _wrong_priority(priority: object) -> ConfigError:
    return ConfigError(f"a priority must be a whole number, not {priority!r}")
