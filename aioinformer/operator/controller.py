"""Controller: a reconciler, what makes it run, and the workers that run it (controller-runtime ``pkg/controller``)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from typing import Any, Generic, TypeVar

from .._core.checks import (
    require_count,
    require_list,
    require_seconds,
    require_text,
)
from .._core.tasks import maybe_await, wait_ended
from ..errors import AlreadyStartedError, ConfigError, NotFoundError, SyncTimeout
from ..informer import Registration, SharedIndexInformer
from ..metrics import Sample, labelled
from ..workqueue import ItemExponentialFailureRateLimiter, QueueMetrics, RateLimiter, WorkQueue
from .finalizing import make_step
from .predicates import PredicateFunc
from .protocols import WrittenResource
from .requests import Reconcile, Reconciler, Request
from .runs import CANCEL_GRACE
from .sources import Source, SourceTrigger
from .state import ControllerState
from .triggers import (
    Cached,
    InformerTrigger,
    Owns,
    Primary,
    Trigger,
    Watch,
    informer_of,
)
from .workers import Workers

logger = logging.getLogger(__name__)

T = TypeVar("T")

TIMEOUT = 300.0
"""Seconds that a reconcile may take."""


class Controller(Generic[T]):
    """Reconciles the objects of a collection, one reconcile of each at a time.

    A Manager runs it.

    Args:
        name: What logs, states and metrics call it.
        reconcile: ``reconcile(request)``, a coroutine function or a plain one; or a Reconciler.
        primary: The informer of what is reconciled; or a CachedResource, which ``finalizer`` needs.
        predicate: Which changes of it count; None for all.
        owns: Of what belongs to it: informers, CachedResources, or Owns.
        watches: Of what else matters: Watches.
        sources: Requests from anywhere: async iterables, or functions that give one.
        concurrency: How many objects are reconciled at the same time.
        timeout: Seconds after which a reconcile is cancelled, and has failed, whatever it makes of that; None for any
            length.
        rate_limiter: How long an object waits that failed; None for 5 ms, doubled at each failure, up to 1000 s.
        finalizer: The finalizer that each object has before it is first reconciled; None for the Reconciler's.
        cleanup: ``cleanup(request)``, called in place of ``reconcile`` once the object is to be deleted. The finalizer
            is removed when it has succeeded and does not ask for a requeue.
        cache_sync_timeout: Seconds after which the manager's other controllers begin without waiting for the caches
            that only this one needs; it begins itself when they have synced. None to have them wait for ever.

    Raises:
        ConfigError: An argument is not what it should be.

    Guarantees:
        No object is reconciled twice at once, and each is reconciled after its last change. What a reconciler,
        predicate, map function or source raises is logged and counted, and stops nothing. A reconcile that was
        cancelled from outside, because the manager stops or leads no more, comes again, whatever it makes of that.
    """

    def __init__(
        self,
        name: str,
        reconcile: Reconcile[T] | Reconciler[T],
        primary: SharedIndexInformer[T] | WrittenResource[T],
        *,
        predicate: PredicateFunc[T] | None = None,
        owns: Iterable[Cached | Owns] = (),
        watches: Iterable[Watch] = (),
        sources: Iterable[Source] = (),
        concurrency: int = 1,
        timeout: float | None = TIMEOUT,
        rate_limiter: RateLimiter[str] | None = None,
        finalizer: str | None = None,
        cleanup: Reconcile[T] | None = None,
        cache_sync_timeout: float | None = None,
    ) -> None:
        require_text("name", name)
        if not name:
            raise ConfigError("name must not be empty: logs, states and metrics tell controllers apart by it")
        require_count("concurrency", concurrency, least=1)
        if timeout is not None:
            require_seconds("timeout", timeout)
        if cache_sync_timeout is not None:
            require_seconds("cache_sync_timeout", cache_sync_timeout)
        self.name = name
        self.cache_sync_timeout = cache_sync_timeout
        self._sync_error: SyncTimeout | None = None
        self.informer: SharedIndexInformer[T] = informer_of(primary)
        self._written = None if isinstance(primary, SharedIndexInformer) else primary
        self._store = self.informer.store
        self._step, self.finalizer = make_step(name, reconcile, self._written, finalizer, cleanup)
        self._metrics = QueueMetrics[str]()
        self._queue: WorkQueue[str] = WorkQueue(
            ItemExponentialFailureRateLimiter() if rate_limiter is None else rate_limiter,
            name=name,
            metrics=self._metrics,
        )
        owned = [
            each if isinstance(each, Owns) else Owns(each) for each in require_list(f"{name}: owns", owns)
        ]
        watches = require_list(f"{name}: watches", watches)
        for watch in watches:
            if not isinstance(watch, Watch):
                raise ConfigError(f"{name}: watches takes Watch(informer, map_func), not {watch!r}")
        own = Primary(self.informer, predicate, cleans_up=self.finalizer is not None, forget=self._forget)
        self._triggers: list[InformerTrigger] = [own, *owned, *watches]
        for trigger in self._triggers:
            trigger.bind(self._queue, own)
        self._sources = [SourceTrigger(source) for source in require_list(f"{name}: sources", sources)]
        self._workers = Workers(name, self._queue, self._reconcile, concurrency, timeout, self._is_gone)
        own.is_standing_by = lambda: not self._workers.is_working
        self._is_fed = False
        self._feeding: list[asyncio.Task[None]] = []

    def __repr__(self) -> str:
        return f"<Controller {self.name}>"

    @property
    def informers(self) -> list[SharedIndexInformer[Any]]:
        """Whose changes it listens to."""
        return list(dict.fromkeys(trigger.informer for trigger in self._triggers))

    @property
    def registrations(self) -> list[Registration]:
        """Those with the informers, while it is fed."""
        return [each.registration for each in self._triggers if each.registration is not None]

    @property
    def unsynced(self) -> list[SharedIndexInformer[Any]]:
        """Those of the informers whose caches are not filled yet."""
        return [each for each in self.informers if not each.has_synced()]

    @property
    def sync_error(self) -> SyncTimeout | None:
        """Which caches are not filled yet, after ``cache_sync_timeout``; None before that, and once they are."""
        return self._sync_error if self._sync_error is not None and self.unsynced else None

    @property
    def queue(self) -> WorkQueue[str]:
        """The keys of what is to be reconciled."""
        return self._queue

    @property
    def state(self) -> ControllerState:
        """What it is doing, and what went wrong last."""
        triggers: list[Trigger] = [*self._triggers, *self._sources]
        workers, counts = self._workers, self._workers.counts
        return ControllerState(
            name=self.name,
            working=workers.is_working,
            workers=len(workers),
            concurrency=workers.concurrency,
            running=workers.runs.state,
            queue=self._queue.state,
            reconciles=counts.total,
            failed=counts.error,
            terminal=counts.terminal,
            timed_out=counts.timeout,
            failing=len(workers.failing),
            last_error=workers.last_error,
            last_error_key=workers.last_error_key,
            last_error_seconds=workers.last_error_seconds,
            worker_error=workers.failure,
            triggers=tuple(trigger.state for trigger in triggers),
            unsynced=tuple(informer.name for informer in self.unsynced),
            sync_error=self.sync_error,
        )

    def samples(self) -> Iterable[Sample]:
        """Its numbers, by the names of controller-runtime and client-go."""
        labels = {"controller": self.name}
        yield from self._workers.counts.samples(self.name)
        yield Sample("controller_runtime_active_workers", "gauge", labels, len(self._workers.runs))
        yield Sample(
            "controller_runtime_max_concurrent_reconciles", "gauge", labels, self._workers.concurrency
        )
        yield from labelled(self._metrics.samples(self.name), **labels)

    # -- what the manager does with it ---------------------------------------------------------------------

    def require_not_fed(self) -> None:
        """Find out that changes and sources fill the queue already, or have before.

        Raises:
            AlreadyStartedError: They do, or have.
        """
        if self._is_fed or self._queue.is_shutting_down:
            raise AlreadyStartedError(f"{self!r} was started before")

    def stop_holding_others_up(self) -> None:
        """Its caches have not synced within ``cache_sync_timeout``: say so, in the log and in ``sync_error``."""
        caches = "; ".join(f"{each.name}: {each.state}" for each in self.unsynced)
        self._sync_error = SyncTimeout(
            f"{self.name}: its caches have not synced within {self.cache_sync_timeout:g} s: {caches}",
            informer=self.unsynced[0].name,
        )
        logger.error("%s. Other controllers begin to work; it begins when they have", self._sync_error)

    def feed(self) -> None:
        """Have changes and sources fill the queue; also if this fails, ``end_feeding`` is to be called."""
        self._is_fed = True
        for trigger in self._triggers:
            trigger.start()
        for source in self._sources:
            task = asyncio.create_task(source.run(self._queue), name=source.name)
            task.add_done_callback(self._record_end)
            self._feeding.append(task)

    async def end_feeding(self, ending: Collection[SharedIndexInformer[Any]] = ()) -> None:
        """Take no more from changes and sources. Of these, what goes on ten seconds later is left behind.

        Args:
            ending: Informers that end meanwhile, and cancel the calls of their handlers themselves.
        """
        if not self._is_fed:
            return
        self._queue.shut_down()
        self._workers.runs.close()
        for task in self._feeding:
            task.cancel()
        listening = [(each.name, each.registration) for each in self._triggers]
        stopping = [
            asyncio.create_task(each.stop(cancel=each.informer not in ending), name=each.name)
            for each in self._triggers
        ]
        try:
            await wait_ended(*self._feeding, *stopping, grace=CANCEL_GRACE)
        finally:
            left = [task.get_name() for task in self._feeding if not task.done()]
            for name, registration in listening:
                if registration is not None and (key := registration.state.handling) is not None:
                    left.append(f"{name} at {key}")
            if left:
                logger.error("%r: left behind, since they do not end: %s", self, ", ".join(left))

    async def work(self, may_work: Callable[[], bool] | None = None) -> None:
        """Reconcile until cancelled, or until ``stop``. May be called again after it has ended.

        What it goes by has synced before: ``informers``, and ``registrations``.

        Args:
            may_work: Asked before each reconcile, whether it may begin; None for always.

        Cancellation: running reconciles are cancelled, and come again with the next call.

        Raises:
            BaseException: What a worker or source has died of; StoppedError if a worker was cancelled by somebody else.
        """
        await self._workers.run(may_work)

    async def raise_death(self) -> None:
        """Wait until a source has died while nobody worked. Raises as ``work``."""
        await self._workers.raise_death()

    async def stop(self, grace_period: float) -> None:
        """Begin no reconcile any more, and let those that run end.

        Args:
            grace_period: Seconds after which they are cancelled.

        Cancellation: they are cancelled at once.
        """
        await self._workers.stop(grace_period)

    def _forget(self, key: str) -> None:
        self._queue.forget(key)
        self._workers.failing.pop(key, None)

    def _record_end(self, source: asyncio.Task[None]) -> None:
        if not source.cancelled() and (failure := source.exception()) is not None:
            self._workers.fail(failure)

    def _is_gone(self, key: str) -> bool:
        return self._store.get_by_key(key) is None

    def _reconcile(self, key: str) -> object:
        """Do what is to be done for the object of a key: a Result, None, or what is awaited for one."""
        if self._written is not None:
            return self._reconcile_current(key, self._written)
        namespace, _, name = key.rpartition("/")
        return self._step(Request(namespace, name, self._store.get_by_key(key)))

    async def _reconcile_current(self, key: str, written: WrittenResource[T]) -> object:
        """The same, with an object that is no older than what was written to it here."""
        try:
            obj = await written.get(key)
        except NotFoundError:
            obj = None
        namespace, _, name = key.rpartition("/")
        return await maybe_await(self._step(Request(namespace, name, obj)))
