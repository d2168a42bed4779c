"""What makes a controller reconcile: changes of objects (controller-runtime ``pkg/handler``)."""

from __future__ import annotations

import asyncio
import inspect
import logging
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from .._core.failure_log import FailureLog
from .._core.tasks import is_own_cancellation, raise_if_cancelled
from ..deltas import DeletedFinalStateUnknown
from ..errors import ConfigError, said, shortened
from ..handlers import ResourceEventHandler, callable_name, is_of_kind, require_arguments
from ..informer import Registration, SharedIndexInformer
from ..listwatch.resource_list_watch import ResourceListWatch
from ..objects.keys import (
    is_deleting,
    key_and_version,
    namespace_of,
    type_of,
)
from ..objects.kube_object import OwnerReference
from ..workqueue import WorkQueue
from .metadata import OWNER_REFERENCES, owners_of, require_fields
from .predicates import Change, PredicateFunc, is_made_anew, reads_of, require_predicate
from .protocols import WrittenResource
from .requests import Request

logger = logging.getLogger(__name__)

T = TypeVar("T")

LOW_PRIORITY = -100
"""That of the initial list and of resyncs: fresh changes go before them (controller-runtime ``LowPriority``)."""
MOST_AWAITED = 4096
"""Owners that are remembered until they are cached; most never are, as they are gone, or were never there."""
LONGEST_AWAITED = 1024
"""Characters that such an owner's key, group and kind may have: no object has as many, but a reference may."""
MOST_GONE = 4096
"""Deletions that are queued while nobody works: a replica may stand by for weeks, and the leader has seen to them."""

Requests = Request[Any] | Iterable[Request[Any]] | None
MapFunc = Callable[[T], Requests | Awaitable[Requests]]
"""From an object to what is to be reconciled because of it; plain or async."""

Cached = SharedIndexInformer[Any] | WrittenResource[Any]


def informer_of(cached: Cached) -> SharedIndexInformer[Any]:
    """The informer itself, or that of a CachedResource.

    Raises:
        ConfigError: It is neither.
    """
    informer = cached if isinstance(cached, SharedIndexInformer) else getattr(cached, "informer", None)
    if not isinstance(informer, SharedIndexInformer):
        raise ConfigError(f"an informer or a CachedResource is needed, not {cached!r}")
    return informer


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerState:
    """A snapshot of a trigger.

    Attributes:
        name: What it is about.
        seen: Changes, or requests, that came.
        passed: Those that the predicate has let pass; of a source, those that are requests.
        failed: Predicates, map functions and sources that raised.
        last_error: What was raised last.
        running: Whether more can come.
        synced: Whether its first list has gone through it; of a source, which has none, True.
    """

    name: str
    seen: int
    passed: int
    failed: int
    last_error: BaseException | None
    running: bool
    synced: bool

    def __str__(self) -> str:
        text = f"{self.name}: {self.seen} seen, {self.passed} passed"
        if self.failed:
            text += f", {self.failed} failed, last: {self.last_error!r}"
        return text if self.running else f"{text}; ended"


class Trigger(ABC):
    """Puts keys into a controller's queue."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.seen = 0
        self.passed = 0
        self.failed = 0
        self.last_error: BaseException | None = None
        self._failures = FailureLog(name, logger)
        self.queue: WorkQueue[str]

    @property
    @abstractmethod
    def is_running(self) -> bool:
        """Whether more can come."""

    @property
    def is_synced(self) -> bool:
        """Whether its first list has gone through it."""
        return True

    @property
    def state(self) -> TriggerState:
        """What it has done."""
        return TriggerState(
            name=self.name,
            seen=self.seen,
            passed=self.passed,
            failed=self.failed,
            last_error=self.last_error,
            running=self.is_running,
            synced=self.is_synced,
        )

    def record_failure(self, what: str, error: BaseException) -> None:
        """Log and count what somebody's function raised; the controller goes on."""
        self.failed += 1
        self.last_error = error
        self._failures.log(error, "%s: %s failed: %s", self.name, what, said(error), traceback=error)


