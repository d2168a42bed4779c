"""SharedInformerFactory: one informer for each collection (client-go ``informers/factory.go``)."""

from __future__ import annotations

import asyncio
import logging
import math
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from contextvars import Context, copy_context
from typing import Any, Self, TypedDict, TypeVar, Unpack, overload

from .._core.checks import require_seconds, require_text
from .._core.signals import STOP_SIGNALS, run_until_signal
from .._core.tasks import InOneLoop, finish, raise_failures
from ..client import Client
from ..controller import QueueName, require_queue
from ..errors import AlreadyStartedError, ConfigError, StoppedError
from ..listwatch import ListWatch
from ..listwatch.collection import require_selectors
from ..metrics import Sample, exposition
from ..objects.kube_object import KubeObject, is_kube_object_type
from ..processor import CacheMutationDetector
from ..reflector import Phase, ReflectorOptions
from ..reflector.options import check_options
from ..store import NAMESPACE_INDEX, meta_namespace_index_func
from ..tracing import Trace, Tracer
from .compression import Compression
from .probes import Health, default_stalled_after, liveness_problems, readiness_problems
from .shared_informer import EVERYWHERE, SharedIndexInformer, name_of
from .state import apart
from .wait import wait_for_cache_sync

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Selected(TypedDict, total=False):
    """Which objects of a collection, and how much of them is kept: see ``SharedInformerFactory.for_resource``."""

    namespace: str | None
    namespaces: Sequence[str] | None
    label_selector: str | None
    field_selector: str | None
    metadata_only: bool
    protobuf: bool
    compress: bool | Compression


class InformerOptions(Selected, total=False):
    """All that an informer is asked for by: see ``SharedInformerFactory.for_resource``."""

    namespaced: bool


