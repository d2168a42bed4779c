"""SharedIndexInformer: one collection, one cache, many handlers (client-go ``shared_informer.go``)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Generic, TypeVar, Unpack

import anyio

from .._core.checks import require_text, require_timeout
from .._core.tasks import (
    NOT_STARTED_WARNING_DELAY,
    Running,
    finish,
    run_until_first,
)
from .._core.timers import call_every
from ..controller import Config, Controller, QueueName, make_queue, require_queue
from ..deltas import Delta
from ..errors import ConfigError, InformerError, StoppedError, SyncTimeout
from ..handlers import ResourceEventHandler, handler_name, require_plain
from ..notifications import AddNotification
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
from .registration import Registration
from .resyncs import Resyncs
from .state import InformerState, apart
from .version_waits import VersionWaits

logger = logging.getLogger(__name__)

T = TypeVar("T")

EVERYWHERE = ""

NAMED = 3
"""Namespaces that an informer's name may tell one by one: each metric has it, also those of each namespace."""

CANCEL_GRACE = 10.0
"""Seconds that a handler's call may take to end once it was cancelled, before the log names it; and again each time."""


class SharedIndexInformer(Running, Generic[T]):
    """A live, indexed copy of a collection, and handlers that are told of every change.

    An async context manager; or ``await run()``. It runs once. Leaving stops reading first, then the handlers;
    notifications that still wait are dropped. What it has may be read in any thread; all else is for its event loop's.

    Args:
        list_watch: Where to read; or one for each namespace, by its name, which together are one collection.
        object_type: What an object is: KubeObject, dict, a ``msgspec.Struct`` or a model class.
        default_resync_period: Seconds between resyncs for handlers that do not say; 0 for none, of any handler.
        indexers: Index functions, or paths of fields such as ``"spec.nodeName"``, by name.
        compress: Whether KubeObjects are kept compressed, and how.
        queue: "delta" for a DeltaFIFO, "real" for a RealFIFO.
        key_func: Gives an object's key.
        mutation_detector: Finds handlers that change cached objects; ``run`` then raises CacheMutatedError.
        tracer: Stamps every watch event on its way to the handlers. One is for one informer.
        **options: See ReflectorOptions.

    Guarantees:
        The store is changed before a handler is told. Each handler is told of everything since it was added, in
        the store's order, one call after the other; a slow or failing one delays no other (unless its ``backlog``
        says otherwise). ``has_synced`` turns true once the last object of the first list was processed, and stays
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
        codec_for(object_type)  # a type that cannot be cached is found out here
        list_watches = (
            list_watch
            if isinstance(list_watch, Mapping)
            else {namespace_read(list_watch, object_type): list_watch}
        )
        self.list_watches = {namespace: lister_watcher_of(each) for namespace, each in list_watches.items()}
        if not self.list_watches or (EVERYWHERE in self.list_watches and len(self.list_watches) > 1):
            raise ConfigError(
                f"an informer reads everything or some namespaces, not {list(self.list_watches)}"
            )
        if len(self.list_watches) > 1 and lacks_namespace(object_type):
            raise ConfigError(
                f"objects of {len(self.list_watches)} namespaces need a field metadata.namespace, which "
                f"{object_type.__name__} has not"
            )
        self._queue: QueueName = queue
        self.object_type = object_type
        self._key_func = key_func
        self._mutation_detector = mutation_detector
        check_options(options)
        self._options = options
        self._transform: Transformer[T] | None = None
        self.name = options.get("name") or name_of(self.list_watches)
        descriptions = list(map(_description, self.list_watches.values()))
        self._are_of_one_name = len(set(descriptions)) < len(descriptions)  # asked for each of them
        self._compressor = Compressor.of(compress, object_type)
        self._pack = None if self._compressor is None else self._compressor.pack
        if len(self.list_watches) > 1:  # whose parts of the store are told apart by it
            indexers = {NAMESPACE_INDEX: meta_namespace_index_func, **(indexers or {})}
            if indexers[NAMESPACE_INDEX] is not meta_namespace_index_func:
                raise ConfigError(
                    f"an informer of several namespaces has an index {NAMESPACE_INDEX!r} of its own: rename yours"
                )
        self._indexer: Indexer[T] = Indexer(key_func, indexers, pack=self._pack, object_type=object_type)
        if mutation_detector is not None:
            mutation_detector.name = mutation_detector.name or self.name
        if tracer is not None and not isinstance(tracer, Tracer):
            raise ConfigError(f"tracer must be a Tracer of its own, Tracer(StageTimes()), not {tracer!r}")
        self._tracer = tracer
        self._processor = Processor() if tracer is None else tracer.processor(self.name)
        self._resyncs = Resyncs(self.name, default_resync_period, self._processor)
        self._version_waits = VersionWaits(self.name, self._indexer, self.list_watches, lambda: self.state)
        self._queues: list[Queue] = []
        self._controllers: list[Controller] = []
        self._started = asyncio.Event()
        self._ended = asyncio.Event()

    def __repr__(self) -> str:
        return f"<SharedIndexInformer {self.name}>"

    # -- setting up ----------------------------------------------------------------------------------------

    def add_event_handler(
        self,
        handler: ResourceEventHandler[T],
        resync_period: float | None = None,
        *,
        backlog: Backlog = "unbounded",
        backlog_limit: int = BACKLOG_LIMIT,
        name: str = "",
    ) -> Registration:
        """Have a handler told of every change. At any time: what is in the store comes first, as adds.

        Args:
            handler: Who is told.
            resync_period: Seconds after which it is told of every object again; 0 for never, None for the
                informer's default. At least a second; looked at each time that the informer's own check period
                passes, so that it comes out rounded up to a multiple of that. Before the start a shorter period
                shortens the check period; afterwards it is raised to it. Ignored, with a warning, by an informer
                whose default is 0: it does not resync.
            backlog: What to do with notifications that the handler is too slow for: keep all ("unbounded"), let
                the store wait ("block"), keep what is newest of each object ("coalesce"), or lose the oldest
                ("drop_oldest").
            backlog_limit: Notifications that may wait, for "block" and "drop_oldest". What one batch of the queue
                brings, and the adds of what is in the store already, may exceed it for "block".
            name: What logs, states and metrics call it; ``""`` for its repr, or else its class.

        Raises:
            StoppedError: The informer has stopped.
            ConfigError: It is no handler, or there is no such backlog.
            WrongEventLoopError: The informer runs in another event loop or thread.
        """
        if self.is_stopped:
            raise StoppedError(
                f"{self.name}: {handler_name(handler)} was not added to shared informer because it has stopped already"
            )
        self._require_own_loop_once_started()
        require_text("name", name)
        name = apart(name or handler_name(handler), {each.name for each in self._processor.listeners})
        listener = ProcessorListener(
            handler,
            upstream_synced=self.has_synced,
            name=name,
            backlog=backlog,
            backlog_limit=backlog_limit,
            key_func=self._indexer.key_of,
        )
        # Last, as it may change the period of all: what is refused has changed nothing.
        periods = self._resyncs.agree_on(resync_period, started=self._started.is_set())
        listener.requested_resync_period, listener.resync_period = periods
        if (now := _now()) is not None:
            listener.determine_next_resync(now)
        # Nothing else runs between reading the store and the first notification: none is missed, none comes twice.
        listener.add_all([AddNotification(obj, True) for obj in self._indexer.list()])
        self._processor.add_listener(listener)
        return Registration(listener, self)

    def remove_event_handler(self, registration: Registration) -> None:
        """Stop telling a handler; what waits for it is dropped, a call that is running goes on.

        A registration of another informer, or one removed before, is left alone. A call that never ends keeps its
        task until the informer ends, and counts in ``state.leaving``: ``shut_down_event_handler`` can cancel it.

        Raises:
            ConfigError: It is no registration.
            WrongEventLoopError: The informer runs in another event loop or thread.
        """
        listener = _listener_of(registration)
        if not self.is_stopped:
            self._require_own_loop_once_started()
        self._processor.remove_listener(listener)

    async def shut_down_event_handler(self, registration: Registration, *, cancel: bool = False) -> None:
        """Remove a handler, and wait until the call that is running has ended.

        Args:
            registration: What ``add_event_handler`` gave.
            cancel: Whether that call is cancelled, where it would wait for what will not come: a queue that nobody
                empties any more.

        Cancellation: the handler is removed all the same.

        Raises:
            InformerError: Called from inside that handler, or in a task that its call has begun.
            ConfigError: It is no registration.
            WrongEventLoopError: The informer runs in another event loop or thread.
        """
        listener = _listener_of(registration)
        if listener.is_inside_handler():
            raise InformerError(
                f"{registration!r}: shut down from inside itself, which it would wait for; "
                "remove_event_handler does not wait"
            )
        self.remove_event_handler(registration)
        if registration._informer is self:
            if cancel:
                listener.cancel_call()
            await listener.wait_ended()

    def add_indexers(self, indexers: Indexers[T]) -> None:
        """Add indexes, at any time; of a full cache ``indexer.add_indexers_in_turns`` does not hold the event loop.

        Raises:
            StoppedError: The informer has stopped.
            IndexerConflictError: A name is taken.
            ConfigError: A path cannot be read, or is no field of the object type, or a function is no plain one of an
                object.
            WrongEventLoopError: The informer runs in another event loop or thread.
        """
        if self.is_stopped:
            raise StoppedError(f"{self.name}: indexers were not added because it has stopped already")
        self._require_own_loop_once_started()
        self._indexer.add_indexers(indexers)

    def set_transform(self, transform: Transformer[T]) -> None:
        """Have every object changed before it is queued, such as stripped of what nobody reads.

        However an object came, it goes through once. What the function returns must have the object's name and
        namespace: the key of both must be the same. An object that it raises for, or returns None or something of
        another key for, is dropped: what the cache has of it stays, the log says so, and ``rejected`` of the
        reflector's state counts it. Its deletion is not lost.

        Raises:
            AlreadyStartedError: The informer has started.
            ConfigError: It is no plain function.
        """
        self.require_not_started()
        require_plain("transform", transform)
        self._transform = transform

    def set_watch_error_handler(self, handler: WatchErrorHandler) -> None:
        """Have ``handler(reflector, error)`` told of every error of a list or watch, instead of the log.

        Raises:
            AlreadyStartedError: The informer has started.
            ConfigError: It is no function of these.
        """
        self.require_not_started()
        require_watch_error_handler("watch_error_handler", handler)
        self._options["watch_error_handler"] = handler

    # -- running -------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Read, store and tell until cancelled.

        Raises:
            AlreadyStartedError: It was started before.
            CacheMutatedError: The mutation detector found a changed object.
        """
        self.record_begin()
        self._controllers = [
            self._make_controller(namespace, each) for namespace, each in self.list_watches.items()
        ]
        self._started.set()
        self._version_waits.start(dict(zip(self.list_watches, self._controllers, strict=True)))
        self._processor.count_resyncs_from(asyncio.get_running_loop().time())
        processor = asyncio.create_task(self._processor.run(), name=f"{self!r} processor")
        try:
            parts: list[Callable[[], Awaitable[object]]] = [each.run for each in self._controllers]
            if self._mutation_detector is not None:
                parts.append(self._mutation_detector.run)
            if self._compressor is not None:
                parts.append(partial(self._compressor.run, self._indexer, self._wait_controllers))
            if self._resyncs.are_wanted:
                parts.append(partial(self._resyncs.run, self._queues))
            await run_until_first(partial(_outcome, processor), *parts)
        except Exception:
            self._record_end()
            with suppress(asyncio.CancelledError):  # whoever leaves now is to see the failure
                await self._end_handlers(processor)
            raise
        finally:
            self._record_end()
            await self._end_handlers(processor)  # strictly after the controllers

    async def __aexit__(self, *exc_info: Any) -> None:
        self.require_outside_handlers()
        await super().__aexit__(*exc_info)

    def require_outside_handlers(self) -> None:
        """Find out that somebody is about to wait for their own end.

        Raises:
            InformerError: Called from inside one of the informer's handlers, or in a task that its call has begun.
            WrongEventLoopError: The informer runs in another event loop or thread.
        """
        self.require_own_loop()
        if self._processor.is_inside_handler():
            raise InformerError(
                f"{self.name}: stopped from inside its own handler, which it would wait for; "
                "set an event there, and leave outside"
            )

    def has_synced(self) -> bool:
        """Whether everything of the first list is in the store."""
        return bool(self._controllers) and all(controller.has_synced() for controller in self._controllers)

    async def wait_synced(self, timeout: float | None = None, *, fail_fast: bool = False) -> bool:
        """Wait for ``has_synced``.

        Args:
            timeout: Seconds; None waits for ever. The log names an informer that nobody has started for a while.
            fail_fast: Whether to end at once where a first list is refused for what trying again does not mend: by
                400 (such as a bad selector), 401, 403, 404 or 405. The informer goes on trying all the same.

        Returns:
            True, as ``asyncio.Event.wait`` does.

        Raises:
            SyncTimeout: It took longer; the message says what the informer is doing and what went wrong last.
            ApiError: With ``fail_fast``, the answer that refused the first list.
            ConfigError: With ``fail_fast``, the client's configuration cannot work; or ``timeout`` is no duration.
            StoppedError: The informer stopped first.
            WrongEventLoopError: The informer runs in another event loop.
        """
        require_timeout(timeout)
        self.require_own_loop()
        if self.has_synced():
            return True
        with anyio.move_on_after(timeout) as scope:
            refused = [self._wait_refused] if fail_fast else []
            with self._needed():
                await run_until_first(self._wait_controllers, self.wait_stopped, *refused)
        if not self.has_synced():
            if scope.cancelled_caught:
                raise SyncTimeout(
                    f"{self.name}: not synced after {timeout:g} s: {self.state}", informer=self.name
                )
            raise StoppedError(f"{self.name} stopped before it had synced: {self.state}")
        return True

    async def wait_for(self, written: Any, timeout: float | None = None) -> T | None:
        """Wait until the cache shows what you wrote, or a resourceVersion.

        An object is waited for until the cache has it at its version or a newer one, or is past that version and
        has it no more: it was deleted since, or the selectors do not pick it. A resourceVersion is waited for until
        the cache shows the collection at it. Nothing is asked of the server and nothing is polled: while nobody
        waits this costs nothing.

        What you wrote to this collection arrives as an event, at once. A version of something else, and an object
        that is not picked, is known of with the next event of this collection; where nothing happens, with one of
        the server's next bookmarks, which takes a minute or two. A shorter ``timeout`` is too short there.

        An object whose version is no number, as of some aggregated servers, is waited for until the cache has exactly
        that version. The cache may be past it already, which nothing tells, so this needs a ``timeout``.

        Args:
            written: The object as the server returned it (dict, model, Struct or KubeObject); or a resourceVersion.
            timeout: Seconds; None waits for ever.

        Returns:
            The object as it is cached now; None if it is not, and for a resourceVersion.

        Raises:
            VersionTimeout: It took longer; it names what was wanted and what was reached. The informer goes on.
            StoppedError: The informer stopped first.
            ConfigError: No resourceVersion that the server gave, a namespace that is not read here, ``timeout`` is
                no duration, or None where the version is no number.
            KeyFuncError: The object has no key.
            WrongEventLoopError: The informer runs in another event loop.
        """
        require_timeout(timeout)
        self.require_own_loop()
        goal = self._version_waits.goal_of(written)
        with self._needed():
            await self._version_waits.wait(goal, timeout)
        return None if goal.key is None else self._indexer.get_by_key(goal.key)

    @property
    def version_waits(self) -> VersionWaits:
        """Who waits for which version; for what reads its own writes."""
        return self._version_waits

    @property
    def store(self) -> Store[T]:
        """The cache."""
        return self._indexer

    @property
    def indexer(self) -> Indexer[T]:
        """The cache, with its indexes."""
        return self._indexer

    @property
    def lister(self) -> Lister[T]:
        """Reads the cache."""
        return Lister(self._indexer, self.name)

    @property
    def is_stopped(self) -> bool:
        """Whether it has run and ended."""
        return self._ended.is_set()

    @property
    def last_sync_resource_version(self) -> str:
        """The version up to which everything was read; ``""`` before the first list, or with several namespaces
        before each one's."""
        versions = [controller.last_sync_resource_version for controller in self._controllers]
        return "" if not versions or "" in versions else min(versions, key=number_of)

    @property
    def state(self) -> InformerState:
        """What it is doing, what went wrong last, and how far behind its handlers are."""
        controllers = self._controllers
        return InformerState(
            name=self.name,
            synced=self.has_synced(),
            objects=len(self._indexer),
            queue_depth=sum(controller.queue_depth for controller in controllers),
            failed=sum(controller.failed for controller in controllers),
            reflectors=tuple(controller.state for controller in controllers),
            handlers=tuple(listener.state for listener in self._processor.listeners),
            leaving=self._processor.leaving,
            stopped=self.is_stopped,
        )

    def handle_deltas(self, deltas: Sequence[Delta], is_in_initial_list: bool = False) -> None:
        """Store deltas and tell the handlers, at once.

        An update whose old and new resourceVersion are equal (the objects, if they are Structs without it) is no news:
        a resync, or an unchanged object of a relist. It goes to handlers whose resync is due, and to no other.

        Raises:
            RejectedObjectError: After all else was done: an object without a key, or an index that failed.
        """
        self._make_distributor(None).apply(deltas, is_in_initial_list)

    def _make_distributor(self, known: KnownObjects[Any] | None) -> Distributor:
        return Distributor(
            self._indexer, self._processor, self._mutation_detector, self._version_waits.wake, known
        )

    def _make_controller(self, namespace: str, list_watch: ListerWatcher) -> Controller:
        # Of one collection alone all that is stored comes from it, whatever its objects say of their namespace.
        part = None if len(self.list_watches) == 1 else _Namespace(self._indexer, namespace)
        known = self._indexer if part is None else part
        queue = make_queue(self._queue, self._key_func, known, self._transform)
        self._queues.append(queue)
        options = self._options.copy()
        if len(self.list_watches) > 1 and ("name" in options or self._are_of_one_name):
            options["name"] = f"{self.name} in {namespace}"
        distributor = self._make_distributor(part)
        config = Config(
            queue,
            list_watch,
            distributor.process,
            self.object_type,
            pack=self._pack,
            reflector_options=options,
            process_batch=distributor.process,
        )
        if self._tracer is not None:
            self._tracer.attach(config)
        return Controller(config)

    def _require_own_loop_once_started(self) -> None:
        if self._started.is_set():
            self.require_own_loop()

    @contextmanager
    def _needed(self) -> Iterator[None]:
        """Around a wait for what comes only once somebody has started this."""
        if self._started.is_set():
            yield
            return
        impatience = asyncio.get_running_loop().call_later(NOT_STARTED_WARNING_DELAY, self._name_unstarted)
        try:
            yield
        finally:
            impatience.cancel()

    def _name_unstarted(self) -> None:
        if not self._started.is_set():
            logger.warning(
                "%s is waited for, and nobody has started it: enter it (async with), or await its run(); what "
                "for_resource of a factory or manager gives starts with that",
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
        with call_every(CANCEL_GRACE, self._tell_of_stubborn_handlers):
            await finish(processor)

    def _tell_of_stubborn_handlers(self) -> None:
        handlers = sorted(f"{each.state.name} at {each.state.handling}" for each in self._processor.running)
        logger.error("%s: waits for handlers that ignore being cancelled: %s", self.name, ", ".join(handlers))

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
    """What an informer is called that is given no name."""
    first, *others = dict.fromkeys(map(_description, list_watches.values()))
    if len(others) >= NAMED:
        return f"{first} and {len(others)} other namespaces"
    return ", ".join((first, *others))


def _description(list_watch: ListerWatcher) -> str:
    return getattr(list_watch, "description", "") or "informer"


def _listener_of(registration: Registration) -> ProcessorListener[Any]:
    if not isinstance(registration, Registration):
        raise ConfigError(
            f"a handler goes by what add_event_handler returned, a Registration, not {registration!r}"
        )
    return registration._listener


class _Namespace:
    """The known objects of one namespace: what a Replace of that namespace is compared with."""

    def __init__(self, indexer: Indexer[Any], namespace: str) -> None:
        self._indexer = indexer
        self._namespace = namespace

    def list_keys(self) -> Sequence[str]:
        return list(self._indexer.index_named(NAMESPACE_INDEX).keys(self._namespace))

    def get_by_key(self, key: str) -> Any:
        return self._indexer.get_by_key(key)


async def _outcome(task: asyncio.Task[None]) -> None:
    """End as a task ends, without ending it."""
    await asyncio.wait({task})
    task.result()


def _now() -> float | None:
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:  # added before there is a loop: its period counts from the start
        return None