class InformerTrigger(Trigger, ResourceEventHandler[Any]):
    """Changes of a collection.

    Args:
        informer: Of the collection.
        predicate: Which changes count; None for all. One that raises lets the change pass.
    """

    def __init__(
        self, name: str, informer: SharedIndexInformer[Any], predicate: PredicateFunc[Any] | None
    ) -> None:
        super().__init__(name)
        if predicate is not None:
            require_predicate("predicate", predicate)
            require_fields(informer.object_type, reads_of(predicate), f"the predicate {predicate!r}")
        self.informer = informer
        self._predicate = predicate
        self.primary: Primary | None = None
        self.registration: Registration | None = None

    def __repr__(self) -> str:
        return self.name

    def bind(self, queue: WorkQueue[str], primary: Primary) -> None:
        """Say whose it is: the queue to fill, and the trigger of what is reconciled.

        Raises:
            ConfigError: It is another controller's.
        """
        if self.primary is not None:
            raise ConfigError(f"{self.name}: it belongs to another controller; make one for each")
        self.queue, self.primary = queue, primary

    def start(self) -> None:
        """Begin to listen."""
        self.registration = self.informer.add_event_handler(self)

    async def stop(self, *, cancel: bool) -> None:
        """Listen no more, and wait until the call that is running has ended.

        Args:
            cancel: Whether that is cancelled here. Of an informer that ends as well it would be so twice.
        """
        registration, self.registration = self.registration, None
        if registration is not None:
            await self.informer.shut_down_event_handler(registration, cancel=cancel)

    @property
    def is_running(self) -> bool:
        return self.registration is not None and not self.informer.is_stopped

    @property
    def is_synced(self) -> bool:
        return self.registration is not None and self.registration.has_synced()

    def on_add(self, obj: Any, is_in_initial_list: bool) -> object:
        return self._note(Change(None, obj, is_in_initial_list))

    def on_update(self, old: Any, new: Any) -> object:
        return self._note(Change(old, new))

    def on_delete(self, obj: Any) -> object:
        if isinstance(obj, DeletedFinalStateUnknown):
            return self.on_lost(obj.key) if obj.obj is None else self._note(Change(obj.obj, None))
        return self._note(Change(obj, None))

    def on_lost(self, key: str) -> object:
        """An object is gone, and nobody knows what it was."""
        return None

    def _note(self, change: Change[Any]) -> object:
        self.seen += 1
        if self._predicate is not None and not self._passes(self._predicate, change):
            return None
        self.passed += 1
        return self.enqueue(change, LOW_PRIORITY if change.is_in_initial_list or change.is_sync else 0)

    def _passes(self, predicate: PredicateFunc[Any], change: Change[Any]) -> bool:
        try:
            return bool(predicate(change))
        except Exception as error:
            key, version = key_and_version(change.obj)
            self.record_failure(f"predicate {predicate!r} on {key} at {version}", error)
            return True

    @abstractmethod
    def enqueue(self, change: Change[Any], priority: int) -> object:
        """Put what is to be reconciled into the queue."""


