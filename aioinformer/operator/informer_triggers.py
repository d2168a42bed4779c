"""Triggers from informers: changes of objects that lead to reconciles (controller-runtime ``pkg/handler``)."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from .._core.callables import callable_name, is_of_kind, require_arguments
from .._core.cancellation import CALL_ERRORS, maybe_await
from ..deltas import DeletedFinalStateUnknown
from ..errors import ConfigError
from ..handlers import ResourceEventHandler
from ..informer import Registration, SharedIndexInformer
from ..listwatch.list_watch import ResourceListWatch
from ..objects.keys import (
    is_deleting,
    key_and_version,
    namespace_of,
    same_version,
    type_of,
)
from ..objects.kube_object import OwnerReference
from ..objects.undecodable import UndecodableObject
from ..workqueue import WorkQueue
from .finalizing import selection_of
from .metadata import OWNER_REFERENCES, owners_of, require_fields
from .predicates import Change, PredicateFunc, is_recreated, reads_of, require_predicate
from .protocols import WrittenResource
from .requests import Request
from .triggers import Trigger, require_request

T = TypeVar("T")

LOW_PRIORITY = -100
"""Priority of the initial list and of resyncs, below fresh changes (controller-runtime ``LowPriority``)."""
MOST_AWAITED = 4096
"""Owners that are remembered until they are cached; most are gone already, or never existed."""
LONGEST_AWAITED = 1024
"""Characters of such an owner's key, group and kind. No object has as many, but a reference may."""
MOST_GONE = 4096
"""Deletions queued on standby, which may last for weeks; the leader has processed the older ones."""

Requests = Request[Any] | Iterable[Request[Any]] | None
MapFunc = Callable[[T], Requests | Awaitable[Requests]]
"""Returns the requests for an object; plain or async."""

Cached = SharedIndexInformer[Any] | WrittenResource[Any]


def informer_of(cached: Cached) -> SharedIndexInformer[Any]:
    """Return the informer itself, or that of a CachedResource.

    Raises:
        ConfigError: It is neither.
    """
    informer = cached if isinstance(cached, SharedIndexInformer) else getattr(cached, "informer", None)
    if not isinstance(informer, SharedIndexInformer):
        raise ConfigError(f"expected an informer or a CachedResource, not {cached!r}")
    return informer


class InformerTrigger(Trigger, ResourceEventHandler[Any]):
    """Triggers reconciles from changes of a collection.

    Args:
        informer: The informer of the collection.
        predicate: Which changes pass; None for all. A change passes if the predicate raises.
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
        self._key_of = informer.indexer.key_of
        self._unfit: set[str] = set()
        """The keys of undecodable objects. Their next change passes, because it may repair what they have broken."""

    def __repr__(self) -> str:
        return self.name

    def bind(self, queue: WorkQueue[str], primary: Primary) -> None:
        """Attach the trigger to a controller.

        Args:
            queue: The queue to fill.
            primary: The trigger of the objects to reconcile.

        Raises:
            ConfigError: It belongs to another controller.
        """
        if self.primary is not None:
            raise ConfigError(f"{self.name}: this trigger belongs to another controller; create one for each")
        self.queue, self.primary = queue, primary

    def start(self) -> None:
        """Register with the informer."""
        self.registration = self.informer.add_event_handler(self)

    async def stop(self, *, cancel: bool) -> None:
        """Remove the registration, and wait until the running call has ended.

        Args:
            cancel: Whether to cancel that call. An informer that ends at the same time cancels it itself.
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
        return self._trigger(Change(None, obj, is_in_initial_list), LOW_PRIORITY if is_in_initial_list else 0)

    def on_update(self, old: Any, new: Any) -> object:
        return self._trigger(Change(old, new), LOW_PRIORITY if same_version(old, new) else 0)

    def on_delete(self, obj: Any) -> object:
        if not isinstance(obj, DeletedFinalStateUnknown):
            return self._trigger(Change(obj, None), 0)
        if obj.undecodable is None:
            return self.on_lost(obj.key) if obj.obj is None else self._trigger(Change(obj.obj, None), 0)
        self._unfit.discard(obj.key)
        return self._trigger_undecodable(obj.undecodable, obj.obj, is_gone=True)

    def on_undecodable(self, obj: UndecodableObject) -> object:
        """Handle a state that does not fit the object type. Predicates cannot judge it, so it passes."""
        self._unfit.add(self._key_of(obj))
        return self._trigger_undecodable(obj, obj.last, is_gone=False)

    def _trigger_undecodable(self, obj: UndecodableObject, last: Any, *, is_gone: bool) -> object:
        self.seen += 1
        self.passed += 1
        return self.enqueue_undecodable(obj, last, is_gone=is_gone)

    def on_lost(self, key: str) -> object:
        """Handle the deletion of an object whose last state is unknown."""
        return None

    def _trigger(self, change: Change[Any], priority: int) -> object:
        self.seen += 1
        if self._predicate is not None and not self._passes(self._predicate, change):
            return None
        self.passed += 1
        return self.enqueue(change, priority)

    def _passes(self, predicate: PredicateFunc[Any], change: Change[Any]) -> bool:
        if self._unfit and (key := self._key_of(change.obj)) in self._unfit:
            self._unfit.discard(key)
            return True
        try:
            return bool(predicate(change))
        except CALL_ERRORS as error:
            key, version = key_and_version(change.obj)
            self.record_failure(f"predicate {predicate!r} on {key} at {version}", error)
            return True

    @abstractmethod
    def enqueue(self, change: Change[Any], priority: int) -> object:
        """Queue the keys that the change affects."""

    @abstractmethod
    def enqueue_undecodable(self, obj: UndecodableObject, last: Any, *, is_gone: bool) -> object:
        """Queue the keys that an undecodable object affects.

        Args:
            obj: The object.
            last: Its last state that fitted; None if there is none.
            is_gone: Whether it was deleted.
        """


