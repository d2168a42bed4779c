"""Manager: controllers on shared informers, from the first list to the last reconcile (controller-runtime
``pkg/manager``)."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import chain
from typing import Any, TypeVar, Unpack, overload

from .._core.checks import require_seconds
from .._core.forks import FORKED
from .._core.signals import STOP_SIGNALS, run_until_signal
from .._core.tasks import Running, finish, raise_failures, run_until_first, wait_ended
from ..client import Client
from ..client.lookup import ResourceName, look_up
from ..controller import QueueName
from ..errors import (
    AlreadyStartedError,
    ConfigError,
    LeadershipLostError,
    StoppedError,
    SyncTimeout,
    message_of,
)
from ..informer import InformerState, SharedIndexInformer, SharedInformerFactory, wait_for_cache_sync
from ..informer.factory import InformerOptions, Selected
from ..informer.probes import Health, liveness_problems, readiness_problems, undecodable_warnings
from ..informer.state import apart
from ..leaderelection import LeaderElector
from ..metrics import LeftOutError, Registry, Sample, render
from ..objects.kube_object import KubeObject
from ..reflector import ReflectorOptions
from ..resources import CachedResource, Resource
from ..resources.resource import FIELD_MANAGER
from ..sharding import Sharding
from ..tracing import Trace
from .controller import Controller
from .finalizing import may_read_same_object
from .own_metrics import LeftOutLog
from .protocols import LeaderElection
from .runs import CANCEL_GRACE
from .state import ManagerState
from .webhook_counts import WebhookCounts

logger = logging.getLogger(__name__)

T = TypeVar("T")


class ManagerOptions(ReflectorOptions, total=False):
    """Options of a Manager that are those of its informers.

    Attributes:
        namespaces: Several namespaces in place of ``namespace``, each listed and watched separately.
        default_resync_period: Seconds between resyncs of the informers; 0, the default, for none.
        queue: As for SharedInformerFactory.
        stalled_after: As for SharedInformerFactory.
        detect_mutations: As for SharedInformerFactory.
        on_trace: As for SharedInformerFactory.
    """

    namespaces: Sequence[str] | None
    default_resync_period: float
    queue: QueueName
    stalled_after: float | None
    detect_mutations: bool
    on_trace: Callable[[Trace], object] | None


class CollectionOptions(InformerOptions, total=False):
    """The options of ``Manager.resource``."""

    kind: str
    field_manager: str


class Manager(Running):
    """Runs controllers and the informers that they share.

    Use it as an async context manager, which may be entered and left in different tasks; or ``await run()``. It runs
    once. At the start it fills the caches; then, with leader election, it waits until it leads. Each controller starts
    when its triggers have processed the first lists. At the end, running reconciles finish, then the leadership is
    released, then the informers stop.

    Args:
        client: A Client, or a kubernetes_asyncio ApiClient.
        namespace: The namespace of informers without a namespace of their own; None for all namespaces.
        leader_election: Decides which of several managers reconciles; None for this one. A manager on standby keeps its
            caches filled and queues changes.
        sharding: Shares the objects with other replicas, which all reconcile; in place of leader election. Primary
            objects are read by ``shard_by="uid"``, owned ones by ``"owner"``, and watched ones as a whole, by ``""``.
        grace_period: Seconds that running reconciles may take to end. Cancelled ones may take ten more, and releasing
            the Lease takes requests. Kubernetes kills a pod after 30 seconds by default.
        registry: A registry of prometheus-client with metrics of your own, for ``metrics``; None for none.
        **options: See ManagerOptions and ReflectorOptions; they apply to every informer.

    Attributes:
        registries: The registry.
        left_out: Logs which of its metrics an answer leaves out.

    Raises:
        ConfigError: An argument is invalid.
    """

    def __init__(
        self,
        client: Any,
        *,
        namespace: str | None = None,
        leader_election: LeaderElection | None = None,
        sharding: Sharding | None = None,
        grace_period: float = 20.0,
        registry: Registry | None = None,
        **options: Unpack[ManagerOptions],
    ) -> None:
        require_seconds("grace_period", grace_period)
        if sharding is not None and leader_election is not None:
            raise ConfigError(
                "sharding and leader_election exclude each other: all replicas of a sharding work"
            )
        self.client = Client.of(client)
        self._factory = SharedInformerFactory(self.client, namespace, sharding=sharding, **options)
        self._sharding = sharding
        self._election: LeaderElection | None = leader_election if sharding is None else sharding
        self._grace_period = grace_period
        self._controllers: list[Controller[Any]] = []
        self._webhooks: list[Iterable[WebhookCounts]] = []
        self._reported: list[Callable[[], Iterable[Sample]]] = []
        self.registries: tuple[Registry, ...] = () if registry is None else (registry,)
        self.left_out = LeftOutLog()
        self._is_working = self._is_stopping = self._has_ended = False
        self._stopped = asyncio.Event()
        self._failure: BaseException | None = None

    def __repr__(self) -> str:
        return f"<Manager of {', '.join(controller.name for controller in self._controllers) or 'nothing'}>"

    # -- setting up ----------------------------------------------------------------------------------------

    @overload
    def for_resource(
        self, api_version: ResourceName, plural: str = "", **options: Unpack[InformerOptions]
    ) -> SharedIndexInformer[KubeObject]: ...

    @overload
    def for_resource(
        self,
        api_version: ResourceName | type[T],
        plural: str | type[T] = "",
        object_type: type[T] | None = None,
        **options: Unpack[InformerOptions],
    ) -> SharedIndexInformer[T]: ...

    def for_resource(
        self,
        api_version: Any,
        plural: Any = "",
        object_type: type[Any] | None = None,
        **options: Unpack[InformerOptions],
    ) -> SharedIndexInformer[Any]:
        """Return the shared informer of a collection, as ``SharedInformerFactory.for_resource`` does."""
        return self._factory.for_resource(api_version, plural, object_type, **options)

    @overload
    def resource(
        self, api_version: ResourceName, plural: str = "", **options: Unpack[CollectionOptions]
    ) -> CachedResource[KubeObject]: ...

    @overload
    def resource(
        self,
        api_version: ResourceName | type[T],
        plural: str | type[T] = "",
        object_type: type[T] | None = None,
        **options: Unpack[CollectionOptions],
    ) -> CachedResource[T]: ...

    def resource(
        self,
        api_version: Any,
        plural: Any = "",
        object_type: type[Any] | None = None,
        *,
        kind: str = "",
        namespaced: bool = True,
        field_manager: str = FIELD_MANAGER,
        **selected: Unpack[Selected],
    ) -> CachedResource[Any]:
        """Return a collection that is read from its shared informer and can be written; finalizers need one.

        Args:
            api_version: As for ``for_resource``; a name or a class may be in place of it and the plural.
            plural: As for ``for_resource``.
            object_type: As for ``for_resource``.
            kind: As for Resource.
            namespaced: As for Resource.
            field_manager: As for Resource.
            **selected: Which objects and which parts of them the cache keeps: as for ``for_resource``.

        Raises:
            ConfigError: The arguments do not name a collection.
        """
        named_resource = look_up(self.client, api_version, plural, object_type)
        namespaced = named_resource.is_namespaced(namespaced)
        informer = self.for_resource(
            named_resource.api_version,
            named_resource.plural,
            named_resource.object_type,
            namespaced=namespaced,
            **selected,
        )
        resource = Resource(
            self.client,
            named_resource.api_version,
            named_resource.plural,
            named_resource.object_type,
            kind=named_resource.kind or kind,
            namespaced=namespaced,
            field_manager=field_manager,
        )
        return CachedResource(resource, informer)

    async def remove(self, informer: SharedIndexInformer[Any]) -> None:
        """Stop an informer and forget it, for example because its collection no longer exists.

        Raises:
            ConfigError: The informer is not this manager's, or a controller needs it.
            BaseException: As ``SharedInformerFactory.remove``.
        """
        for controller in self._controllers:
            if informer in controller.informers:
                raise ConfigError(
                    f"{informer.name} was not removed: the controller {controller.name} needs it"
                )
        await self._factory.remove(informer)

    def add(self, controller: Controller[T]) -> Controller[T]:
        """Add a controller, to run with the manager.

        Raises:
            AlreadyStartedError: The manager has started.
            ConfigError: Another controller has the same name, or the same finalizer for the same objects.
        """
        if self._is_started:
            raise AlreadyStartedError(f"{self!r} has started; {controller!r} was not added")
        if controller.name in {other.name for other in self._controllers}:
            raise ConfigError(f"a controller named {controller.name} exists already: give each its own name")
        for other in self._controllers:
            is_shared = other.finalizer is not None and other.finalizer == controller.finalizer
            if is_shared and may_read_same_object(other.informer, controller.informer):
                raise ConfigError(
                    f"{controller.name} and {other.name} have the same objects and the same finalizer "
                    f"{other.finalizer}, which is removed when either has cleaned up: give each its own"
                )
        if self._sharding is not None:
            controller.share_work(self._sharding.share)
        self._controllers.append(controller)
        return controller

    @property
    def sharding(self) -> Sharding | None:
        """What shares the objects with other replicas; None if this replica has all."""
        return self._sharding

    @property
    def controllers(self) -> list[Controller[Any]]:
        """The controllers that were added."""
        return list(self._controllers)

    @property
    def informers(self) -> list[SharedIndexInformer[Any]]:
        """The informers of the controllers, and those requested from this manager."""
        theirs = (informer for controller in self._controllers for informer in controller.informers)
        return list(dict.fromkeys([*theirs, *self._factory.informers]))

    # -- running -------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run until cancelled.

        Cancellation: running reconciles may end within ``grace_period``; a second cancellation cancels them at once.
        All tasks have ended when this returns, except those that ignore cancellation for ten seconds: first
        reconciles; then, together, sources, map functions, and the handlers of informers made here.

        Raises:
            AlreadyStartedError: It was started before.
            BaseException: An error outside of reconciles, which are retried; a BaseExceptionGroup if there are several.
        """
        self.record_begin()
        try:
            for controller in self._controllers:
                controller.require_not_fed()
            await self._read_and_lead()
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._failure = error
            raise
        finally:
            self._record_end()

    def _record_end(self, task: object = None) -> None:
        self._has_ended = True

    async def run_until_signal(self, signals: Sequence[signal.Signals] = STOP_SIGNALS) -> None:
        """Run until the process receives a signal, such as Ctrl-C or a pod's SIGTERM, then end as ``run`` does.

        A second signal cancels running reconciles. The previous signal handlers are restored at the end.

        Args:
            signals: The signals to handle.

        Raises:
            ConfigError: This is not the main thread; Python delivers signals to the main thread only.
            BaseException: As ``run``.
        """
        await run_until_signal(self.run, self, signals)

    async def _read_and_lead(self) -> None:
        tasks: list[asyncio.Task[None]] = []
        async with AsyncExitStack() as cleanup:  # runs from the last to the first, even if some fail
            cleanup.callback(lambda: raise_failures(f"{self!r} has failed", *tasks))
            cleanup.push_async_callback(self._stop_informers, tasks)
            for controller in self._controllers:
                controller.feed()
            self._factory.start()
            informer_task = asyncio.create_task(self._factory.wait_ended(), name=f"{self!r} reading")
            leader_task = asyncio.create_task(self._lead(), name=f"{self!r} leading")
            tasks.append(leader_task)
            cleanup.push_async_callback(finish, informer_task, leader_task)
            cleanup.push_async_callback(self._stop_controllers)
            ended, _ = await asyncio.wait((informer_task, leader_task), return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()

    async def _stop_informers(self, tasks: list[asyncio.Task[None]]) -> None:
        """Stop the informers and the controllers' sources concurrently, so that all share the same ten seconds."""
        trigger_stops = [controller.stop_triggers(self._factory.running) for controller in self._controllers]
        stops = [
            asyncio.create_task(work) for work in (self._factory.shutdown(grace=CANCEL_GRACE), *trigger_stops)
        ]
        tasks.extend(stops)
        await wait_ended(*stops)

    async def _lead(self) -> None:
        """Reconcile while this manager leads. Sources also run on standby, and may fail then."""
        await run_until_first(
            self._work_while_leading, *(controller.raise_if_dead for controller in self._controllers)
        )

    async def _work_while_leading(self) -> None:
        await self._fill_caches()
        if self._election is None:
            await self._work()
            return
        while not self._is_stopping:
            try:
                await self._election.run(self._work)
            except LeadershipLostError as error:
                logger.warning("%r lost the leadership and stands by until it leads again: %s", self, error)

    async def _fill_caches(self) -> None:
        """Wait until the current informers have synced.

        Informers that are removed meanwhile are skipped, and those needed only by controllers whose
        ``cache_sync_timeout`` has passed.
        """
        now = asyncio.get_running_loop().time
        began = now()
        waited_for = self.informers
        while True:
            timeouts = {
                controller: began + controller.cache_sync_timeout
                for controller in self._controllers
                if controller.cache_sync_timeout is not None
                and controller.sync_error is None
                and controller.unsynced
            }
            timeout = max(0.0, min(timeouts.values()) - now()) if timeouts else None
            try:
                await wait_for_cache_sync(*waited_for, timeout=timeout)
                return
            except SyncTimeout:
                for controller, deadline in timeouts.items():
                    if controller.unsynced and deadline <= now():
                        controller.release_waiters()
                waited_for = [informer for informer in waited_for if self._delays_others(informer)]
            except StoppedError:
                left = [informer for informer in waited_for if informer in self.informers]
                if left == waited_for:
                    raise
                waited_for = left

    def _delays_others(self, informer: SharedIndexInformer[Any]) -> bool:
        """Return whether an informer delays all controllers: not if every controller that needs it is late."""
        needing = [controller for controller in self._controllers if informer in controller.informers]
        return not needing or any(controller.sync_error is None for controller in needing)

    async def _work(self) -> None:
        if self._controllers:
            logger.info("%r starts its controllers", self)
        else:
            logger.warning(
                "%r has no controllers and only runs informers: call add() with a Controller", self
            )
        self._is_working = True
        try:
            async with asyncio.TaskGroup() as group:
                for controller in self._controllers:
                    group.create_task(self._work_with(controller), name=f"{controller!r} working")
                group.create_task(self._stopped.wait())
        finally:
            self._is_working = False
            left_behind = [
                f"{controller.name} at {run.key}"
                for controller in self._controllers
                for run in controller.state.stuck
            ]
            if left_behind and (let_expire := getattr(self._election, "let_expire", None)) is not None:
                let_expire(", ".join(left_behind))

    async def _work_with(self, controller: Controller[Any]) -> None:
        """Run a controller, after its triggers have processed the first lists."""
        await wait_for_cache_sync(*controller.registrations)
        election = self._election
        # After a blocked event loop the elector knows by the clock that it lost the lease, before it cancels this.
        await controller.work(None if election is None else lambda: election.is_leader)

    async def _stop_controllers(self) -> None:
        self._is_stopping = True
        try:
            async with asyncio.TaskGroup() as group:
                for controller in self._controllers:
                    group.create_task(controller.stop(self._grace_period))
        finally:
            self._stopped.set()

    # -- state and metrics ---------------------------------------------------------------------------------

    def healthy(self) -> Health:
        """Return whether the manager is alive, for a liveness probe: a restart may repair what is not.

        Reasons: a stalled watch, an informer or worker that has ended, a reconcile that ignores its cancellation.
        A server that does not answer is not a reason.
        """
        return Health.of(self._not_alive())

    def ready(self) -> Health:
        """Return whether the manager is ready, for a readiness probe.

        It is ready when it is alive, its caches are synced and current, and its triggers have processed the first
        lists. A manager on standby is ready, and one that is stopping is not. With sharding, it is not while it cannot
        read or write the Leases. Objects that do not fit their type are warnings, with the reasons: a tenant must not
        be able to make an operator unready.
        """
        return Health.of(self._not_ready(), undecodable_warnings(self._states(), with_reasons=True))

    def accepting(self) -> Health:
        """Return whether webhooks of this manager should be called, for the readiness probe of a pod that serves them.

        They should until the manager stops. Its caches do not count: they may wait for a conversion by these webhooks.
        """
        is_over = self._is_stopping or self._has_ended
        return Health.of(iter(("the manager is stopping",) if is_over else ()))

    @property
    def state(self) -> ManagerState:
        """A snapshot of informers and controllers; ``str()`` of it is a table."""
        return ManagerState(
            ended=self._has_ended or self.is_forked,
            leading=self._leads,
            election_error=self._election.state.last_error
            if isinstance(self._election, LeaderElector)
            else None,
            sharding=None if self._sharding is None else self._sharding.state,
            informers=tuple(self._states()),
            controllers=tuple(controller.state for controller in self._controllers),
            webhooks=tuple(count.state for count in self._webhook_counts()),
        )

    def samples(self) -> Iterator[Sample]:
        """Return all metrics: of controllers with controller-runtime's names, of queues and the lease with
        client-go's, and of informers."""
        for controller in self._controllers:
            yield from controller.samples()
        for state in self._states():
            yield from state.samples()
        for count in self._webhook_counts():
            yield from count.samples()
        yield from self.client.samples()
        for samples in self._reported:
            yield from samples()
        if self._sharding is not None:
            yield from self._sharding.state.samples()
        elif (leads := self._leads) is not None:
            lease = self._election.state.lease if isinstance(self._election, LeaderElector) else ""
            yield Sample("leader_election_master_status", "gauge", {"name": lease.rpartition("/")[2]}, leads)

    def metrics(self) -> str:
        """Return all metrics in Prometheus' text format, with those of the registry; serve them at ``/metrics``.

        Metrics of the registry that fail are left out, and logged.

        Raises:
            ConfigError: prometheus-client is not installed.
        """
        errors: list[LeftOutError] = []
        text, _ = render(self.samples(), self.registries, on_error=errors.append)
        self.left_out.log(errors)
        return text.decode()

    def report(self, samples: Callable[[], Iterable[Sample]]) -> None:
        """Add samples to the metrics.

        Args:
            samples: Returns them; called at each scrape.
        """
        self._reported.append(samples)

    def report_webhooks(self, counts: Iterable[WebhookCounts]) -> None:
        """Report webhooks in the metrics and states of this manager; ``operator.webhook_app(manager)`` calls it.

        Args:
            counts: What they have answered. It is iterated for each report.
        """
        self._webhooks.append(counts)

    def _webhook_counts(self) -> Iterator[WebhookCounts]:
        return chain.from_iterable(self._webhooks)

    def _states(self) -> Iterator[InformerState]:
        """Yield the states of the informers, with distinct names across factories.

        Names are stable: informers requested later, which may be removed again, come last.
        """
        names: set[str] = set()
        for informer in self.informers:
            name = apart(informer.name, names)
            names.add(name)
            yield replace(informer.state, name=name)

    @property
    def _leads(self) -> bool | None:
        """Whether this manager leads; another user of the same elector does not count."""
        return None if self._election is None else self._is_working and self._election.is_leader

    def _not_alive(self) -> Iterator[str]:
        if self.is_forked:
            yield f"the manager {FORKED}"
        elif not self._is_started:
            yield "the manager has not started"
        elif self._has_ended:
            yield f"the manager has ended: {self._failure!r}" if self._failure else "the manager has ended"
        else:
            for informer in self.informers:
                yield from liveness_problems(informer.state, self._factory.stalled_after)
            for state in (controller.state for controller in self._controllers):
                for run in state.stuck:
                    yield f"{state.name} is stuck at {run}"
                if state.worker_error is not None:
                    yield f"{state.name}: a worker or source failed: {state.worker_error!r}"

    def _not_ready(self) -> Iterator[str]:
        yield from self._not_alive()
        if self._is_stopping and not self._has_ended:
            yield "the manager is stopping"
        if self._sharding is not None and (error := self._sharding.last_error) is not None:
            yield f"the slots of this replica are not known: {message_of(error)}"
        for informer in self.informers:
            yield from readiness_problems(informer.state, self._factory.stalled_after)
        if all(informer.has_synced() for informer in self.informers):
            for state in (controller.state for controller in self._controllers):
                for trigger in state.triggers:
                    if not trigger.synced:
                        yield f"{state.name}: {trigger.name} has not processed its first list"
