"""SharedInformerFactory: one informer for each collection (client-go ``informers/factory.go``)."""

from __future__ import annotations

import asyncio
import logging
import math
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from typing import Any, Literal, Self, TypedDict, TypeVar, Unpack, overload

from .._core.checks import require_seconds, require_text
from .._core.forks import FORKED, require_same_process
from .._core.loops import InOneLoop
from .._core.signals import STOP_SIGNALS, run_until_signal
from .._core.tasks import finish, raise_failures
from ..client import Client
from ..client.lookup import ResourceName, look_up
from ..controller import QueueName, require_queue
from ..errors import AlreadyStartedError, ConfigError, StoppedError
from ..listwatch import ListWatch
from ..listwatch.collection import require_selectors
from ..metrics import Sample, exposition
from ..objects.kube_object import KubeObject, is_kube_object_type
from ..processor import CacheMutationDetector
from ..protocols import ReadsShares
from ..reflector import Phase, ReflectorOptions
from ..reflector.options import check_options
from ..store import NAMESPACE_INDEX, meta_namespace_index_func
from ..tracing import Trace, Tracer
from .compression import Compression
from .probes import (
    Health,
    default_stalled_after,
    liveness_problems,
    readiness_problems,
    undecodable_warnings,
)
from .shared_informer import EVERYWHERE, SharedIndexInformer, name_of
from .state import apart
from .wait import wait_for_cache_sync

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Selected(TypedDict, total=False):
    """The options that select objects, and how they are stored: see ``SharedInformerFactory.for_resource``."""

    namespace: str | None
    namespaces: Sequence[str] | None
    label_selector: str | None
    field_selector: str | None
    metadata_only: bool
    protobuf: bool
    compress: bool | Compression
    optional: bool
    shard_by: Literal["uid", "owner", ""]


class InformerOptions(Selected, total=False):
    """All options of ``SharedInformerFactory.for_resource``."""

    namespaced: bool


