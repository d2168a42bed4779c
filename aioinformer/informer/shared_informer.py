"""SharedIndexInformer: one collection, one cache, many handlers (client-go ``shared_informer.go``)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from math import inf
from typing import Any, Generic, TypeVar, Unpack

import anyio

from .._core.callables import require_plain
from .._core.checks import require_text, require_timeout
from .._core.coop import Budget
from .._core.tasks import NOT_STARTED_WARNING_DELAY, Running, finish, run_until_first
from .._core.timers import call_every
from ..controller import Config, Controller, QueueName, apply_in_steps, make_queue, require_queue
from ..deltas import REPLACED_ALL, SYNC_ALL, Delta
from ..errors import ConfigError, InformerError, StoppedError, SyncTimeout
from ..handlers import (
    OnAdd,
    OnDelete,
    OnDeleteObject,
    OnUndecodable,
    OnUpdate,
    ResourceEventHandler,
    ResourceEventHandlerFuncs,
    handler_name,
)
from ..notifications import AddNotification, UndecodableNotification
from ..objects.codec import codec_for
from ..objects.keys import KeyFunc, deletion_handling_meta_namespace_key_func
from ..objects.versions import number_of
from ..processor import BACKLOG_LIMIT, Backlog, CacheMutationDetector, Processor, ProcessorListener
from ..protocols import KnownObjects, ListerWatcher, Queue, Transformer
from ..reflector import ReflectorOptions
from ..reflector.lister_watcher import lister_watcher_of
from ..reflector.options import WatchErrorHandler, check_options, require_watch_error_handler
from ..reflector.scope import lacks_namespace, namespace_read
from ..store import NAMESPACE_INDEX, Indexer, Indexers, Lister, Store, meta_namespace_index_func
from ..tracing import Tracer
from .compression import Compression, Compressor
from .distributor import Distributor
from .newcomer import for_newcomer
from .registration import Registration
from .resyncs import Resyncs
from .state import MOST_ERRORS, InformerState, apart
from .version_waits import VersionWaits

logger = logging.getLogger(__name__)

T = TypeVar("T")

EVERYWHERE = ""

NAMED = 3
"""Namespaces that an informer's name lists; more are counted. The name is a label of every metric."""

CANCEL_GRACE = 10.0
"""Seconds that a cancelled handler call may take to end before the log names it, and between repetitions of that."""