class Primary(InformerTrigger):
    """Triggers reconciles from changes of the primary objects, and for owners of others.

    Args:
        cleans_up: Whether marks for deletion always pass, in spite of the predicate.
        forget: Called with the key of an object whose deletion does not pass: it is not reconciled any more.
        ignores: Returns whether a change needs no reconcile, whatever the predicate says; None for no such change.
    """

    def __init__(
        self,
        informer: SharedIndexInformer[Any],
        predicate: PredicateFunc[Any] | None,
        *,
        cleans_up: bool,
        forget: Callable[[str], None],
        ignores: Callable[[Change[Any]], bool] | None = None,
    ) -> None:
        super().__init__(informer.name, informer, predicate)
        self._cleans_up = cleans_up
        self._forget = forget
        self._ignores = ignores
        self._group = _group_of(informer)
        self._kind: str | None = None  # the first object tells it; "" if objects do not say their kind
        self._awaited: OrderedDict[str, dict[tuple[str, str], int]] = (
            OrderedDict()
        )  # key -> (group, kind) -> priority
        self._awaiting = 0
        self._awaits_all = False
        self._gone: OrderedDict[str, None] = OrderedDict()
        self.is_standing_by: Callable[[], bool] = lambda: False
        self.leaves: Callable[[str], bool] | None = None
        """With sharding: called with the key of an object that went; returns whether it has only left this replica."""
        self.on_queued: Callable[[str], object] | None = None
        """Called with the key of each object that has changed, after it was queued."""

    def on_add(self, obj: Any, is_in_initial_list: bool) -> object:
        self._note_new(obj)
        if self._awaits_all and is_in_initial_list:
            self.queue.add(self._key_of(obj), LOW_PRIORITY)
        return super().on_add(obj, is_in_initial_list)

    def _note_new(self, obj: Any) -> None:
        """Queue an object that a dependent object named as its owner before it was cached."""
        if self._kind is None:
            self._kind = "" if self._group is None else type_of(obj)[1]
        if self._awaited:
            key = self._key_of(obj)
            kinds = self._awaited.pop(key, {})
            self._awaiting -= len(kinds)
            for (group, kind), priority in kinds.items():
                if _may_be(obj, group, kind):
                    self.queue.add(key, priority)

    def on_delete(self, obj: Any) -> object:
        if self.leaves is not None and self.leaves(key := self._key_of(obj)):
            self._unfit.discard(key)
            return None
        return super().on_delete(obj)

    def on_lost(self, key: str) -> None:
        self.seen += 1
        self.passed += 1
        self._add(key, 0, is_gone=True)

    def enqueue(self, change: Change[Any], priority: int) -> None:
        key = self._key_of(change.old if change.new is None else change.new)
        self._add(key, priority, is_gone=change.new is None)

    def enqueue_undecodable(self, obj: UndecodableObject, last: Any, *, is_gone: bool) -> None:
        if not is_gone:
            self._note_new(obj)
        self._add(self._key_of(obj), 0, is_gone=is_gone)

    def _add(self, key: str, priority: int, *, is_gone: bool) -> None:
        self.queue.add(key, priority)
        if is_gone:
            self._record_gone(key)
        if self.on_queued is not None:
            self.on_queued(key)

    def _record_gone(self, key: str) -> None:
        """On standby, keep only the newest deletions in the queue, since no worker removes them."""
        if not self.is_standing_by():
            self._gone.clear()
            return
        self._gone[key] = None
        self._gone.move_to_end(key)
        if len(self._gone) > MOST_GONE:
            oldest, _ = self._gone.popitem(last=False)
            if oldest not in self.informer.store:
                self.queue.discard(oldest)
                self.queue.cancel_delayed(oldest)

    def _trigger(self, change: Change[Any], priority: int) -> object:
        if self._ignores is not None:
            key = self._key_of(change.obj)
            if key not in self._unfit and self._ignores(change):
                self.seen += 1
                return None
            if self._predicate is None:
                self._unfit.discard(key)
        return super()._trigger(change, priority)

    def _passes(self, predicate: PredicateFunc[Any], change: Change[Any]) -> bool:
        if super()._passes(predicate, change):
            return True
        if change.new is None:
            if self._cleans_up and selection_of(self.informer):
                return True  # it may have left the selection, and keep the finalizer
            self._forget(self._key_of(change.obj))
            return False
        if not self._cleans_up or not is_deleting(change.new):
            return False
        return change.old is None or not is_deleting(change.old) or is_recreated(change)

    def enqueue_owner(self, namespace: str, owner: OwnerReference, priority: int) -> None:
        """Queue the owner of an object in a namespace. If it is not cached yet, queue it when it is added."""
        group = owner.api_version.rpartition("/")[0]
        if self._group is not None and group != self._group:
            return
        keys = (f"{namespace}/{owner.name}", owner.name) if namespace else (owner.name,)
        is_found = False
        for key in keys:
            obj = self.informer.store.find_any(key)
            if obj is not None and _may_be(obj, group, owner.kind):
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
                self._awaits_all = True  # an object of the first list may be the dropped owner