class Primary(InformerTrigger):
    """Changes of the objects that are reconciled.

    Args:
        cleans_up: Whether a mark for deletion always counts, whatever the predicate says.
        forget: Called with the key of an object whose deletion the predicate refuses: it is not reconciled any more.
    """

    def __init__(
        self,
        informer: SharedIndexInformer[Any],
        predicate: PredicateFunc[Any] | None,
        *,
        cleans_up: bool,
        forget: Callable[[str], None],
    ) -> None:
        super().__init__(informer.name, informer, predicate)
        self._cleans_up = cleans_up
        self._forget = forget
        self._key_of = informer.indexer.key_of
        self._group = _group_of(informer)
        self._kind: str | None = None  # before the first object says it; "" if that cannot
        self._awaited: OrderedDict[str, dict[tuple[str, str], int]] = OrderedDict()  # by key, group and kind
        self._awaiting = 0
        self._awaits_all = False
        self._gone: OrderedDict[str, None] = OrderedDict()
        self.is_standing_by: Callable[[], bool] = lambda: False

    def on_add(self, obj: Any, is_in_initial_list: bool) -> object:
        if self._kind is None:
            self._kind = "" if self._group is None else type_of(obj)[1]
        if self._awaited:
            key = self._key_of(obj)
            kinds = self._awaited.pop(key, {})
            self._awaiting -= len(kinds)
            for (group, kind), priority in kinds.items():
                if _may_be(obj, group, kind):
                    self.queue.add(key, priority)
        if self._awaits_all and is_in_initial_list:
            self.queue.add(self._key_of(obj), LOW_PRIORITY)
        return super().on_add(obj, is_in_initial_list)

    def on_lost(self, key: str) -> None:
        self.seen += 1
        self.passed += 1
        self.queue.add(key)
        self._record_gone(key)

    def enqueue(self, change: Change[Any], priority: int) -> None:
        key = self._key_of(change.obj)
        self.queue.add(key, priority)
        if change.new is None:
            self._record_gone(key)

    def _record_gone(self, key: str) -> None:
        """Keep the newest deletions alone in the queue for as long as no worker takes them out of it."""
        if not self.is_standing_by():
            self._gone.clear()
            return
        self._gone[key] = None
        self._gone.move_to_end(key)
        if len(self._gone) > MOST_GONE:
            oldest, _ = self._gone.popitem(last=False)
            if self.informer.store.get_by_key(oldest) is None:
                self.queue.discard(oldest)
                self.queue.cancel_delayed(oldest)

    def _passes(self, predicate: PredicateFunc[Any], change: Change[Any]) -> bool:
        if super()._passes(predicate, change):
            return True
        if change.new is None:
            self._forget(self._key_of(change.obj))
            return False
        if not self._cleans_up or not is_deleting(change.new):
            return False
        return change.old is None or not is_deleting(change.old) or is_made_anew(change)

    def enqueue_owner(self, namespace: str, owner: OwnerReference, priority: int) -> None:
        """Have the owner of something in a namespace reconciled; one that is not cached yet, once it is."""
        group = owner.api_version.rpartition("/")[0]
        if self._group is not None and group != self._group:
            return
        keys = (f"{namespace}/{owner.name}", owner.name) if namespace else (owner.name,)
        is_found = False
        for key in keys:
            found = self.informer.store.get_by_key(key)
            if found is not None and _may_be(found, group, owner.kind):
                self.queue.add(key, priority)
                is_found = True
        if not is_found and self._kind in (None, "", owner.kind):
            for key in keys:
                if len(key) + len(group) + len(owner.kind) <= LONGEST_AWAITED:
                    self._await(key, (group, owner.kind), priority)

    def _await(self, key: str, kind: tuple[str, str], priority: int) -> None:
        kinds = self._awaited.setdefault(key, {})
        self._awaiting += kind not in kinds
        kinds[kind] = max(priority, kinds.get(kind, priority))
        self._awaited.move_to_end(key)
        while self._awaiting > MOST_AWAITED:
            _, kinds = self._awaited.popitem(last=False)
            self._awaiting -= len(kinds)
            if not self.is_synced:
                self._awaits_all = True  # any object of the first list may be the one


class Owns(InformerTrigger):
    """Changes of objects that belong to what is reconciled: their owner is.

    The owner is found in the cache of what is reconciled by what ``ownerReferences`` say of its name and kind, so
    that nothing needs to be configured.

    Args:
        owned: The informer, or CachedResource, of what is owned.
        predicate: Which changes count; None for all.
        controller_only: Whether just the owner that is the object's controller counts.

    Raises:
        ConfigError: An argument is not what it should be.
    """

    def __init__(
        self,
        owned: SharedIndexInformer[T] | WrittenResource[T],
        predicate: PredicateFunc[T] | None = None,
        *,
        controller_only: bool = True,
    ) -> None:
        informer = informer_of(owned)
        super().__init__(f"{informer.name}, owned", informer, predicate)
        require_fields(informer.object_type, (OWNER_REFERENCES,), "Owns")
        self._controller_only = controller_only

    def enqueue(self, change: Change[Any], priority: int) -> None:
        assert self.primary is not None
        for obj in change.states:
            namespace = namespace_of(obj)
            for owner in owners_of(obj):
                if owner.controller or not self._controller_only:
                    self.primary.enqueue_owner(namespace, owner, priority)