class SharedIndexInformer(Running, Generic[T]):
    """A live, indexed copy of a collection, with handlers that are called for every change.

    An async context manager; or ``await run()``. It runs once. Leaving stops reading first, then the handlers; waiting
    notifications are dropped. Any thread may read the cache; everything else is for the event loop's thread.

    Args:
        list_watch: The source; or a mapping of namespaces to sources, which together are one collection.
        object_type: What an object is: KubeObject, dict, a ``msgspec.Struct`` or a model class.
        default_resync_period: Seconds between resyncs for handlers that do not set a period; 0 disables resyncs.
        indexers: Index functions, or paths of fields such as ``"spec.nodeName"``, by name.
        compress: Whether KubeObjects are stored compressed, and how.
        queue: "delta" for a DeltaFIFO, "real" for a RealFIFO.
        key_func: Returns an object's key.
        mutation_detector: Finds handlers that change cached objects; ``run`` then raises CacheMutatedError.
        tracer: Stamps every watch event on its way to the handlers. A tracer serves one informer.
        **options: See ReflectorOptions.

    Guarantees:
        The store is changed before a handler is called. Each handler is called for every change since it was added, in
        the store's order, one call after the other. A slow or failing handler does not delay others, unless its
        ``backlog`` says so. ``has_synced`` becomes true once the last object of the first list was processed, and stays
        true.
    """

    def __init__(
        self,
        list_watch: ListerWatcher | Mapping[str, ListerWatcher],
        object_type: type[T],
        default_resync_period: float = 0.0,
        indexers: Indexers[Any] | None = None,
        *,
        compress: bool | Compression = False,
        queue: QueueName = "delta",
        key_func: KeyFunc = deletion_handling_meta_namespace_key_func,
        mutation_detector: CacheMutationDetector | None = None,
        tracer: Tracer | None = None,
        **options: Unpack[ReflectorOptions],
    ) -> None:
        require_queue(queue)
        codec_for(object_type)  # raises for a type that cannot be cached
        list_watches = (
            list_watch
            if isinstance(list_watch, Mapping)
            else {namespace_read(list_watch, object_type): list_watch}
        )
        self.list_watches = {namespace: lister_watcher_of(watch) for namespace, watch in list_watches.items()}
        if not self.list_watches or (EVERYWHERE in self.list_watches and len(self.list_watches) > 1):
            raise ConfigError(
                f"an informer reads all namespaces or a list of them, not {list(self.list_watches)}"
            )
        if len(self.list_watches) > 1 and lacks_namespace(object_type):
            raise ConfigError(
                f"objects of {len(self.list_watches)} namespaces need a field metadata.namespace; "
                f"{object_type.__name__} has none"
            )
        self._queue: QueueName = queue
        self.object_type = object_type
        self._key_func = key_func
        self._mutation_detector = mutation_detector
        check_options(options, SharedIndexInformer)
        self._options = options
        self._transform: Transformer[T] | None = None
        self.name = options.get("name") or name_of(self.list_watches)
        descriptions = list(map(_description, self.list_watches.values()))
        self._are_of_one_name = len(set(descriptions)) < len(descriptions)  # needed for each of them
        self._compressor = Compressor.of(compress, object_type)
        self._pack = None if self._compressor is None else self._compressor.pack
        if len(self.list_watches) > 1:  # the index separates their parts of the store
            indexers = {NAMESPACE_INDEX: meta_namespace_index_func, **(indexers or {})}
            if indexers[NAMESPACE_INDEX] is not meta_namespace_index_func:
                raise ConfigError(
                    f"an informer of several namespaces has its own index {NAMESPACE_INDEX!r}: rename yours"
                )
        self._indexer: Indexer[T] = Indexer(key_func, indexers, pack=self._pack, object_type=object_type)
        for reader in self.list_watches.values():
            if (attach := getattr(reader, "attach", None)) is not None:
                attach(self._indexer)
        if mutation_detector is not None:
            mutation_detector.name = mutation_detector.name or self.name
        if tracer is not None and not isinstance(tracer, Tracer):
            raise ConfigError(f"tracer must be a Tracer, such as Tracer(StageTimes()), not {tracer!r}")
        self._tracer = tracer
        self._processor = Processor() if tracer is None else tracer.processor(self.name)
        self._resyncs = Resyncs(self.name, default_resync_period, self._processor, self.list_watches)
        self._version_waits = VersionWaits(self.name, self._indexer, self.list_watches, lambda: self.state)
        self._distributor = Distributor(self._processor, mutation_detector, self._version_waits.wake)
        self._queues: list[Queue] = []
        self._controllers: list[Controller] = []
        self._started = asyncio.Event()
        self._ended = asyncio.Event()

    def __repr__(self) -> str:
        return f"<SharedIndexInformer {self.name}>"

    # -- setting up ----------------------------------------------------------------------------------------

    def add_event_handler(
        self,
        handler: ResourceEventHandler[T] | None = None,
        resync_period: float | None = None,
        *,
        on_add: OnAdd[T] | None = None,
        on_update: OnUpdate[T] | None = None,
        on_delete: OnDelete[T] | None = None,
        on_delete_object: OnDeleteObject[T] | None = None,
        on_undecodable: OnUndecodable | None = None,
        backlog: Backlog = "unbounded",
        backlog_limit: int = BACKLOG_LIMIT,
        name: str = "",
    ) -> Registration:
        """Call a handler for every change from now on, first with an add for each stored object.

        Pass a handler object, or functions as keywords. Handlers may be added at any time.

        Args:
            handler: The handler object.
            resync_period: Seconds between resyncs of this handler; 0 for none, None for the informer's default. The
                minimum is one second. The informer checks for due resyncs once per check period, so the period is
                rounded up to a multiple of that. Before the start a shorter period shortens the check period; later it
                is raised to the check period. An informer whose default is 0 does not resync: it ignores the period
                and logs a warning.
            on_add: ``on_add(obj, is_in_initial_list)``, plain or async, as the other functions.
            on_update: ``on_update(old, new)``.
            on_delete: ``on_delete(obj)``; ``obj`` is a DeletedFinalStateUnknown if the deletion itself was missed.
            on_delete_object: ``on_delete_object(obj)``, instead of ``on_delete``; ``obj`` is always the last known
                state.
            on_undecodable: ``on_undecodable(obj)``, for a state that does not fit the object type; ``obj`` is an
                UndecodableObject. A handler without it is not called for such a state: see ResourceEventHandler.
            backlog: What to do with notifications that the handler is too slow for: keep all ("unbounded"), make the
                store wait ("block"), keep the newest of each object ("coalesce"), or drop the oldest ("drop_oldest").
            backlog_limit: Notifications that may wait, for "block" and "drop_oldest". With "block" one batch of the
                queue, and the adds of stored objects, may exceed it.
            name: The handler's name in logs, states and metrics; ``""`` for its repr, or else its class.

        Raises:
            StoppedError: The informer has stopped.
            ConfigError: There is no handler and no function, or both; the handler is not valid; or the backlog is
                unknown.
            WrongEventLoopError: The informer runs in another event loop or thread.
        """
        functions = (on_add, on_update, on_delete, on_delete_object, on_undecodable)
        has_functions = any(function is not None for function in functions)
        if handler is None:
            if not has_functions:
                raise ConfigError("add_event_handler needs a handler, or a function such as on_add=")
            handler = ResourceEventHandlerFuncs(*functions)
        elif has_functions:
            raise ConfigError(f"pass a handler or functions, not both: {handler_name(handler)} is a handler")
        if self._ended.is_set():
            raise StoppedError(
                f"{self.name}: {handler_name(handler)} was not added to shared informer because it has stopped already"
            )
        self._require_own_loop_once_started()
        require_text("name", name)
        name = apart(name or handler_name(handler), {other.name for other in self._processor.listeners})
        listener = ProcessorListener(
            for_newcomer(handler, self._indexer),
            upstream_synced=self.has_synced,
            name=name,
            backlog=backlog,
            backlog_limit=backlog_limit,
            key_func=self._indexer.key_of,
        )
        # Last, because it may change the period of all handlers, and a rejected handler must change nothing.
        periods = self._resyncs.agree_on(resync_period, started=self._started.is_set())
        listener.requested_resync_period, listener.resync_period = periods
        if (now := _now()) is not None:
            listener.determine_next_resync(now)
        # Nothing else runs between reading the store and adding the listener: no change is missed or repeated.
        listener.add_all([AddNotification(obj, True) for obj in self._indexer.list()])
        listener.add_all([UndecodableNotification(None, obj, True) for obj in self._indexer.undecodable()])
        self._processor.add_listener(listener)
        return Registration(listener, self)

    def remove_event_handler(self, registration: Registration) -> None:
        """Stop calling a handler. Its waiting notifications are dropped; a running call goes on.

        Ignores a registration of another informer, or a removed one. A call that never ends keeps its task until the
        informer ends, and counts in ``state.leaving``; ``shut_down_event_handler`` can cancel it.

        Raises:
            ConfigError: The argument is not a registration.
            WrongEventLoopError: The informer runs in another event loop or thread.
        """
        listener = _listener_of(registration)
        if not self._ended.is_set():
            self._require_own_loop_once_started()
        self._processor.remove_listener(listener)

    async def shut_down_event_handler(self, registration: Registration, *, cancel: bool = False) -> None:
        """Remove a handler, and wait until its running call has ended.

        Args:
            registration: What ``add_event_handler`` returned.
            cancel: Whether to cancel that call, if it waits for something that will not come, such as a full queue
                without a consumer.

        Cancellation: the handler is removed all the same.

        Raises:
            InformerError: Called from inside that handler, or in a task that its call created.
            ConfigError: The argument is not a registration.
            WrongEventLoopError: The informer runs in another event loop or thread.
        """
        listener = _listener_of(registration)
        if listener.is_inside_handler():
            raise InformerError(
                f"{registration!r}: shut down from inside its own handler, so it would wait for itself; "
                "call remove_event_handler, which does not wait"
            )
        self.remove_event_handler(registration)
        if registration._informer is self:
            if cancel:
                listener.cancel_call()
            await listener.wait_ended()

    def add_indexers(self, indexers: Indexers[T]) -> None:
        """Add indexes, at any time. For a full cache use ``indexer.add_indexers_in_turns``: it does not block the
        event loop.

        Raises:
            StoppedError: The informer has stopped.
            IndexerConflictError: A name is taken.
            ConfigError: A path is invalid or not a field of the object type, or a function is not a plain function of
                one object.
            WrongEventLoopError: The informer runs in another event loop or thread.
        """
        if self._ended.is_set():
            raise StoppedError(f"{self.name}: indexers were not added because it has stopped already")
        self._require_own_loop_once_started()
        self._indexer.add_indexers(indexers)

    def set_transform(self, transform: Transformer[T]) -> None:
        """Set a function that changes every object before it is queued, for instance to remove unused fields.

        Every object is transformed exactly once, except an UndecodableObject, which stays as it is. The result must
        have the same name and namespace. If the function raises, or returns None or an object with another key, the
        new state is dropped: the cache keeps the state that it has, the error is logged, and ``rejected`` of the
        reflector's state counts it. Deletions are not lost.

        Raises:
            AlreadyStartedError: The informer has started.
            ConfigError: The function is not a plain function.
        """
        self.require_not_started("call set_transform before that")
        require_plain("transform", transform)
        self._transform = transform

    @property
    def transformer(self) -> Transformer[T] | None:
        """The function that ``set_transform`` got; None for none."""
        return self._transform

    def set_watch_error_handler(self, handler: WatchErrorHandler) -> None:
        """Set ``handler(reflector, error)``, called for every error of a list or watch, which is then not logged.

        Raises:
            AlreadyStartedError: The informer has started.
            ConfigError: The handler does not take these arguments.
        """
        self.require_not_started("call set_watch_error_handler before that")
        require_watch_error_handler("watch_error_handler", handler)
        self._options["watch_error_handler"] = handler

    # -- running -------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Read, store and notify until cancelled.

        Raises:
            AlreadyStartedError: It was started before.
            CacheMutatedError: The mutation detector found a changed object.
        """
        self.record_begin()
        self._indexer.kept_current_in = self._own_process
        self._controllers = [
            self._make_controller(namespace, list_watch)
            for namespace, list_watch in self.list_watches.items()
        ]
        self._started.set()
        self._version_waits.start(dict(zip(self.list_watches, self._controllers, strict=True)))
        self._processor.count_resyncs_from(asyncio.get_running_loop().time())
        processor = asyncio.create_task(self._processor.run(), name=f"{self!r} processor")
        try:
            parts: list[Callable[[], Coroutine[Any, Any, object]]] = [
                controller.run for controller in self._controllers
            ]
            if self._mutation_detector is not None:
                parts.append(self._mutation_detector.run)
            if self._compressor is not None:
                parts.append(partial(self._compressor.run, self._indexer, self._wait_controllers))
            await run_until_first(partial(_outcome, processor), *parts)
        except Exception:
            self._record_end()
            with suppress(asyncio.CancelledError):  # the failure matters more
                await self._end_handlers(processor)
            raise
        finally:
            self._record_end()
            await self._end_handlers(processor)  # strictly after the controllers

    async def __aexit__(self, *exc_info: Any) -> None:
        self.require_outside_handlers()
        await super().__aexit__(*exc_info)

    def require_outside_handlers(self) -> None:
        """Check that the caller is not one of the informer's handlers, which would wait for itself.

        Raises:
            InformerError: Called from inside a handler, or in a task that its call created.
            WrongEventLoopError: The informer runs in another event loop or thread.
        """
        self.require_own_loop()
        if self._processor.is_inside_handler():
            raise InformerError(
                f"{self.name}: stopped from inside its own handler, so it would wait for itself; "
                "set an event there, and leave outside"
            )

    def has_synced(self) -> bool:
        """Return whether every object of the first list is in the store; False in a process that was forked since."""
        if not self._controllers or self.is_forked:
            return False
        return all(controller.has_synced() for controller in self._controllers)

    async def wait_synced(self, timeout: float | None = None, *, fail_fast: bool = False) -> bool:
        """Wait for ``has_synced``.

        Args:
            timeout: Seconds; None waits without limit. After a while the log names an informer that was not started.
            fail_fast: Whether to raise if the first list fails with an error that a retry cannot fix: 400 (such as a
                bad selector), 401, 403, 404 or 405. The informer retries all the same.

        Returns:
            True, as ``asyncio.Event.wait`` does.

        Raises:
            SyncTimeout: The timeout passed; the message says what the informer is doing, and the last error.
            ApiError: With ``fail_fast``, the answer that refused the first list.
            ConfigError: With ``fail_fast``, the client's configuration is invalid; or ``timeout`` is not a duration.
            StoppedError: The informer stopped first.
            WrongEventLoopError: The informer runs in another event loop.
        """
        require_timeout(timeout)
        self.require_own_loop()
        if self.has_synced():
            return True
        with anyio.move_on_after(timeout) as scope:
            refused = [self._wait_refused] if fail_fast else []
            with self._warn_if_unstarted():
                await run_until_first(self._wait_controllers, self.wait_stopped, *refused)
        if not self.has_synced():
            if scope.cancelled_caught:
                raise SyncTimeout(
                    f"{self.name}: not synced after {timeout:g} s: {self.state}", informer=self.name
                )
            raise StoppedError(f"{self.name} stopped before it had synced: {self.state}")
        return True

    async def wait_for(self, written: Any, timeout: float | None = None) -> T | None:
        """Wait until the cache shows what you wrote, or has reached a resourceVersion.

        For an object: until the cache has it at its version or a newer one, or has passed that version and does not
        have it (it was deleted since, or the selectors do not match it). For a resourceVersion: until the cache shows
        the collection at it. This sends no request and does not poll; it costs nothing while no caller waits.

        A write to this collection arrives at once, as an event. A version of another collection, or of an object that
        the selectors do not match, is reached with the next event of this collection; without events, with one of the
        server's next bookmarks, after a minute or two. A shorter ``timeout`` is too short for that.

        If the version is not a number, as with some aggregated servers, it waits until the cache has exactly that
        version. The cache may have passed it already, and there is no way to tell, so this needs a ``timeout``.

        Args:
            written: The object that the server returned (dict, model, Struct or KubeObject), or a resourceVersion.
            timeout: Seconds; None waits without limit.

        Returns:
            The object as it is cached now; None if it is not cached, and for a resourceVersion.

        Raises:
            VersionTimeout: The timeout passed; the error has the wanted and the reached version. The informer goes on.
            DecodeError: The object's state in the cache does not fit the object type.
            StoppedError: The informer stopped first.
            ConfigError: The resourceVersion is not valid, the namespace is not read here, ``timeout`` is not a
                duration, or it is None and the version is not a number.
            KeyFuncError: The object has no key.
            WrongEventLoopError: The informer runs in another event loop.
        """
        require_timeout(timeout)
        self.require_own_loop()
        goal = self._version_waits.goal_of(written)
        with self._warn_if_unstarted():
            await self._version_waits.wait(goal, timeout)
        return None if goal.key is None else self._indexer.get_by_key(goal.key)

    @property
    def version_waits(self) -> VersionWaits:
        """The waits for versions, for code that reads its own writes."""
        return self._version_waits

    @property
    def store(self) -> Store[T]:
        """The cache. In a process that was forked since the start it is the cache's state at the fork."""
        return self._indexer

    @property
    def indexer(self) -> Indexer[T]:
        """The cache, with its indexes."""
        return self._indexer

    @property
    def lister(self) -> Lister[T]:
        """A reader of the cache. In a process that was forked since the start, reading raises ForkedError."""
        return Lister(self._indexer, self.name)

    @property
    def is_optional(self) -> bool:
        """Whether the server may lack the collection: see ReflectorOptions."""
        return bool(self._options.get("optional"))

    @property
    def is_stopped(self) -> bool:
        """Whether the informer has run and ended, or was started before this process was forked."""
        return self._ended.is_set() or self.is_forked

    @property
    def last_sync_resource_version(self) -> str:
        """The version up to which every event was read; ``""`` before the first list of each namespace."""
        versions = [controller.last_sync_resource_version for controller in self._controllers]
        return "" if not versions or "" in versions else min(versions, key=number_of)

    @property
    def state(self) -> InformerState:
        """A snapshot: what the informer is doing, its last error, and how far its handlers are behind."""
        controllers = self._controllers
        return InformerState(
            name=self.name,
            synced=self.has_synced(),
            objects=len(self._indexer),
            undecodable=self._indexer.undecodable_count,
            undecodable_errors={
                obj.key: str(obj.error) for obj in islice(self._indexer.undecodable(), MOST_ERRORS)
            },
            queue_depth=sum(controller.queue_depth for controller in controllers),
            failed=sum(controller.failed for controller in controllers),
            reflectors=tuple(controller.state for controller in controllers),
            handlers=tuple(listener.state for listener in self._processor.listeners),
            leaving=self._processor.leaving,
            stopped=self.is_stopped,
            forked=self.is_forked,
        )

    def handle_deltas(
        self,
        deltas: Sequence[Delta],
        is_in_initial_list: bool = False,
        *,
        part: KnownObjects[Any] | None = None,
        in_turns: bool = False,
    ) -> Awaitable[None] | None:
        """Apply deltas to the store and notify the handlers. The process loop calls this, ``in_turns``.

        An update with equal resourceVersions (equal objects, for Structs without one) changed nothing: it is a
        resync, or an unchanged object of a relist. Only handlers whose resync is due get it.

        Args:
            deltas: In their order.
            is_in_initial_list: Whether they are of the initial list.
            part: The part of the store that a ReplacedAll or SyncAll is about; None for all of it.
            in_turns: Whether to wait while a handler with backlog "block" is full, and to let other tasks run between
                slices of long work.

        Returns:
            None if everything is done, as always without ``in_turns``; else what to await.

        Raises:
            RejectedObjectError: At the end: an object without a key, or an index function that raised.
        """
        if in_turns and self._processor.blocking and not self._processor.has_room():
            return self._handle_once_there_is_room(deltas, is_in_initial_list, part)
        steps = apply_in_steps(self._indexer, deltas, is_in_initial_list, part)
        if in_turns and deltas[0].type in (REPLACED_ALL, SYNC_ALL):
            return self._distributor.take_whole(steps)
        if self._distributor.take(steps, Budget().end if in_turns and len(deltas) > 1 else inf):
            return None
        return self._distributor.take_rest(steps)

    async def _handle_once_there_is_room(
        self, deltas: Sequence[Delta], is_in_initial_list: bool, part: KnownObjects[Any] | None
    ) -> None:
        await self._processor.wait_for_room()
        rest = self.handle_deltas(deltas, is_in_initial_list, part=part, in_turns=True)
        if rest is not None:
            await rest

    def _make_controller(self, namespace: str, list_watch: ListerWatcher) -> Controller:
        # With one source the whole store is its part, whatever namespaces its objects have.
        part = None if len(self.list_watches) == 1 else _Namespace(self._indexer, namespace)
        known = self._indexer if part is None else part
        queue = make_queue(self._queue, self._key_func, known, self._transform)
        self._queues.append(queue)
        options = self._options.copy()
        if len(self.list_watches) > 1 and ("name" in options or self._are_of_one_name):
            options["name"] = f"{self.name} in {namespace}"
        process = partial(self.handle_deltas, part=part, in_turns=True)
        config = Config(
            queue,
            list_watch,
            process,
            self.object_type,
            self._resyncs.check_period,
            partial(self._resyncs.should_resync, namespace),
            pack=self._pack,
            reflector_options=options,
            process_batch=process,
        )
        if self._tracer is not None:
            self._tracer.attach(config)
        return Controller(config)

    def _require_own_loop_once_started(self) -> None:
        if self._started.is_set():
            self.require_own_loop()

    @contextmanager
    def _warn_if_unstarted(self) -> Iterator[None]:
        """Warn during a wait if the informer is not started."""
        if self._started.is_set():
            yield
            return
        warning = asyncio.get_running_loop().call_later(NOT_STARTED_WARNING_DELAY, self._warn_unstarted)
        try:
            yield
        finally:
            warning.cancel()

    def _warn_unstarted(self) -> None:
        if not self._started.is_set():
            logger.warning(
                "%s is not started, and a task waits for it: enter it (async with), or await its run(); an informer "
                "of a factory or manager starts with the factory or manager",
                self.name,
            )

    async def _wait_controllers(self) -> None:
        await self._started.wait()
        for queue in self._queues:
            await queue.wait_synced()

    async def _wait_refused(self) -> None:
        await self._started.wait()
        await run_until_first(*(controller.wait_refused for controller in self._controllers))

    async def _end_handlers(self, processor: asyncio.Task[None]) -> None:
        with call_every(CANCEL_GRACE, self._log_stubborn_handlers):
            await finish(processor)

    def _log_stubborn_handlers(self) -> None:
        handlers = sorted(
            f"{listener.state.name} at {listener.state.handling}" for listener in self._processor.running
        )
        logger.error(
            "%s: waiting for handlers that ignore being cancelled: %s", self.name, ", ".join(handlers)
        )

    def _record_end(self, task: object = None) -> None:
        self._ended.set()
        self._version_waits.stop()

    async def wait_stopped(self) -> None:
        """Wait for ``is_stopped``.

        Raises:
            WrongEventLoopError: The informer runs in another event loop.
        """
        self.require_own_loop()
        await self._ended.wait()


