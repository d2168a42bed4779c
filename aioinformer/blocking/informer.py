"""Informer: an informer for code without an event loop."""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from typing import Any, Generic, TypeVar
from weakref import WeakSet

from .._core.callables import require_plain
from .._core.forks import forked_error
from ..errors import ConfigError
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
from ..informer import InformerState, SharedIndexInformer
from ..processor import BACKLOG_LIMIT, Backlog
from ..protocols import Transformer
from ..store import Indexer, Indexers, Lister
from ..watchtools import InformerEvents
from .events import Events
from .handlers import ThreadHandler
from .loop_thread import LoopThread
from .registration import Registration

T = TypeVar("T")


class Informer(Generic[T]):
    """A SharedIndexInformer on the event loop of a Factory. ``Factory.for_resource`` returns one.

    Any thread may call its methods, but not code that runs on that event loop (see Factory). Their arguments, results
    and errors are those of SharedIndexInformer's; what waits there, blocks here.

    Reads (``lister``, ``indexer``, ``state``, ``has_synced()``) do not wait for the event loop. The cache is made of
    dicts that the event loop's thread alone changes, in single steps of the interpreter: a reader finds an object as it
    was before a change or after it, and code that iterates over a dict copies it first, in one such step. A reader may
    see an index a moment before or after the objects.

    Args:
        informer: The informer.
        loop: The factory's event loop.

    Attributes:
        informer: The informer itself, for code that runs on the event loop.
    """

    def __init__(self, informer: SharedIndexInformer[T], loop: LoopThread) -> None:
        self.informer = informer
        self._loop = loop
        self._executors: WeakSet[ThreadPoolExecutor] = WeakSet()

    def __repr__(self) -> str:
        return f"<blocking Informer {self.name}>"

    @property
    def name(self) -> str:
        """The informer's name."""
        return self.informer.name

    @property
    def lister(self) -> Lister[T]:
        """A reader of the cache, for any thread. In a forked process, reading raises ForkedError."""
        return self.informer.lister

    @property
    def indexer(self) -> Indexer[T]:
        """The cache with its indexes, for any thread to read.

        Raises:
            ForkedError: It was started before this process was forked: nothing keeps this copy current.
        """
        if self.informer.is_forked:
            raise forked_error(repr(self))
        return self.informer.indexer

    @property
    def state(self) -> InformerState:
        """A snapshot: what the informer is doing, its last error, and how far its handlers are behind."""
        return self.informer.state

    @property
    def is_stopped(self) -> bool:
        """Whether the informer has run and ended, or was started before this process was forked."""
        return self.informer.is_stopped

    @property
    def last_sync_resource_version(self) -> str:
        """The version up to which every event was read."""
        return self.informer.last_sync_resource_version

    def has_synced(self) -> bool:
        """Return whether every object of the first list is in the cache; False in a process that was forked since."""
        return self.informer.has_synced()

    def wait_synced(self, timeout: float | None = None, *, fail_fast: bool = False) -> bool:
        """Wait for ``has_synced``; see ``SharedIndexInformer.wait_synced``."""
        return self._loop.call(partial(self.informer.wait_synced, timeout, fail_fast=fail_fast))

    def wait_for(self, written: Any, timeout: float | None = None) -> T | None:
        """Wait until the cache shows what you wrote, or has reached a resourceVersion.

        See ``SharedIndexInformer.wait_for``.
        """
        return self._loop.call(self.informer.wait_for, written, timeout)

    def events(self, timeout: float | None = None, **options: Any) -> Events[T]:
        """Return the informer's notifications as an iterator, which starts with the cached objects.

        Args:
            timeout: Seconds without an event after which an iteration ends; None waits without limit.
            **options: As for ``InformerEvents``.
        """
        return Events(partial(InformerEvents, self.informer, **options), self._loop, timeout)

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
        executor: Executor | None = None,
    ) -> Registration:
        """Call a handler for every change from now on, first with an add for each stored object.

        Its calls run in a thread, one call after the other, and may block: that delays no other handler, and not the
        cache. Shutting the factory down waits for a running call.

        Args:
            handler: The handler object, with plain methods; or functions as keywords, as for SharedIndexInformer.
            resync_period: As for SharedIndexInformer, and so are the other arguments.
            on_add: ``on_add(obj, is_in_initial_list)``.
            on_update: ``on_update(old, new)``.
            on_delete: ``on_delete(obj)``.
            on_delete_object: ``on_delete_object(obj)``.
            on_undecodable: ``on_undecodable(obj)``.
            backlog: What to do with notifications that the handler is too slow for.
            backlog_limit: Notifications that may wait, for "block" and "drop_oldest".
            name: The handler's name in logs, states and metrics.
            executor: A pool of threads to call it in, which several handlers may share; it stays yours to shut down.
                None for a thread of its own.

        Raises:
            ConfigError: A function is async; or as for SharedIndexInformer.
            StoppedError: The informer has stopped.
            ForkedError: It was started before this process was forked.
        """
        functions = {
            "on_add": on_add, "on_update": on_update, "on_delete": on_delete, "on_delete_object": on_delete_object,
            "on_undecodable": on_undecodable,
        }  # fmt: skip
        given = {name: function for name, function in functions.items() if function is not None}
        for argument, function in given.items():
            require_plain(f"{argument}, which is called in a thread,", function)
        if handler is None:
            if not given:
                raise ConfigError("add_event_handler needs a handler, or a function such as on_add=")
            handler = ResourceEventHandlerFuncs(
                on_add, on_update, on_delete, on_delete_object, on_undecodable
            )
        elif given:
            raise ConfigError(f"pass a handler or functions, not both: {handler_name(handler)} is a handler")
        registration = self._loop.call_if_running(
            partial(
                self.informer.add_event_handler,
                ThreadHandler(handler, executor or self._own_thread()),
                resync_period,
                backlog=backlog,
                backlog_limit=backlog_limit,
                name=name,
            )
        )
        return Registration(registration, self._loop)

    def remove_event_handler(self, registration: Registration) -> None:
        """Stop calling a handler. Its waiting notifications are dropped; a running call goes on.

        Raises:
            ConfigError: The argument is not a registration.
        """
        self._loop.call_if_running(self.informer.remove_event_handler, _registration_of(registration))

    def shut_down_event_handler(self, registration: Registration) -> None:
        """Remove a handler, and wait until its running call has ended.

        Raises:
            InformerError: Called from inside that handler, which would wait for itself.
            ConfigError: The argument is not a registration.
        """
        self._loop.call(self.informer.shut_down_event_handler, _registration_of(registration))

    def add_indexers(self, indexers: Indexers[T]) -> None:
        """Add indexes, at any time. Their functions run on the event loop; see ``SharedIndexInformer.add_indexers``."""
        if self._loop.is_running():
            self._loop.call(self.informer.indexer.add_indexers_in_turns, indexers)
        else:
            self.informer.add_indexers(indexers)

    def set_transform(self, transform: Transformer[T]) -> None:
        """Set a function that changes every object before it is queued. It runs on the event loop.

        Call it before the factory starts; see ``SharedIndexInformer.set_transform``.
        """
        self.informer.set_transform(transform)

    def end_threads(self) -> None:
        """End the threads of its handlers, once the informer has ended."""
        for executor in list(self._executors):
            executor.shutdown(wait=False)

    def _own_thread(self) -> Executor:
        executor = ThreadPoolExecutor(1, f"aioinformer {self.name}")
        self._executors.add(executor)
        return executor


def _registration_of(registration: Registration) -> Any:
    if not isinstance(registration, Registration):
        raise ConfigError(
            f"a handler is removed by the Registration that add_event_handler returned, not by {registration!r}"
        )
    return registration._registration