class SharedInformerFactory(InOneLoop):
    """Makes informers and shares them: asking twice for the same collection gives the same one.

    An async context manager, to be entered once: entering starts the informers asked for so far, leaving stops all and
    waits. Ask for more at any time: from then on they start by themselves.

    Args:
        client: A Client, or a kubernetes_asyncio ApiClient.
        namespace: The namespace of informers that do not name one; None for all namespaces.
        default_resync_period: Seconds between resyncs; 0 for none.
        queue: "delta" for DeltaFIFOs, "real" for RealFIFOs.
        stalled_after: Seconds without a byte from the server after which a watch counts as stalled, and a cache
            whose server does not answer as out of date, for ``healthy`` and ``ready``; None for a minute more than
            twice ``min_watch_timeout``, in which a server ends each watch: 660.
        detect_mutations: Whether each informer has a CacheMutationDetector: for tests, and for object types that can
            be changed in place.
        on_trace: Told where the time of each event of each informer went, as the hook of a Tracer; None for none.
        **options: See ReflectorOptions; they hold for every informer. ``name`` comes before the names of all.

    Attributes:
        stalled_after: As given, or what None stands for.
    """

    def __init__(
        self,
        client: Any,
        namespace: str | None = None,
        default_resync_period: float = 0.0,
        *,
        queue: QueueName = "delta",
        stalled_after: float | None = None,
        detect_mutations: bool = False,
        on_trace: Callable[[Trace], object] | None = None,
        **options: Unpack[ReflectorOptions],
    ) -> None:
        require_queue(queue)
        self._client = Client.of(client)
        self._namespace = namespace
        self._default_resync_period = default_resync_period
        self._queue: QueueName = queue
        self._detect_mutations = detect_mutations
        check_options(options)
        require_seconds("default_resync_period", default_resync_period)
        if stalled_after is not None:
            require_seconds("stalled_after", stalled_after)
            if not stalled_after:
                raise ConfigError("stalled_after must be above 0: no watch brings something all the time")
        self.stalled_after = default_stalled_after(options) if stalled_after is None else stalled_after
        if on_trace is not None:
            Tracer(on_trace)  # a hook that cannot be one is found out here
        self._on_trace = on_trace
        self._name = options.pop("name", None)
        self._options = options
        self._informers: dict[tuple[object, ...], SharedIndexInformer[Any]] = {}
        self._tasks: dict[SharedIndexInformer[Any], asyncio.Task[None]] = {}
        self._started = False
        self._context = Context()  # of the start: who asks for an informer later may be gone soon
        self._shut_down = False
        self._entered = False
        self._patience_ends = math.inf  # with what does not end
        self._ended = asyncio.Event()  # shut down, or an informer has failed

    def __repr__(self) -> str:
        return f"<SharedInformerFactory of {', '.join(each.name for each in self.informers) or 'nothing'}>"

    @property
    def informers(self) -> list[SharedIndexInformer[Any]]:
        """The informers asked for so far."""
        return list(self._informers.values())

    @property
    def running(self) -> list[SharedIndexInformer[Any]]:
        """Those that the factory has started; not one that somebody runs by hand."""
        return [informer for informer in self.informers if informer in self._tasks]

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
        *,
        namespace: str | None = None,
        namespaces: Sequence[str] | None = None,
        namespaced: bool = True,
        label_selector: str | None = None,
        field_selector: str | None = None,
        metadata_only: bool = False,
        protobuf: bool = False,
        compress: bool | Compression = False,
    ) -> SharedIndexInformer[Any]:
        """The informer of a collection, with an index named ``"namespace"``.

        Any collection will do, by group, version and plural: built-in or custom, namespaced or not, also one whose
        CustomResourceDefinition comes later. Once the factory has started, an informer that was not asked for
        before starts by itself, in the next turn of the event loop: set it up before the next ``await``.

        Args:
            api_version: ``"v1"``, ``"apps/v1"``, ``"example.com/v1"``.
            plural: ``"pods"``.
            object_type: What an object is: KubeObject, dict, a ``msgspec.Struct`` or a model class.
            namespace: One namespace; ``""`` for all of them, None for the factory's.
            namespaces: Several, each listed and watched by itself (so that rights to each suffice).
            namespaced: Whether the objects live in namespaces. A factory that has a namespace of its own needs it
                said of those that do not, such as nodes.
            label_selector: As kubectl's ``-l``.
            field_selector: As kubectl's ``--field-selector``.
            metadata_only: Read the objects' metadata alone, as PartialObjectMetadata.
            protobuf: Read KubeObjects of built-in kinds, and metadata alone, as protobuf: see
                ``ListWatch.for_resource``.
            compress: Whether KubeObjects are kept compressed, and how.

        Raises:
            ConfigError: The arguments cannot name a collection.
            StoppedError: The factory has been shut down, and has no such informer.
            WrongEventLoopError: The factory runs in another event loop or thread, and has no such informer.
        """
        chosen = self._namespaces(namespace, namespaces, namespaced)
        require_selectors(label_selector or "", field_selector or "")
        label_selector, field_selector = label_selector or None, field_selector or None
        if protobuf and not is_kube_object_type(object_type):
            raise ConfigError(
                f"protobuf is for KubeObjects, not for {object_type!r}, which is read from JSON"
            )
        asked = (
            api_version, plural, object_type, frozenset(chosen), label_selector, field_selector,
            metadata_only, protobuf, compress,
        )  # fmt: skip
        informer = self._informers.get(asked)
        if informer is not None:
            return informer
        if self._shut_down:
            raise StoppedError(
                f"the factory has been shut down; {plural} of {api_version} was not asked for before"
            )
        if self._started:
            self.require_own_loop()
        list_watches = {
            each: ListWatch.for_resource(
                self._client,
                api_version,
                plural,
                each,
                label_selector,
                field_selector,
                metadata_only=metadata_only,
                protobuf=protobuf,
            )
            for each in chosen
        }
        if self._name:
            for each in list_watches.values():
                each.description = f"{self._name} {each.description}"
        options = self._options.copy()
        name = name_of(list_watches)
        if (distinct := apart(name, {each.name for each in self.informers})) != name:
            options["name"] = distinct
        informer = SharedIndexInformer(
            list_watches,
            object_type,
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
        self, namespace: str | None, namespaces: Sequence[str] | None, namespaced: bool
    ) -> tuple[str, ...]:
        """What to read: some namespaces, or ``""`` for all that there is."""
        if not namespaced:
            if namespace or namespaces is not None:
                raise ConfigError("what is not namespaced has neither a namespace nor namespaces")
            return (EVERYWHERE,)
        if namespaces is None:
            if namespace is None:
                return (self._namespace or EVERYWHERE,)
            require_text("namespace", namespace)
            return (namespace,)
        if namespace is not None:
            raise ConfigError("namespace and namespaces exclude each other")
        if isinstance(namespaces, str):
            raise ConfigError(f"namespaces is a list of names, not {namespaces!r}; one alone is namespace=")
        if not namespaces or not all(namespaces):
            raise ConfigError(
                f"namespaces must name one namespace at least, and none without a name, not {namespaces!r}; "
                'all namespaces are namespace=""'
            )
        return tuple(dict.fromkeys(namespaces))

    def start(self) -> None:
        """Start the informers that are not running yet. After ``shutdown`` it does nothing, as upstream's, and the log
        says so.

        One that somebody runs by hand stays theirs.

        Raises:
            WrongEventLoopError: There is no event loop here, or it is another one than before.
        """
        if self._shut_down:
            logger.warning("%r has been shut down, and starts nothing any more: make another one", self)
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
        """Wait until all informers that the factory has started have synced. Returns and raises as the function of this
        name.

        Those of a factory that was never started are not waited for, as upstream; a warning names them. Nor are those
        that somebody runs by hand.
        """
        if self._started:
            self._start_new()  # what was asked for in this very turn
        elif new := [each.name for each in self.informers if each.state.phase is Phase.NEW]:
            logger.warning(
                "%r was never started, so nothing waits for %s: enter it (async with), or call start()",
                self, ", ".join(new),
            )  # fmt: skip
        return await wait_for_cache_sync(*self.running, timeout=timeout, fail_fast=fail_fast)

    async def remove(self, informer: SharedIndexInformer[Any]) -> None:
        """Stop an informer, wait for its end and forget it (controller-runtime ``RemoveInformer``): one of a collection
        that has gone for good, without which the factory would not be ready again.

        It is gone for all who share it. ``for_resource`` with the same arguments makes another one. One that somebody
        runs by hand stays theirs, and is only forgotten.

        Cancellation: it is removed all the same.

        Args:
            informer: One that ``for_resource`` gave.

        Raises:
            ConfigError: It is none of this factory.
            InformerError: Called from inside one of its handlers, or of one that is being removed.
            WrongEventLoopError: The factory runs in another event loop or thread.
            BaseException: It had failed, with this.
        """
        being_removed = self._tasks.keys() - self._informers.values()
        if informer not in self._informers.values() and informer not in being_removed:
            raise ConfigError(f"{informer!r} is none of {self!r}")
        if self._started:
            self._start_new()  # of this very turn: who waits for it is told that it has stopped
            for each in (informer, *being_removed):  # handlers that remove each other's would wait for ever
                each.require_outside_handlers()
        self._informers = {asked: each for asked, each in self._informers.items() if each is not informer}
        if (task := self._tasks.get(informer)) is not None:
            task.remove_done_callback(self._record_end)  # what it fails of from here on is for who removes it
            try:
                await finish(task)
            finally:  # cancelled meanwhile, too, or nobody would hear of it
                self._tasks.pop(informer, None)
                raise_failures("the informer failed", task)

    def healthy(self) -> Health:
        """Whether it is alive, for a liveness probe: what is not, a restart of the process may heal.

        A server that does not answer is no reason; a watch that is stalled, and an informer that has ended, are.
        """
        return Health.of(self._not_alive())

    def ready(self) -> Health:
        """Whether it may be relied on, for a readiness probe: it is alive, and its caches are filled and current."""
        return Health.of(self._not_ready())

    def samples(self) -> Iterator[Sample]:
        """The numbers of its informers."""
        for informer in self.informers:
            yield from informer.state.samples()

    def metrics(self) -> str:
        """What its informers do, in Prometheus' text format: for a ``/metrics`` route, as ``text/plain``."""
        return exposition(self.samples())

    async def shutdown(self, *, grace: float | None = None) -> None:
        """Stop all informers and wait for their end. May be called again.

        Args:
            grace: Seconds that they have to end. Then those whose handlers ignore being cancelled are left behind,
                with an ERROR, and who leaves the factory after this call does not wait for them either; None for never.

        Raises:
            ConfigError: ``grace`` is no duration above 0.
            BaseException: An informer had failed, with this; of several, a BaseExceptionGroup.
        """
        now = asyncio.get_running_loop().time()
        if grace is None:
            await self._shutdown(math.inf)
            return
        require_seconds("grace", grace)
        if not grace:
            raise ConfigError("grace must be above 0: nothing ends in no time")
        self._patience_ends = min(self._patience_ends, now + grace)
        try:
            await self._shutdown(now + grace)
        finally:
            if left := [informer.name for informer, task in self._tasks.items() if not task.done()]:
                logger.error("%r: left behind, since they do not end: %s", self, ", ".join(left))

    async def run(self) -> None:
        """Start the informers, and stop them when cancelled or when one has failed; or until they are ``shutdown``.

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
        """Wait until an informer has failed, or ``shutdown`` has begun."""
        await self._ended.wait()

    async def __aenter__(self) -> Self:
        if self._shut_down:
            raise AlreadyStartedError("the factory has been shut down; it runs once: make another one")
        if self._entered:
            raise AlreadyStartedError("the factory runs already, until who has entered it leaves")
        self.start()
        self._entered = True
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._shutdown(self._patience_ends)

    async def _shutdown(self, end: float) -> None:
        """Stop all, and wait until the loop's clock says so at most."""
        for informer in self._tasks:
            informer.require_outside_handlers()
        if self._started:
            self._start_new()  # of this very turn: who waits for it is told that it has stopped
        self._shut_down = True
        self._ended.set()
        tasks = tuple(self._tasks.values())
        left = end - asyncio.get_running_loop().time()
        try:
            await finish(*tasks, grace=None if left == math.inf else left)
        finally:  # cancelled meanwhile, too, or nobody would hear of it
            raise_failures("informers failed", *tasks)

    def _begin(self, informer: SharedIndexInformer[Any]) -> asyncio.Task[None]:
        task = informer.begin()
        task.add_done_callback(self._record_end)
        return task

    def _not_alive(self) -> Iterator[str]:
        if self._shut_down:
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