def name_of(list_watches: Mapping[str, ListerWatcher]) -> str:
    """Return the default name of an informer."""
    first, *others = dict.fromkeys(map(_description, list_watches.values()))
    if len(others) >= NAMED:
        return f"{first} and {len(others)} other namespaces"
    return ", ".join((first, *others))


def _description(list_watch: ListerWatcher) -> str:
    return getattr(list_watch, "description", "") or "informer"


def _listener_of(registration: Registration) -> ProcessorListener[Any]:
    if not isinstance(registration, Registration):
        raise ConfigError(
            f"a handler is removed by the Registration that add_event_handler returned, not by {registration!r}"
        )
    return registration._listener


class _Namespace:
    """The known objects of one namespace, to compare with a Replace of that namespace."""

    def __init__(self, indexer: Indexer[Any], namespace: str) -> None:
        self._indexer = indexer
        self._namespace = namespace

    def list_keys(self) -> Sequence[str]:
        keys = list(self._indexer.index_named(NAMESPACE_INDEX).keys(self._namespace))
        return [*keys, *(obj.key for obj in self._indexer.undecodable() if obj.namespace == self._namespace)]

    def get_by_key(self, key: str) -> Any:
        return self._indexer.find_any(key)


async def _outcome(task: asyncio.Task[None]) -> None:
    """Wait for a task without cancelling it, and raise its error."""
    await asyncio.wait({task})
    task.result()


def _now() -> float | None:
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:  # no loop yet: the period counts from the start
        return None