class SharedInformerFactory(InOneLoop):
    """Creates informers and shares them: two requests for the same collection return the same informer.

    An async context manager, to be entered once. Entering starts the informers that were requested so far, and leaving
    stops all and waits. Later requests start their informers themselves.

    Args:
        client: A Client, or a kubernetes_asyncio ApiClient.
        namespace: The default namespace of its informers; None for all namespaces.
        namespaces: Several default namespaces, in place of one.
        default_resync_period: Seconds between resyncs; 0 for none.
        queue: "delta" for DeltaFIFOs, "real" for RealFIFOs.
        stalled_after: Seconds without a byte from the server after which ``healthy`` calls a watch stalled, and
            ``ready`` calls a cache out of date. None: twice ``min_watch_timeout``, in which a server ends each watch,
            plus a minute: 660.
        detect_mutations: Whether each informer has a CacheMutationDetector: for tests, with object types that can be
            changed in place.
        on_trace: The hook of a Tracer for each informer, called with the timing of each event; None for none.
        sharding: A Sharding: informers read this replica's share of their objects. None reads all.
        **options: See ReflectorOptions; they apply to every informer. ``name`` is a prefix of all names.

    Attributes:
        stalled_after: The effective value.
    """

    def __init__(
        self,
        client: Any,
        namespace: str | None = None,
        default_resync_period: float = 0.0,
        *,
        namespaces: Sequence[str] | None = None,
        queue: QueueName = "delta",
        stalled_after: float | None = None,
        detect_mutations: bool = False,
        on_trace: Callable[[Trace], object] | None = None,
        sharding: ReadsShares | None = None,
        **options: Unpack[ReflectorOptions],
    ) -> None:
        require_queue(queue)
        self._sharding = sharding
        self._client = Client.of(client)
        self._default_namespaces: tuple[str, ...] = (
            (namespace or EVERYWHERE,) if namespaces is None else _require_several(namespace, namespaces)
        )
        self._default_resync_period = default_resync_period
        self._queue: QueueName = queue
        self._detect_mutations = detect_mutations
        check_options(options, SharedInformerFactory)
        require_seconds("default_resync_period", default_resync_period)
        if stalled_after is not None:
            require_seconds("stalled_after", stalled_after)
            if not stalled_after:
                raise ConfigError("stalled_after must be above 0: every watch is silent at times")
        self.stalled_after = default_stalled_after(options) if stalled_after is None else stalled_after
        if on_trace is not None:
            Tracer(on_trace)  # checks the hook
        self._on_trace = on_trace
        self._name = options.pop("name", None)
        self._options = options
        self._informers: dict[tuple[object, ...], SharedIndexInformer[Any]] = {}
        self._tasks: dict[SharedIndexInformer[Any], asyncio.Task[None]] = {}
        self._started = False
        self._context = Context()  # of the start: the requester of a later informer may end soon
        self._shut_down = False
        self._entered = False
        self._shutdown_deadline = math.inf  # for handlers that do not end
        self._ended = asyncio.Event()  # shut down, or an informer has failed

    def __repr__(self) -> str:
        return f"<SharedInformerFactory of {', '.join(informer.name for informer in self.informers) or 'nothing'}>"

    @property
    def informers(self) -> list[SharedIndexInformer[Any]]:
        """The informers that were requested so far."""
        return list(self._informers.values())

    @property
    def running(self) -> list[SharedIndexInformer[Any]]:
        """The informers that the factory has started. Informers that you run yourself are not included."""
        return [informer for informer in self.informers if informer in self._tasks]

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
        *,
        namespace: str | None = None,
        namespaces: Sequence[str] | None = None,
        namespaced: bool = True,
        label_selector: str | None = None,
        field_selector: str | None = None,
        metadata_only: bool = False,
        protobuf: bool = False,
        compress: bool | Compression = False,
        optional: bool | None = None,
        shard_by: Literal["uid", "owner", ""] = "uid",
    ) -> SharedIndexInformer[Any]:
        """Return the informer of a collection, with an index named ``"namespace"``.

        Any collection works, by group, version and plural: built-in or custom, namespaced or not, also if its
        CustomResourceDefinition is created later. After the factory has started, a new informer starts on the next
        event loop iteration: configure it before you ``await``.

        Args:
            api_version: ``"v1"``, ``"apps/v1"``, ``"example.com/v1"``; or, in place of it and the plural, the resource:
                a name such as ``"pods"`` or ``"deploy"``, or a class. See docs/typed-resources.md.
            plural: ``"pods"``.
            object_type: What an object is: KubeObject, dict, a ``msgspec.Struct`` or a model class.
            namespace: One namespace; ``""`` for all of them, None for the factory's.
            namespaces: Several namespaces, each listed and watched separately, so that permissions in each suffice.
            namespaced: Pass False for cluster-scoped custom resources without a class, if the factory has a namespace.
            label_selector: As kubectl's ``-l``.
            field_selector: As kubectl's ``--field-selector``.
            metadata_only: Read only the objects' metadata, as PartialObjectMetadata.
            protobuf: Read KubeObjects of built-in kinds, or metadata only, as protobuf: see ``ListWatch.for_resource``.
            compress: Whether KubeObjects are stored compressed, and how.
            optional: Whether the server may lack the collection: see ReflectorOptions. None for the factory's.
            shard_by: With a Sharding: ``"uid"`` for its share of the objects, ``"owner"`` for objects that follow the
                one that owns them, ``""`` for all objects.

        Raises:
            ConfigError: The arguments do not name a collection.
            StoppedError: The factory has been shut down, and has no such informer.
            WrongEventLoopError: The factory runs in another event loop or thread, and has no such informer.
        """
        resource = look_up(self._client, api_version, plural, object_type)
        api_version, plural, kind = resource.api_version, resource.plural, resource.object_type
        namespaced = resource.is_namespaced(namespaced)
        chosen = self._namespaces(namespace, namespaces, namespaced, plural)
        require_selectors(label_selector or "", field_selector or "")
        label_selector, field_selector = label_selector or None, field_selector or None
        if protobuf and not is_kube_object_type(kind):
            raise ConfigError(f"protobuf works with KubeObjects only: {kind!r} is read from JSON")
        asked = (
            api_version, plural, kind, frozenset(chosen), label_selector, field_selector,
            metadata_only, protobuf, compress, optional, shard_by,
        )  # fmt: skip
        informer = self._informers.get(asked)
        if informer is not None:
            return informer
        if self._shut_down:
            raise StoppedError(
                f"the factory has been shut down, and has no informer of {plural} of {api_version}"
            )
        if self._started:
            self.require_own_loop()
        list_watches = {
            read_namespace: ListWatch.for_resource(
                self._client,
                api_version,
                plural,
                read_namespace,
                label_selector,
                field_selector,
                metadata_only=metadata_only,
                protobuf=protobuf,
            )
            for read_namespace in chosen
        }
        if self._sharding is not None:
            list_watches = {
                read_namespace: self._sharding.read(list_watch, shard_by, namespaced=namespaced)
                for read_namespace, list_watch in list_watches.items()
            }
        if self._name:
            for list_watch in list_watches.values():
                list_watch.description = f"{self._name} {list_watch.description}"
        options = self._options.copy()
        name = name_of(list_watches)
        if (distinct := apart(name, {other.name for other in self.informers})) != name:
            options["name"] = distinct
        if optional is not None:
            options["optional"] = optional
        informer = SharedIndexInformer(
            list_watches,
            kind,
            self._default_resync_period,
            {NAMESPACE_INDEX: meta_namespace_index_func},
            compress=compress,
            queue=self._queue,
            mutation_detector=CacheMutationDetector() if self._detect_mutations else None,
            tracer=None if self._on_trace is None else Tracer(self._on_trace),
            **options,
        )
        if self._started:
            asyncio.get_running_loop().call_soon(self._start_new)
        self._informers[asked] = informer
        return informer

    def _namespaces(
        self, namespace: str | None, namespaces: Sequence[str] | None, namespaced: bool, plural: str
    ) -> tuple[str, ...]:
        """Return the namespaces to read; ``""`` for all."""
        if not namespaced:
            if namespace or namespaces is not None:
                raise ConfigError(f"{plural} are cluster-scoped: leave out namespace and namespaces")
            return (EVERYWHERE,)
        if namespaces is None:
            if namespace is None:
                return self._default_namespaces
            require_text("namespace", namespace)
            return (namespace,)
        return _require_several(namespace, namespaces)

    def start(self) -> None:
        """Start the informers that are not running yet.

        After ``shutdown`` it only logs a warning, as upstream does nothing. It ignores informers that you run yourself.

        Raises:
            WrongEventLoopError: There is no event loop here, or it is another one than before.
            ForkedError: It was started before this process was forked.
        """
        require_same_process(self._own_process, repr(self))
        if self._shut_down:
            logger.warning("%r was shut down and starts no informers: create another factory", self)
        self._start_new()

    def _start_new(self) -> None:
        if self._shut_down:
            return
        self.require_own_loop()
        if not self._started:
            self._started, self._context = True, copy_context()
        for informer in self._informers.values():
            if informer not in self._tasks:
                with suppress(AlreadyStartedError):
                    self._tasks[informer] = self._context.run(self._begin, informer)

    async def wait_for_cache_sync(self, timeout: float | None = None, *, fail_fast: bool = False) -> bool:
        """Wait until all informers that the factory has started have synced.

        Returns and raises as the function of this name. It does not wait for informers that you run yourself, nor, as
        upstream, for those of a factory that was never started; a warning names these.
        """
        if self._started:
            self._start_new()  # those requested in this event loop iteration
        elif new := [informer.name for informer in self.informers if informer.state.phase is Phase.NEW]:
            logger.warning(
                "%r was never started, so this does not wait for %s: enter it (async with), or call start()",
                self, ", ".join(new),
            )  # fmt: skip
        return await wait_for_cache_sync(*self.running, timeout=timeout, fail_fast=fail_fast)

    async def remove(self, informer: SharedIndexInformer[Any]) -> None:
        """Stop an informer, wait for its end and forget it (controller-runtime ``RemoveInformer``).

        For a collection that is gone for good, which would keep the factory from being ready. The informer is removed
        for all its users; ``for_resource`` with the same arguments creates another one. An informer that you run
        yourself is only forgotten.

        Cancellation: it is removed all the same.

        Args:
            informer: An informer that ``for_resource`` returned.

        Raises:
            ConfigError: It is not an informer of this factory.
            InformerError: Called from inside one of its handlers, or of an informer that is being removed.
            WrongEventLoopError: The factory runs in another event loop or thread.
            BaseException: The informer had failed with this error.
        """
        being_removed = self._tasks.keys() - self._informers.values()
        if informer not in self._informers.values() and informer not in being_removed:
            raise ConfigError(f"{informer!r} is not an informer of {self!r}")
        if self._started:
            self._start_new()  # those of this event loop iteration, so that their waiters get StoppedError
            for removed in (
                informer,
                *being_removed,
            ):  # handlers that remove each other's informers would wait for each other
                removed.require_outside_handlers()
        self._informers = {asked: other for asked, other in self._informers.items() if other is not informer}
        if (task := self._tasks.get(informer)) is not None:
            task.remove_done_callback(self._record_end)  # from here on its failure is raised here
            try:
                await finish(task)
            finally:  # also if cancelled meanwhile: the failure must be raised
                self._tasks.pop(informer, None)
                raise_failures("the informer failed", task)

    def healthy(self) -> Health:
        """Return whether it is alive, for a liveness probe: if not, a restart of the process may help.

        It is not if a watch is stalled or an informer has ended. A server that does not answer is no reason to restart.
        """
        return Health.of(self._not_alive())

    def ready(self) -> Health:
        """Return whether it is ready, for a readiness probe: alive, and its caches are filled and current.

        Objects that do not fit their type are warnings: a tenant must not be able to make a service unready.
        """
        return Health.of(
            self._not_ready(), undecodable_warnings(informer.state for informer in self.informers)
        )

    def samples(self) -> Iterator[Sample]:
        """Yield the metrics of its informers."""
        for informer in self.informers:
            yield from informer.state.samples()

    def metrics(self) -> str:
        """Return the metrics of its informers in Prometheus' text format, for a ``/metrics`` route (``text/plain``)."""
        return exposition(self.samples())

    async def shutdown(self, *, grace: float | None = None) -> None:
        """Stop all informers and wait for their end. May be called again.

        Args:
            grace: Seconds for them to end; None waits without limit. Informers whose handlers ignore being cancelled
                are then left behind, with an ERROR, and leaving the factory after this call does not wait for them
                either.

        Raises:
            ConfigError: ``grace`` is not a duration above 0.
            BaseException: An informer had failed with this error; of several, a BaseExceptionGroup.
        """
        require_same_process(self._own_process, repr(self))
        now = asyncio.get_running_loop().time()
        if grace is None:
            await self._shutdown(math.inf)
            return
        require_seconds("grace", grace)
        if not grace:
            raise ConfigError("grace must be above 0: informers need some time to end")
        self._shutdown_deadline = min(self._shutdown_deadline, now + grace)
        try:
            await self._shutdown(now + grace)
        finally:
            if left := [informer.name for informer, task in self._tasks.items() if not task.done()]:
                logger.error("%r: left behind because they did not end in time: %s", self, ", ".join(left))

    async def run(self) -> None:
        """Run the informers until cancelled, until one has failed, or until ``shutdown``.

        Raises:
            AlreadyStartedError: It runs already, or was shut down.
            BaseException: As ``shutdown``.
        """
        async with self:
            await self.wait_ended()

    async def run_until_signal(self, signals: Sequence[signal.Signals] = STOP_SIGNALS) -> None:
        """Run until the process gets a signal: Ctrl-C, or SIGTERM, which ends a pod.

        Starts the informers, and stops them at the end. Inside ``async with`` it only waits: leaving the block stops
        the informers.

        Args:
            signals: The signals that end it. Their former handlers are restored when it returns.

        Raises:
            ConfigError: This is not the main thread, the only one that can handle signals.
            AlreadyStartedError: The factory was shut down.
            BaseException: As ``shutdown``.
        """
        await run_until_signal(self.wait_ended if self._entered else self.run, self, signals)

    async def wait_ended(self) -> None:
        """Wait until an informer has failed, or ``shutdown`` has begun.

        Raises:
            WrongEventLoopError: The factory runs in another event loop.
        """
        self.require_own_loop()
        await self._ended.wait()

    async def __aenter__(self) -> Self:
        require_same_process(self._own_process, repr(self))
        if self._shut_down:
            raise AlreadyStartedError("the factory was shut down; it runs once: create another one")
        if self._entered:
            raise AlreadyStartedError("the factory runs already: it was entered before")
        self.start()
        self._entered = True
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._shutdown(self._shutdown_deadline)

    async def _shutdown(self, end: float) -> None:
        """Stop all informers, and wait until a time of the loop's clock at most."""
        for informer in self._tasks:
            informer.require_outside_handlers()
        if self._started:
            self._start_new()  # those of this event loop iteration, so that their waiters get StoppedError
        self._shut_down = True
        self._ended.set()
        tasks = tuple(self._tasks.values())
        left = end - asyncio.get_running_loop().time()
        try:
            await finish(*tasks, grace=None if left == math.inf else left)
        finally:  # also if cancelled meanwhile: the failure must be raised
            raise_failures("informers failed", *tasks)

    def _begin(self, informer: SharedIndexInformer[Any]) -> asyncio.Task[None]:
        task = informer.begin()
        task.add_done_callback(self._record_end)
        return task

    def _not_alive(self) -> Iterator[str]:
        if self.is_forked:
            yield f"the factory {FORKED}"
        elif self._shut_down:
            yield "the factory has been shut down"
        elif not self._started:
            yield "the factory has not started"
        else:
            for informer in self.informers:
                yield from liveness_problems(informer.state, self.stalled_after)

    def _not_ready(self) -> Iterator[str]:
        yield from self._not_alive()
        for informer in self.informers:
            yield from readiness_problems(informer.state, self.stalled_after)

    def _record_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._ended.set()


def _require_several(namespace: str | None, namespaces: Sequence[str]) -> tuple[str, ...]:
    """Return several namespaces, each once.

    Raises:
        ConfigError: They are no list of names, or there is also a single one.
    """
    if namespace is not None:
        raise ConfigError("namespace and namespaces exclude each other")
    if isinstance(namespaces, str):
        raise ConfigError(f"namespaces must be a list of names, not {namespaces!r}; for one use namespace=")
    if not namespaces or not all(namespaces):
        raise ConfigError(
            f"namespaces must have at least one name, and no empty one, not {namespaces!r}; "
            'for all namespaces use namespace=""'
        )
    return tuple(dict.fromkeys(namespaces))
