"""Manager: controllers on shared informers, from the first list to the last reconcile (controller-runtime
``pkg/manager``)."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, TypeVar, Unpack, overload

from .._core.checks import require_seconds
from .._core.signals import STOP_SIGNALS, run_until_signal
from .._core.tasks import (
    Running,
    finish,
    raise_failures,
    run_until_first,
    wait_ended,
)
from ..client import Client
from ..controller import QueueName
from ..errors import AlreadyStartedError, ConfigError, LeadershipLostError, StoppedError, SyncTimeout
from ..informer import InformerState, SharedIndexInformer, SharedInformerFactory, wait_for_cache_sync
from ..informer.factory import InformerOptions, Selected
from ..informer.probes import Health, liveness_problems, readiness_problems
from ..informer.state import apart
from ..leaderelection import LeaderElector
from ..metrics import Sample, exposition
from ..objects.kube_object import KubeObject
from ..reflector import ReflectorOptions
from ..resources import CachedResource, Resource
from ..resources.resource import FIELD_MANAGER
from ..tracing import Trace
from .controller import Controller
from .finalizing import read_the_same
from .probes import controller_liveness_problems, controller_readiness_problems
from .protocols import LeaderElection, require_election
from .runs import CANCEL_GRACE
from .state import ManagerState

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Manager(Running):
    """Runs controllers, and the informers that they share.

    An async context manager, which may be entered and left in different tasks; or ``await run()``. It runs once.
    First the caches are filled; then, once it leads where there is leader election, each controller works as soon as
    what is in its caches has gone through its triggers. Ending, it lets running reconciles end, then stops being the
    leader, and stops the informers last.

    Args:
        client: A Client, or a kubernetes_asyncio ApiClient.
        namespace: The namespace of informers that do not name one; None for all namespaces.
        leader_election: Says when to work, of several managers; None for always. Standing by, the caches are kept
            filled, and changes are queued.
        grace_period: Seconds that running reconciles may take to end. Those that are cancelled then have ten more, and
            giving the Lease back takes its requests: Kubernetes kills a pod after 30, unless told otherwise.
        default_resync_period: Seconds between resyncs of the informers; 0 for none.
        queue, stalled_after, detect_mutations, on_trace: As for SharedInformerFactory.
        **options: See ReflectorOptions; they hold for every informer.

    Raises:
        ConfigError: An argument is not what it should be.
    """

    def __init__(
        self,
        client: Any,
        *,
        namespace: str | None = None,
        leader_election: LeaderElection | None = None,
        grace_period: float = 20.0,
        stalled_after: float | None = None,
        default_resync_period: float = 0.0,
        queue: QueueName = "delta",
        detect_mutations: bool = False,
        on_trace: Callable[[Trace], object] | None = None,
        **options: Unpack[ReflectorOptions],
    ) -> None:
        require_seconds("grace_period", grace_period)
        if leader_election is not None:
            require_election(leader_election)
        self.client = Client.of(client)
        self._factory = SharedInformerFactory(
            self.client,
            namespace,
            default_resync_period,
            queue=queue,
            stalled_after=stalled_after,
            detect_mutations=detect_mutations,
            on_trace=on_trace,
            **options,
        )
        self._election = leader_election
        self._grace_period = grace_period
        self._controllers: list[Controller[Any]] = []
        self._is_working = self._is_stopping = self._has_ended = False
        self._stopped = asyncio.Event()
        self._failure: BaseException | None = None

    def __repr__(self) -> str:
        return f"<Manager of {', '.join(each.name for each in self._controllers) or 'nothing'}>"

    # -- setting up ----------------------------------------------------------------------------------------

    @overload
    def for_resource(
        self,
        api_version: str,
        plural: str,
        **options: Unpack[InformerOptions],
    ) -> SharedIndexInformer[KubeObject]: ...

    @overload
    def for_resource(
        self,
        api_version: str,
        plural: str,
        object_type: type[T],
        **options: Unpack[InformerOptions],
    ) -> SharedIndexInformer[T]: ...

    def for_resource(
        self,
        api_version: str,
        plural: str,
        object_type: type[Any] = KubeObject,
        **options: Unpack[InformerOptions],
    ) -> SharedIndexInformer[Any]:
        """The informer of a collection, shared by all who ask for it. As ``SharedInformerFactory.for_resource``."""
        return self._factory.for_resource(api_version, plural, object_type, **options)

    @overload
    def resource(
        self,
        api_version: str,
        plural: str,
        *,
        kind: str = "",
        namespaced: bool = True,
        field_manager: str = FIELD_MANAGER,
        **selected: Unpack[Selected],
    ) -> CachedResource[KubeObject]: ...

    @overload
    def resource(
        self,
        api_version: str,
        plural: str,
        object_type: type[T],
        *,
        kind: str = "",
        namespaced: bool = True,
        field_manager: str = FIELD_MANAGER,
        **selected: Unpack[Selected],
    ) -> CachedResource[T]: ...

    def resource(
        self,
        api_version: str,
        plural: str,
        object_type: type[Any] = KubeObject,
        *,
        kind: str = "",
        namespaced: bool = True,
        field_manager: str = FIELD_MANAGER,
        **selected: Unpack[Selected],
    ) -> CachedResource[Any]:
        """A collection to read from its shared informer, and to write to: what a controller with a finalizer takes.

        Args:
            api_version: As for ``for_resource``.
            plural: As for ``for_resource``.
            object_type: As for ``for_resource``.
            kind: As for Resource.
            namespaced: Whether the objects live in namespaces; of nodes, say, it is False.
            field_manager: As for Resource.
            **selected: Which objects, and how much of them is kept: as for ``for_resource``.

        Raises:
            ConfigError: The arguments cannot name a collection.
        """
        informer = self.for_resource(api_version, plural, object_type, namespaced=namespaced, **selected)
        resource = Resource(
            self.client,
            api_version,
            plural,
            object_type,
            kind=kind,
            namespaced=namespaced,
            field_manager=field_manager,
        )
        return CachedResource(resource, informer)

    async def remove(self, informer: SharedIndexInformer[Any]) -> None:
        """Stop an informer and forget it: one of a collection that has gone for good.

        Raises:
            ConfigError: It was not asked for here, or a controller needs it.
            BaseException: As ``SharedInformerFactory.remove``.
        """
        for controller in self._controllers:
            if informer in controller.informers:
                raise ConfigError(f"{controller.name} needs {informer.name}, which was not removed")
        await self._factory.remove(informer)

    def add(self, controller: Controller[T]) -> Controller[T]:
        """Have a controller run.

        Raises:
            AlreadyStartedError: The manager has started.
            ConfigError: There is one of this name, or one that has the same finalizer for the same objects.
        """
        if self._is_started:
            raise AlreadyStartedError(f"{self!r} has started; {controller!r} was not added")
        if not isinstance(controller, Controller):
            raise ConfigError(f"add takes a Controller, not {controller!r}")
        if controller.name in {each.name for each in self._controllers}:
            raise ConfigError(f"there is a controller named {controller.name} already")
        for each in self._controllers:
            is_shared = each.finalizer is not None and each.finalizer == controller.finalizer
            if is_shared and read_the_same(each.informer, controller.informer):
                raise ConfigError(
                    f"{controller.name} and {each.name} have the same objects and the one finalizer "
                    f"{each.finalizer}, which goes when either has cleaned up: give each its own"
                )
        self._controllers.append(controller)
        return controller

    @property
    def controllers(self) -> list[Controller[Any]]:
        """The controllers that were added."""
        return list(self._controllers)

    @property
    def informers(self) -> list[SharedIndexInformer[Any]]:
        """The informers of the controllers, and those that were asked for here."""
        theirs = (informer for controller in self._controllers for informer in controller.informers)
        return list(dict.fromkeys([*theirs, *self._factory.informers]))

    # -- running -------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Run until cancelled.

        Cancellation: running reconciles may end within ``grace_period``; cancelled once more, they are cancelled at
        once. What was begun has ended when this returns, but for what ignores that it was cancelled: reconciles are
        left behind ten seconds later; and then, together, sources, map functions, and the informers made here whose
        handlers go on.

        Raises:
            AlreadyStartedError: It was started before.
            BaseException: Something has failed that no reconciler is to blame for; of several, a
                BaseExceptionGroup.
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
        """As ``run``, and end in good order when the process is told to: Ctrl-C, or what ends a pod.

        A second signal ends reconciles that still run. Handlers that the signals had before are back when it returns.

        Args:
            signals: Which ones.

        Raises:
            ConfigError: This is not the main thread, which alone is told of signals.
            BaseException: As ``run``.
        """
        await run_until_signal(self.run, self, signals)

    async def _read_and_lead(self) -> None:
        tasks: list[asyncio.Task[None]] = []
        async with AsyncExitStack() as ending:  # from the last one to the first, whatever becomes of each
            ending.callback(lambda: raise_failures(f"{self!r} has failed", *tasks))
            ending.push_async_callback(self._end_reading, tasks)
            for controller in self._controllers:
                controller.feed()
            self._factory.start()
            reading = asyncio.create_task(self._factory.wait_ended(), name=f"{self!r} reading")
            leading = asyncio.create_task(self._lead(), name=f"{self!r} leading")
            tasks.append(leading)
            ending.push_async_callback(finish, reading, leading)
            ending.push_async_callback(self._stop_controllers)
            ended, _ = await asyncio.wait((reading, leading), return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()

    async def _end_reading(self, tasks: list[asyncio.Task[None]]) -> None:
        """End the informers, and what feeds the controllers: at once, so that all have the same ten seconds."""
        feeding = [each.end_feeding(self._factory.running) for each in self._controllers]
        ending = [
            asyncio.create_task(each) for each in (self._factory.shutdown(grace=CANCEL_GRACE), *feeding)
        ]
        tasks.extend(ending)
        await wait_ended(*ending)

    async def _lead(self) -> None:
        """Work whenever it is this manager's turn. Sources, which may die, also run while it waits."""
        await run_until_first(self._take_turns, *(each.raise_death for each in self._controllers))

    async def _take_turns(self) -> None:
        await self._fill_caches()
        if self._election is None:
            await self._work()
            return
        while not self._is_stopping:
            try:
                await self._election.run(self._work)
            except LeadershipLostError as error:
                logger.warning("%r stands by: %s", self, error)

    async def _fill_caches(self) -> None:
        """Wait for the informers that there are now, but for those that are removed meanwhile, or that only controllers
        need whose ``cache_sync_timeout`` has passed."""
        now = asyncio.get_running_loop().time
        began = now()
        waited_for = self.informers
        while True:
            timeouts = {
                each: began + each.cache_sync_timeout
                for each in self._controllers
                if each.cache_sync_timeout is not None and each.sync_error is None and each.unsynced
            }
            timeout = max(0.0, min(timeouts.values()) - now()) if timeouts else None
            try:
                await wait_for_cache_sync(*waited_for, timeout=timeout)
                return
            except SyncTimeout:
                for controller, deadline in timeouts.items():
                    if controller.unsynced and deadline <= now():
                        controller.stop_holding_others_up()
                waited_for = [each for each in waited_for if self._holds_others_up(each)]
            except StoppedError:
                left = [each for each in waited_for if each in self.informers]
                if left == waited_for:
                    raise
                waited_for = left

    def _holds_others_up(self, informer: SharedIndexInformer[Any]) -> bool:
        """Whether nobody works before an informer has synced: not if all that need it have been late."""
        needing = [each for each in self._controllers if informer in each.informers]
        return not needing or any(each.sync_error is None for each in needing)

    async def _work(self) -> None:
        if self._controllers:
            logger.info("%r begins to work", self)
        else:
            logger.warning("%r begins to work without a controller: none was given to its add", self)
        self._is_working = True
        try:
            async with asyncio.TaskGroup() as group:
                for controller in self._controllers:
                    group.create_task(self._work_with(controller), name=f"{controller!r} working")
                group.create_task(self._stopped.wait())
        finally:
            self._is_working = False
            left_behind = [
                f"{each.name} at {run.key}" for each in self._controllers for run in each.state.stuck
            ]
            if left_behind and (let_expire := getattr(self._election, "let_expire", None)) is not None:
                let_expire(", ".join(left_behind))

    async def _work_with(self, controller: Controller[Any]) -> None:
        """Let a controller work, once what is in its caches has gone through its triggers."""
        await wait_for_cache_sync(*controller.registrations)
        election = self._election
        # Who stood still learns from the clock that he leads no more, before he is cancelled.
        await controller.work(None if election is None else lambda: election.is_leader)

    async def _stop_controllers(self) -> None:
        self._is_stopping = True
        try:
            async with asyncio.TaskGroup() as group:
                for controller in self._controllers:
                    group.create_task(controller.stop(self._grace_period))
        finally:
            self._stopped.set()

    # -- how it is -----------------------------------------------------------------------------------------

    def healthy(self) -> Health:
        """Whether it is alive, for a liveness probe: what is not, a restart of the process may heal.

        A server that does not answer is no reason; a watch that is stalled, an informer or worker that has ended,
        and a reconcile that ignores being cancelled are.
        """
        return Health.of(self._not_alive())

    def ready(self) -> Health:
        """Whether it may be relied on, for a readiness probe: it is alive, its caches are filled and current, and what
        is in them has gone through the triggers.

        One that stands by is ready.
        """
        return Health.of(self._not_ready())

    @property
    def state(self) -> ManagerState:
        """What it reads and does; ``str()`` of it is a table."""
        return ManagerState(
            ended=self._has_ended,
            leading=self._leads,
            election_error=self._election.state.last_error
            if isinstance(self._election, LeaderElector)
            else None,
            informers=tuple(self._states()),
            controllers=tuple(controller.state for controller in self._controllers),
        )

    def samples(self) -> Iterator[Sample]:
        """All numbers: of controllers by controller-runtime's names, of queues and the lease by client-go's, and of
        informers."""
        for controller in self._controllers:
            yield from controller.samples()
        for state in self._states():
            yield from state.samples()
        if (leads := self._leads) is not None:
            lease = self._election.state.lease if isinstance(self._election, LeaderElector) else ""
            yield Sample("leader_election_master_status", "gauge", {"name": lease.rpartition("/")[2]}, leads)

    def metrics(self) -> str:
        """All numbers, in Prometheus' text format: what a ``/metrics`` route answers, as ``text/plain``."""
        return exposition(self.samples())

    def _states(self) -> Iterator[InformerState]:
        """Those of the informers, whose names are distinct also where not all are of one factory.

        They keep them: what may be asked for and removed while it runs comes last.
        """
        names: set[str] = set()
        for informer in self.informers:
            name = apart(informer.name, names)
            names.add(name)
            yield replace(informer.state, name=name)

    @property
    def _leads(self) -> bool | None:
        """Whether it is the leader, and not just whoever else stands for election by the same elector."""
        return None if self._election is None else self._is_working and self._election.is_leader

    def _not_alive(self) -> Iterator[str]:
        if not self._is_started:
            yield "the manager has not started"
        elif self._has_ended:
            yield f"the manager has ended: {self._failure!r}" if self._failure else "the manager has ended"
        else:
            for informer in self.informers:
                yield from liveness_problems(informer.state, self._factory.stalled_after)
            for controller in self._controllers:
                yield from controller_liveness_problems(controller.state)

    def _not_ready(self) -> Iterator[str]:
        yield from self._not_alive()
        for informer in self.informers:
            yield from readiness_problems(informer.state, self._factory.stalled_after)
        if all(informer.has_synced() for informer in self.informers):
            for controller in self._controllers:
                yield from controller_readiness_problems(controller.state)
