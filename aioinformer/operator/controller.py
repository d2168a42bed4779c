"""Controller: a reconciler with its triggers, queue and workers (controller-runtime ``pkg/controller``)."""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Any, Generic, TypeVar, Unpack

from .._core.cancellation import ends_when, maybe_await
from .._core.checks import require_options, require_text
from .._core.tasks import wait_ended
from ..client.request_spans import kind_of
from ..errors import (
    AioInformerError,
    AlreadyStartedError,
    ConfigError,
    DecodeError,
    NotFoundError,
    SyncTimeout,
    TerminalError,
    UndecodableError,
)
from ..events import EventRecorder
from ..informer import Registration, SharedIndexInformer
from ..listwatch.list_watch import ResourceListWatch
from ..metrics import Sample, labelled
from ..objects.api_resources import APIResource
from ..objects.decoders import decoder_of
from ..objects.keys import uid_of
from ..objects.kube_object import KubeObject
from ..objects.nested_encoding import encode_nested
from ..objects.undecodable import UndecodableObject
from ..reflector.scope import lacks_namespace
from ..resources import CachedResource
from ..sharding import Claim, Share, keys_in, shard_by_of, slot_in
from ..typed import CustomResource
from ..workqueue import ItemExponentialFailureRateLimiter, QueueMetrics, RateLimiter, WorkQueue
from .controller_options import ControllerOptions, check_options
from .failure_events import FailureEvents
from .finalizing import make_step
from .informer_triggers import LOW_PRIORITY, Cached, InformerTrigger, Owns, Primary, Watch, informer_of
from .mistakes import Mistakes
from .protocols import WrittenResource
from .ready_condition import ReadyCondition
from .requests import Reconcile, Reconciler, Request
from .runs import CANCEL_GRACE
from .source_trigger import SourceTrigger
from .state import ControllerState, FailingKey
from .triggers import Trigger
from .workers import Workers

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Controller(Generic[T]):
    """Reconciles the objects of a collection; an object is never reconciled twice at the same time.

    Add it to a Manager, which runs it.

    Args:
        name: Name in logs, states and metrics.
        reconcile: ``reconcile(request)``, a coroutine function or a plain one; or a Reconciler.
        primary: The informer of the objects to reconcile; or a CachedResource, which ``finalizer`` needs.
        owns: Collections whose objects the primary objects own: informers, CachedResources, or Owns.
        watches: Other collections that trigger reconciles, as Watches.
        rate_limiter: How long to wait before a retry; None for 5 ms, doubled at each failure, up to 1000 s.
        cleanup: ``cleanup(request)``, called instead of ``reconcile`` when the object is marked for deletion. The
            finalizer is removed when cleanup succeeds without asking for a requeue. It is also called for an object
            that does not fit its type: ``request.object`` is then an UndecodableObject.
        recorder: Records Events about objects that fail; None for none. Run it beside the manager.
        condition: Keeps the condition ``Ready`` of the objects; None for none. An Operator makes it.
        **options: See ControllerOptions.

    Raises:
        ConfigError: An argument is invalid.
        TypeError: There is no such option.

    Guarantees:
        No object is reconciled twice at the same time, and each is reconciled after its last change. Errors from a
        reconciler, predicate, map function or source are logged and counted; the controller continues. An object that
        does not fit its type is not reconciled: its key fails with an UndecodableError until it changes. A reconcile
        that is cancelled because the manager stops or loses leadership is queued again, whatever it then returns.
    """

    def __init__(
        self,
        name: str,
        reconcile: Reconcile[T] | Reconciler[T],
        primary: SharedIndexInformer[T] | WrittenResource[T],
        *,
        owns: Iterable[Cached | Owns] = (),
        watches: Iterable[Watch] = (),
        rate_limiter: RateLimiter[str] | None = None,
        cleanup: Reconcile[T] | None = None,
        recorder: EventRecorder | None = None,
        condition: ReadyCondition | None = None,
        **options: Unpack[ControllerOptions[T]],
    ) -> None:
        require_text("the name of a controller", name, "websites")
        if not name:
            raise ConfigError("name must not be empty: logs, states and metrics tell controllers apart by it")
        require_options(options, ControllerOptions.__annotations__, Controller)
        check_options(options, mistakes := Mistakes(f"the controller {name}"))
        mistakes.raise_if_any()
        self.name = name
        self.cache_sync_timeout = options.get("cache_sync_timeout")
        self._sync_error: SyncTimeout | None = None
        self._has_said_unclaimed = False
        self.informer: SharedIndexInformer[T] = informer_of(primary)
        self._written = None if isinstance(primary, SharedIndexInformer) else primary
        self._is_current = primary.is_current if isinstance(primary, CachedResource) else lambda key: False
        self._store = self.informer.store
        self._step, self.finalizer = make_step(
            name, reconcile, self._written, options.get("finalizer"), cleanup
        )
        self._metrics = QueueMetrics[str]()
        self._queue: WorkQueue[str] = WorkQueue(
            ItemExponentialFailureRateLimiter() if rate_limiter is None else rate_limiter,
            name=name,
            metrics=self._metrics,
        )
        owned = [kind if isinstance(kind, Owns) else Owns(kind) for kind in owns]
        own = Primary(
            self.informer,
            options.get("predicate"),
            cleans_up=self.finalizer is not None,
            forget=self._forget,
            ignores=None if condition is None else condition.is_own_change,
        )
        self._triggers: list[InformerTrigger] = [own, *owned, *watches]
        for trigger in self._triggers:
            trigger.bind(self._queue, own)
        self._sources = [SourceTrigger(source) for source in options.get("sources", ())]
        self._condition = condition
        self._workers = Workers(
            name,
            self._queue,
            self._reconcile,
            options,
            self._is_gone,
            uid_of=self._uid_of,
            kind=self._find_kind(),
            events=None if recorder is None else FailureEvents(name, recorder, self.informer),
            condition=condition,
        )
        self._own = own
        own.is_standing_by = lambda: not self._workers.is_working
        self._is_fed = False
        self._trigger_tasks: list[asyncio.Task[None]] = []

    def __repr__(self) -> str:
        return f"<Controller {self.name}>"

    @property
    def informers(self) -> list[SharedIndexInformer[Any]]:
        """The informers whose changes trigger reconciles."""
        return list(dict.fromkeys(trigger.informer for trigger in self._triggers))

    @property
    def registrations(self) -> list[Registration]:
        """The registrations with the informers, while the controller listens."""
        return [trigger.registration for trigger in self._triggers if trigger.registration is not None]

    @property
    def unsynced(self) -> list[SharedIndexInformer[Any]]:
        """The informers that have not synced yet."""
        return [informer for informer in self.informers if not informer.has_synced()]

    @property
    def sync_error(self) -> SyncTimeout | None:
        """The caches that had not synced after ``cache_sync_timeout``; None before that, and once they have synced."""
        return self._sync_error if self._sync_error is not None and self.unsynced else None

    @property
    def queue(self) -> WorkQueue[str]:
        """The keys of the objects to reconcile."""
        return self._queue

    @property
    def state(self) -> ControllerState:
        """What the controller is doing, and its last error."""
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
            failing_seconds=self._failing_seconds,
            queued_seconds=self._queued_seconds,
            unfit=self._store.undecodable_count,
            last_success=counts.last_success,
            given_up=counts.given_up,
            last_error=workers.last_error,
            last_error_key=workers.last_error_key,
            last_error_seconds=workers.last_error_seconds,
            worker_error=workers.failure,
            triggers=tuple(trigger.state for trigger in triggers),
            unsynced=tuple(informer.name for informer in self.unsynced),
            sync_error=self.sync_error,
        )

    def failing(self) -> Iterable[FailingKey]:
        """Return the objects whose last reconcile failed, with the errors. Call it in the event loop.

        ``state`` only has their number, because there may be many.
        """
        return self._workers.failures()

    def samples(self) -> Iterable[Sample]:
        """Return its metrics, with the names of controller-runtime and client-go."""
        labels = {"controller": self.name}
        yield from self._workers.counts.samples(self.name)
        yield Sample("aioinformer_failing_keys", "gauge", labels, len(self._workers.failing))
        yield Sample("aioinformer_oldest_failing_key_seconds", "gauge", labels, self._failing_seconds)
        yield Sample("aioinformer_oldest_queued_key_seconds", "gauge", labels, self._queued_seconds)
        yield Sample("aioinformer_unfit_objects", "gauge", labels, self._store.undecodable_count)
        yield Sample("controller_runtime_active_workers", "gauge", labels, len(self._workers.runs))
        if (limit := self._workers.concurrency) is not None:
            yield Sample("controller_runtime_max_concurrent_reconciles", "gauge", labels, limit)
        yield from labelled(self._metrics.samples(self.name), **labels)

    @property
    def _failing_seconds(self) -> float:
        return self._workers.failing_seconds if self._workers.is_working else 0.0

    @property
    def _queued_seconds(self) -> float:
        return self._metrics.oldest_queued_seconds if self._workers.is_working else 0.0

    # -- called by the manager -----------------------------------------------------------------------------

    def share_work(self, share: Share) -> None:
        """Reconcile only objects in the slots of this replica.

        Raises:
            ConfigError: An informer does not read the share that the controller needs.
        """
        reads = {informer: shard_by_of(informer) for informer in self.informers}
        others = (
            (trigger.informer, ("owner", "") if isinstance(trigger, Owns) else ("",))
            for trigger in self._triggers[1:]
        )
        for informer, fitting in [(self.informer, ("uid",)), *others]:
            if reads[informer] not in fitting:
                raise ConfigError(
                    f"{self.name}: {informer.name} is read with shard_by={reads[informer]!r} and needed with "
                    f"{fitting[0]!r}: primary objects are read by 'uid', owned ones by 'owner', and watched ones by "
                    "'', each by an informer of its own. A collection that is several of these cannot be shared: use "
                    "leader election"
                )
        if lacks_namespace(self.informer.object_type):
            raise ConfigError(
                f"{self.name}: objects can be shared only if their type has metadata.namespace, which "
                f"{self.informer.object_type.__name__} lacks"
            )
        self._workers.claim = partial(self._claim, share)
        self._own.leaves = partial(self._leaves, share)
        share.on_gain.append(self._queue_gained)

    def _claim(self, share: Share, key: str) -> Claim | None:
        slot = slot_in(self.informer, key)
        if slot is None and self._sources and not self._has_said_unclaimed:
            self._has_said_unclaimed = True
            logger.info(
                "%s: no object of this replica is called %s, so it is not reconciled here. Replicas that share objects "
                "reconcile objects only: for work in the background use a LeaderElector (said once)",
                self.name,
                key,
            )
        return share.claim(slot, lambda: self._workers.withdraw(key))

    def _leaves(self, share: Share, key: str) -> bool:
        """Return whether an object that went is in no slot of this replica. Its work ends then, without a cleanup."""
        if slot_in(self.informer, key) in share.slots:
            return False
        self._forget(key)
        self._workers.withdraw(key)
        return True

    def _queue_gained(self, slots: Collection[int]) -> None:
        """Queue the cached objects of slots that have come. Others are queued when they are added to the cache."""
        for key in keys_in(self.informer, slots):
            self._queue.add(key, LOW_PRIORITY)

    def require_not_fed(self) -> None:
        """Check that the controller has not been started.

        Raises:
            AlreadyStartedError: Changes and sources fill the queue already, or have done so before.
        """
        if self._is_fed or self._queue.is_shutting_down:
            raise AlreadyStartedError(f"{self!r} was started before")

    def release_waiters(self) -> None:
        """Log and record in ``sync_error`` that its caches have not synced within ``cache_sync_timeout``."""
        caches = "; ".join(f"{informer.name}: {informer.state}" for informer in self.unsynced)
        self._sync_error = SyncTimeout(
            f"{self.name}: its caches have not synced within {self.cache_sync_timeout:g} s: {caches}",
            informer=self.unsynced[0].name,
        )
        logger.error(
            "%s. Other controllers start now; this controller starts when they have synced", self._sync_error
        )

    def feed(self) -> None:
        """Let changes and sources fill the queue. Call ``stop_triggers`` afterwards, also if this fails."""
        self._is_fed = True
        for trigger in self._triggers:
            trigger.start()
        for source in self._sources:
            task = asyncio.create_task(source.run(self._queue), name=source.name)
            ends_when(task, lambda: self._queue.is_shutting_down)
            task.add_done_callback(self._record_end)
            self._trigger_tasks.append(task)

    async def stop_triggers(self, ending: Collection[SharedIndexInformer[Any]] = ()) -> None:
        """Stop changes and sources from filling the queue. Those still running ten seconds later are abandoned.

        Args:
            ending: Informers that end at the same time. They cancel the calls of their handlers themselves.
        """
        if not self._is_fed:
            return
        self._queue.shut_down()
        self._workers.runs.close()
        for task in self._trigger_tasks:
            task.cancel()
        handlers = [(trigger.name, trigger.registration) for trigger in self._triggers]
        stops = [
            asyncio.create_task(trigger.stop(cancel=trigger.informer not in ending), name=trigger.name)
            for trigger in self._triggers
        ]
        try:
            await wait_ended(*self._trigger_tasks, *stops, grace=CANCEL_GRACE)
        finally:
            still_running = [task.get_name() for task in self._trigger_tasks if not task.done()]
            for name, registration in handlers:
                if registration is not None and (key := registration.state.handling) is not None:
                    still_running.append(f"{name} at {key}")
            if still_running:
                logger.error(
                    "%r: still running %g s after they were cancelled, not waiting for them any longer: %s",
                    self, CANCEL_GRACE, ", ".join(still_running),
                )  # fmt: skip

    async def work(self, may_work: Callable[[], bool] | None = None) -> None:
        """Reconcile until cancelled, or until ``stop``. It may be called again after it has ended.

        Before calling, wait until ``informers`` and ``registrations`` have synced.

        Args:
            may_work: Called before each reconcile; returns whether it may start. None for always.

        Cancellation: running reconciles are cancelled and their keys queued again, for the next call.

        Raises:
            BaseException: The error that ended a worker or source; StoppedError if a worker was cancelled from outside.
        """
        await self._workers.run(may_work)

    async def raise_if_dead(self) -> None:
        """Wait until a source fails while no worker runs, then raise its error, as ``work`` does."""
        await self._workers.raise_failure()

    async def stop(self, grace_period: float) -> None:
        """Start no more reconciles, and wait until the running ones have ended.

        Args:
            grace_period: Seconds after which they are cancelled.

        Cancellation: they are cancelled at once.
        """
        await self._workers.stop(grace_period)

    def _forget(self, key: str) -> None:
        self._queue.forget(key)
        self._workers.forget_failure(key)

    def _record_end(self, source: asyncio.Task[None]) -> None:
        if not source.cancelled() and (failure := source.exception()) is not None:
            self._workers.fail(failure)

    def _is_gone(self, key: str) -> bool:
        return key not in self._store

    def _uid_of(self, key: str) -> str:
        try:
            obj: Any = self._store.find_any(key)
            return "" if obj is None else uid_of(obj)
        except AioInformerError:  # an object that cannot be read has none
            return ""

    def _find_kind(self) -> str:
        """Return the kind of the objects; ``""`` if it is not known."""
        for list_watch in self.informer.list_watches.values():
            if isinstance(list_watch, ResourceListWatch):
                resource = list_watch.resource
                if kind := kind_of(resource.api_version, resource.plural):
                    return kind
        declared = getattr(getattr(self.informer.object_type, "__declaration__", None), "resource", None)
        return declared.kind if isinstance(declared, APIResource) else ""

    def _reconcile(self, key: str) -> object:
        """Reconcile the object of a key. Returns a Result, None, or an awaitable of either."""
        obj = self._store.find_any(key)
        if self._written is None or (obj is not None and self._is_current(key)):
            return self._call(key, obj)
        return self._reconcile_current(key, self._written)

    def _call(self, key: str, obj: Any) -> object:
        """Call the reconciler with the object of a key; None if it is gone."""
        namespace, _, name = key.rpartition("/")
        if self._condition is not None:
            self._condition.begin(key, obj)
        if type(obj) is not KubeObject:  # which is read-only, and always fits
            if obj is None:
                self._require_read(key)
            elif isinstance(obj, CustomResource):
                obj = _copy_of(obj)
            elif isinstance(obj, UndecodableObject) and self.finalizer is None:
                raise UndecodableError(obj.reason)
        return self._step(Request(namespace, name, obj))

    def _require_read(self, key: str) -> None:
        """Check that the informer reads the namespace of a key.

        Raises:
            TerminalError: It does not.
        """
        namespace = key.rpartition("/")[0]
        if namespace and not self.informer.version_waits.reads(namespace):
            raise TerminalError(
                f"{self.informer.name} does not read the namespace {namespace!r}, but a map function or source "
                f"requested {key}: return requests for namespaces that it reads"
            )

    async def _reconcile_current(self, key: str, written: WrittenResource[T]) -> object:
        """Reconcile with an object at least as new as the last write made through ``written``."""
        self._require_read(key)
        obj: Any
        try:
            obj = await written.get(key)
        except NotFoundError:
            obj = None
        except DecodeError:
            obj = self._store.find_any(key)  # which now includes the writes
            if not isinstance(obj, UndecodableObject):
                raise
        except ConfigError as error:  # a request without a namespace, or with one too many
            raise TerminalError(str(error)) from error
        return await maybe_await(self._call(key, obj))


def _copy_of(obj: CustomResource) -> Any:
    """Return a copy, so that a reconciler cannot change the cache.

    A round trip through JSON takes a tenth of ``copy.deepcopy``'s time, but only of values that fit their types.
    """
    try:
        return decoder_of(type(obj))(encode_nested(obj), None)
    except (DecodeError, TypeError, ValueError):  # a transformer has put something else there
        return copy.deepcopy(obj)