class Owns(InformerTrigger):
    """Triggers a reconcile of the owner when an owned object changes.

    It looks up the owner by the name and kind in ``ownerReferences`` in the cache of the primary objects, so no
    configuration is needed.

    Args:
        owned: The informer or CachedResource of the owned objects.
        predicate: Which changes pass; None for all.
        controller_only: Whether only the owner that is the object's controller is reconciled.

    Raises:
        ConfigError: An argument is invalid.
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
        for obj in change.states:
            self._enqueue_owners(obj, priority)

    def enqueue_undecodable(self, obj: UndecodableObject, last: Any, *, is_gone: bool) -> None:
        for state in (obj, last):
            if state is not None:
                self._enqueue_owners(state, 0)

    def _enqueue_owners(self, obj: Any, priority: int) -> None:
        assert self.primary is not None
        namespace = namespace_of(obj)
        for owner in owners_of(obj):
            if owner.controller or not self._controller_only:
                self.primary.enqueue_owner(namespace, owner, priority)


class Watch(InformerTrigger):
    """Triggers reconciles from changes of other objects, by a map function.

    For an update, the map function is called with the old and with the new object. It is not called with an object that
    does not fit its type: that is counted and logged as a failure, and the function is called with the last state that
    fitted, so that the objects which used it are reconciled.

    Args:
        watched: The informer or CachedResource of the other objects.
        map_func: Returns the requests for an object; plain or async.
        predicate: Which changes pass; None for all.

    Raises:
        ConfigError: An argument is invalid.
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
            raise ConfigError(
                f"map_func must return requests, but {callable_name(map_func)} is an async generator"
            )
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
            except CALL_ERRORS as error:
                self._record_map_failure(obj, error)
        return self._finish(waiting, priority) if waiting else None

    def enqueue_undecodable(self, obj: UndecodableObject, last: Any, *, is_gone: bool) -> object:
        self._record_map_failure(obj, obj.error)
        return None if last is None else self.enqueue(Change(last, None), 0)

    async def _finish(self, waiting: list[tuple[Any, Awaitable[Requests]]], priority: int) -> None:
        try:
            for obj, mapping in waiting:
                try:
                    self._add_all(await maybe_await(mapping), priority)
                except Exception as error:
                    self._record_map_failure(obj, error)
        finally:
            for _, mapping in waiting:
                if inspect.iscoroutine(mapping):
                    mapping.close()  # avoid the warning about a coroutine that was never awaited

    def _add_all(self, requests: Requests, priority: int) -> None:
        if requests is None:
            return
        if isinstance(requests, (Request, str)) or not isinstance(requests, Iterable):
            requests = [requests]
        for request in [require_request(request) for request in requests]:  # all or none
            self.queue.add(request.key, priority)

    def _record_map_failure(self, obj: Any, error: BaseException) -> None:
        key, version = key_and_version(obj)
        self.record_failure(f"{callable_name(self._map_func)} on {key} at {version}", error)


def _group_of(informer: SharedIndexInformer[Any]) -> str | None:
    """The API group that an informer reads; None if it may read several kinds."""
    read = {
        (list_watch.resource.group, list_watch.resource.plural)
        if isinstance(list_watch, ResourceListWatch)
        else None
        for list_watch in informer.list_watches.values()
    }
    collection = read.pop()
    return None if read or collection is None else collection[0]


def _may_be(obj: Any, group: str, kind: str) -> bool:
    """Return whether an object may be of a group and kind, in any version."""
    its_version, its_kind = type_of(obj)
    if its_kind and its_kind != kind:
        return False
    return not its_version or its_version.rpartition("/")[0] == group