class Watch(InformerTrigger):
    """Changes of other objects, and what is to be reconciled because of each.

    Of an update both what the object was and what it is are mapped.

    Args:
        watched: The informer, or CachedResource, of the other objects.
        map_func: From an object to requests; plain or async.
        predicate: Which changes count; None for all.

    Raises:
        ConfigError: An argument is not what it should be.
    """

    def __init__(
        self,
        watched: SharedIndexInformer[T] | WrittenResource[T],
        map_func: MapFunc[T],
        predicate: PredicateFunc[T] | None = None,
    ) -> None:
        informer = informer_of(watched)
        super().__init__(f"{informer.name}, by {callable_name(map_func)}", informer, predicate)
        require_arguments("map_func", map_func, ("obj",))
        if is_of_kind(map_func, inspect.isasyncgenfunction):
            raise ConfigError(f"map_func must return requests: {callable_name(map_func)} yields them later")
        self._map_func: MapFunc[Any] = map_func

    def enqueue(self, change: Change[Any], priority: int) -> object:
        waiting = []
        for obj in change.states:
            try:
                requests = self._map_func(obj)
                if inspect.isawaitable(requests):
                    waiting.append((obj, requests))
                else:
                    self._add_all(requests, priority)
            except Exception as error:
                self._record_map_failure(obj, error)
        return self._finish(waiting, priority) if waiting else None

    async def _finish(self, waiting: list[tuple[Any, Awaitable[Requests]]], priority: int) -> None:
        try:
            for obj, mapping in waiting:
                raise_if_cancelled()  # the one before has gone on
                try:
                    self._add_all(await mapping, priority)
                except (Exception, asyncio.CancelledError) as error:
                    if is_own_cancellation(error):
                        raise
                    self._record_map_failure(obj, error)
        finally:
            for _, mapping in waiting:
                if (
                    inspect.iscoroutine(mapping)
                    and inspect.getcoroutinestate(mapping) == inspect.CORO_CREATED
                ):
                    mapping.close()  # one that has not begun would complain of it

    def _add_all(self, requests: Requests, priority: int) -> None:
        for request in _each(requests):
            self.queue.add(request.key, priority)

    def _record_map_failure(self, obj: Any, error: BaseException) -> None:
        key, version = key_and_version(obj)
        self.record_failure(f"{callable_name(self._map_func)} on {key} at {version}", error)


def _each(requests: Requests) -> Iterable[Request[Any]]:
    if requests is None:
        return ()
    return [checked(each) for each in ([requests] if isinstance(requests, (Request, str)) else requests)]


def checked(request: object) -> Request[Any]:
    """See that something is a request.

    Raises:
        TypeError: It is none.
    """
    if isinstance(request, Request):
        return request
    raise TypeError(f"{shortened(request)} is no Request; of an object or its key Request.of(...) makes one")


def _group_of(informer: SharedIndexInformer[Any]) -> str | None:
    """The group of what an informer reads; None where it may read objects of any kind, or of several."""
    read = {
        (each.resource.group, each.resource.plural) if isinstance(each, ResourceListWatch) else None
        for each in informer.list_watches.values()
    }
    collection = read.pop()
    return None if read or collection is None else collection[0]


def _may_be(obj: Any, group: str, kind: str) -> bool:
    """Whether an object may be of a kind; the version of its group does not matter."""
    its_version, its_kind = type_of(obj)
    if its_kind and its_kind != kind:
        return False
    return not its_version or its_version.rpartition("/")[0] == group
