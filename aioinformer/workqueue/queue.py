"""A work queue: what is to be worked on, each item by one worker at a time (client-go ``util/workqueue``).

Priorities are controller-runtime's (``pkg/controller/priorityqueue``), but that no priority starves another. What
becomes of an item that waits for its time, or is added while it is worked on, is client-go's, apart from the highest of
several priorities, which counts, and ``cancel_delayed``.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

from .._core.checks import require_count
from ..errors import ConfigError, QueueShutDownError, WorkQueueError, shortened
from .buckets import Bucket, Buckets
from .delays import Delays
from .metrics import QueueMetrics
from .rate_limiters import RateLimiter, default_controller_rate_limiter

T = TypeVar("T", bound=Hashable)

AGEING = 10
"""Items handed out before it after which a lower priority has its turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkQueueState:
    """A snapshot of a work queue.

    Attributes:
        name: The queue's.
        depth: Items that wait for a worker.
        depths: The same by priority.
        processing: Items that were handed out and are not done.
        delayed: Items that wait for their time.
        waiting_workers: How many wait in ``get``.
        shutting_down: Whether nothing more is taken.
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
        text += f", {self.processing} being worked on, {self.delayed} delayed"
        return f"{text}; shutting down" if self.shutting_down else text


class WorkQueue(Generic[T]):
    """Items to be worked on: each once, however often it was added, and never by two workers at once.

    ``get`` hands an item out, ``done`` says that its work has ended. An item that is added while it is worked on
    comes again after that. Plain methods change the queue at once; the coroutines wait. All of it is for one event
    loop: from other threads it is ``loop.call_soon_threadsafe(queue.add, item)``, or nobody is woken.

    Args:
        rate_limiter: Says how long ``add_rate_limited`` waits; None for client-go's default.
        name: What metrics and states call it.
        ageing: Of priorities that wait, the highest goes first; but one that was passed over so many times has its
            turn, which is one item. So none starves, and a fresh item of the highest priority waits for one of each
            lower priority at most. 1 or more.
        metrics: Told of what happens; None for nobody.

    Raises:
        ConfigError: ``ageing`` is no number of items.

    Guarantees:
        Items of one priority are handed out in the order in which they were added, or became due; what was added
        while it was worked on, as if it were added at the end of that. None is lost: what a worker that is cancelled
        in ``get`` would have had goes to the next.
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
        self.name = name
        self._rate_limiter = default_controller_rate_limiter() if rate_limiter is None else rate_limiter
        self._metrics = metrics
        self._buckets = Buckets[T](ageing)
        self._queued: dict[T, Bucket[T]] = self._buckets.bucket_of
        self._processing: dict[T, int] = {}
        self._again: dict[T, int] = {}
        self._delays = Delays[T](self.add)
        self._getters: OrderedDict[asyncio.Future[None], None] = OrderedDict()
        self._drained: list[asyncio.Future[None]] = []
        self._shutting_down = False
        self._draining = False
        if metrics is not None:
            metrics.watch(lambda: len(self._queued) + len(self._again))

    def __repr__(self) -> str:
        return f"<WorkQueue {self.name}: {self.state}>"

    def __len__(self) -> int:
        """How many items wait for a worker; those being worked on and those delayed are not counted."""
        return len(self._queued)

    def __bool__(self) -> bool:
        return True

    # -- adding --------------------------------------------------------------------------------------------

    def add(self, item: T, priority: int = 0) -> None:
        """Have an item worked on.

        One that waits already keeps its place, unless this priority is higher. One that is being worked on comes
        again after that. Once shutting down nothing is added.

        Args:
            item: What to work on: hashable.
            priority: Higher ones go first.
        """
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
        if self._metrics is not None:  # last: what it raises loses no item
            self._metrics.added(item)

    def add_after(self, item: T, delay: float, priority: int = 0) -> None:
        """Add an item after a while. Of several times the earliest counts, of several priorities the highest.

        Adding it meanwhile changes nothing about it, see ``cancel_delayed``.

        Args:
            item: What to work on.
            delay: Seconds; 0 or less for at once.
            priority: As for ``add``.

        Raises:
            ConfigError: The delay is endless, or no number.
        """
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
            item: What to work on.
            priority: As for ``add``.
            at_least: Seconds that it waits in any case, such as a server has asked for.

        Returns:
            Seconds until then.
        """
        delay = max(self._rate_limiter.when(item), at_least)
        self.add_after(item, delay, priority)
        return delay

    def cancel_delayed(self, item: T) -> bool:
        """Take back what ``add_after`` and ``add_rate_limited`` have not added yet; whether there was anything."""
        return self._delays.cancel(item)

    def discard(self, item: T) -> bool:
        """Take back an item that waits for a worker; return whether it did. One that is being worked on goes on."""
        if item not in self._queued:
            return False
        self._buckets.discard(item)
        if self._metrics is not None:
            self._metrics.discarded(item)
        if self._drained and self._is_empty():
            self._wake_drained()
        return True

    def forget(self, item: T) -> None:
        """Let the rate limiter begin anew for an item. It still has to be ``done``."""
        self._rate_limiter.forget(item)

    def num_requeues(self, item: T) -> int:
        """How often the rate limiter was asked about an item since it was forgotten."""
        return self._rate_limiter.num_requeues(item)

    # -- working -------------------------------------------------------------------------------------------

    async def get(self) -> T:
        """The next item, which is this worker's until it says ``done``.

        Raises:
            QueueShutDownError: The queue is shut down and empty.

        Cancellation: no item is lost, and none is left handed out.
        """
        while not self._queued:
            if self._shutting_down:
                raise QueueShutDownError(f"work queue {self.name!r} is shut down")
            await self._wait_for_news()
        item, priority = self._buckets.pop()
        self._processing[item] = priority
        if self._metrics is not None:
            try:
                self._metrics.got(item)
            except BaseException:  # nobody has it
                self._again.setdefault(item, priority)
                self._take_back(item)
                raise
        return item

    def done(self, item: T) -> None:
        """The work on an item has ended, well or not.

        Raises:
            WorkQueueError: It was not handed out.
        """
        if item not in self._processing:
            raise WorkQueueError(f"{shortened(item)} is not being worked on in {self!r}")
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
        """The priority with which an item was handed out.

        Raises:
            WorkQueueError: It was not handed out.
        """
        try:
            return self._processing[item]
        except KeyError:
            raise WorkQueueError(f"{shortened(item)} is not being worked on in {self!r}") from None

    @asynccontextmanager
    async def processing(self) -> AsyncIterator[T]:
        """The next item, to work on inside ``async with``, which says ``done`` at its end. Raises as ``get``."""
        item = await self.get()
        try:
            yield item
        finally:
            self.done(item)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        """As ``get``; ends when the queue is shut down and empty. Each item still has to be ``done``."""
        try:
            return await self.get()
        except QueueShutDownError:
            raise StopAsyncIteration from None

    # -- ending --------------------------------------------------------------------------------------------

    def shut_down(self) -> None:
        """Take nothing more. What is queued is still handed out; what waits for its time is dropped."""
        self._begin_to_end(draining=False)
        self._wake_drained()

    async def shut_down_with_drain(self) -> None:
        """Take nothing more, and wait until what is queued and what is being worked on is done.

        What waits for its time is dropped. Somebody must go on working. ``shut_down`` ends the waiting.

        Cancellation: it stays shut down.
        """
        self._begin_to_end(draining=True)
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
        """Whether nothing more is taken."""
        return self._shutting_down

    @property
    def items_processing(self) -> list[T]:
        """What is being worked on."""
        return list(self._processing)

    @property
    def state(self) -> WorkQueueState:
        """What is in it."""
        return WorkQueueState(
            name=self.name,
            depth=len(self._queued),
            depths=self._buckets.depths(),
            processing=len(self._processing),
            delayed=len(self._delays),
            waiting_workers=len(self._getters),
            shutting_down=self._shutting_down,
        )

    def _begin_to_end(self, *, draining: bool) -> None:
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

    async def _wait_for_news(self) -> None:
        """Wait until there may be something to hand out. Whoever was woken and is cancelled wakes the next."""
        future = asyncio.get_running_loop().create_future()
        self._getters[future] = None
        try:
            await future
        except asyncio.CancelledError:
            if future.cancelled():
                self._getters.pop(future, None)
            elif self._queued:
                self._wake_one()
            raise

    def _wake_one(self) -> None:
        getters = self._getters
        while getters:
            future, _ = getters.popitem(last=False)
            if not future.done():
                future.set_result(None)
                return
