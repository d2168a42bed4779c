"""From deltas to the store, and to notifications for the handlers (client-go ``processDeltas``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..deltas import (
    BOOKMARK,
    DELETED,
    OF_ONE_OBJECT,
    REPLACED_ALL,
    SYNC_ALL,
    DeletedFinalStateUnknown,
    Delta,
    ReplacedAllInfo,
    type_of_delta,
)
from ..errors import RejectedObjectError
from ..notifications import (
    AddNotification,
    DeleteNotification,
    Notification,
    UndecodableNotification,
    UpdateNotification,
)
from ..objects.keys import ExplicitKey
from ..objects.undecodable import UndecodableObject
from ..protocols import KnownObjects
from ..store import Store


def apply_in_steps(
    store: Store[Any],
    deltas: Iterable[Delta],
    is_in_initial_list: bool,
    known: KnownObjects[Any] | None = None,
) -> Iterator[Notification | None]:
    """Apply deltas to a store, and yield each notification for the handlers right after its change.

    The store decides what is new, not the delta: Added for a stored object is an update, Updated for an unknown object
    is an add. An object that was undecodable and fits now is an update of its last state that fitted, or an add if
    there is none.

    The caller may pause after any step; one without a notification yields None. A ReplacedAll changes the whole store
    in one step, the one that yields its first notification: first come the deletions, as tombstones with the last
    stored state, then its objects in their order. Nothing else may write the objects concerned before the end.

    Args:
        store: Where to apply them.
        deltas: In their order.
        is_in_initial_list: Whether they are of the initial list.
        known: The part of the store that a ReplacedAll or SyncAll is about; None for all of it.

    Raises:
        RejectedObjectError: At the end: deltas that the store refused (no key), or stored without an index.
        ConfigError: A delta has an unknown type; those before it were applied.
    """
    rejected: list[RejectedObjectError] = []
    for delta in deltas:
        kind, obj = delta.type, delta.object
        if kind not in OF_ONE_OBJECT:
            yield from _apply_whole(store, delta, is_in_initial_list, rejected, known)
            continue
        try:
            key = store.key_of(obj)
        except RejectedObjectError as error:
            rejected.append(error)
            continue
        if kind == DELETED:
            yield DeleteNotification(_final_state(key, obj, store.remove(key, obj)))
        elif type(obj) is UndecodableObject:
            before = store.find_any(key)
            obj = obj.after(before)
            store.put_undecodable(key, obj)
            yield UndecodableNotification(before, obj, is_in_initial_list)
        elif (old := store.put(key, obj, rejected)) is None:
            yield AddNotification(obj, is_in_initial_list)
        elif type(old) is UndecodableObject:
            yield _fits_again(old, obj, is_in_initial_list)
        else:
            yield UpdateNotification(old, obj)
    if rejected:
        RejectedObjectError.raise_first(rejected)


def _fits_again(unfit: UndecodableObject, obj: Any, is_in_initial_list: bool) -> Notification:
    """Return the notification of an object that did not fit the object type, and does now."""
    last = unfit.last_before(obj)
    return AddNotification(obj, is_in_initial_list, unfit) if last is None else UpdateNotification(last, obj)


def _final_state(key: str, obj: Any, stored: Any) -> Any:
    """Return what the handlers get of a deleted object: its state, or a tombstone if that is unknown or undecodable.

    Args:
        key: The object's key.
        obj: The object of the deletion, or a tombstone.
        stored: What the store had; None for nothing.
    """
    state = obj.obj if isinstance(obj, DeletedFinalStateUnknown) else obj
    if state is None:
        state = stored
    if isinstance(state, UndecodableObject):
        return DeletedFinalStateUnknown(key, state.after(stored).last, state)
    return DeletedFinalStateUnknown(key, state) if isinstance(obj, DeletedFinalStateUnknown) else obj


def _apply_whole(
    store: Store[Any],
    delta: Delta,
    is_in_initial_list: bool,
    rejected: list[RejectedObjectError],
    known: KnownObjects[Any] | None,
) -> Iterator[Notification | None]:
    """Apply a delta about the whole collection."""
    kind = type_of_delta(delta)
    if kind is REPLACED_ALL:
        yield from _replace(store, delta.object, is_in_initial_list, rejected, known)
    elif kind is SYNC_ALL:
        keys = store.list_keys() if known is None else known.list_keys()
        for key in keys:
            obj = store.find_any(key)
            if isinstance(obj, UndecodableObject):
                yield UndecodableNotification(obj, obj)
            else:
                yield None if obj is None else UpdateNotification(obj, obj)
    else:
        assert kind is BOOKMARK
        store.bookmark(delta.object.resource_version)


def _replace(
    store: Store[Any],
    info: ReplacedAllInfo,
    is_in_initial_list: bool,
    rejected: list[RejectedObjectError],
    known: KnownObjects[Any] | None,
) -> Iterator[Notification | None]:
    fresh = store.fresh()
    changes: list[Notification] = []
    for obj in info.objects:
        yield None
        try:
            key = store.key_of(obj)
        except RejectedObjectError as error:
            rejected.append(error)
            continue
        old = store.find_any(key)
        if isinstance(obj, ExplicitKey):
            if old is None or key in fresh:
                continue
            if isinstance(old, UndecodableObject):
                fresh.put_undecodable(key, old)
            else:
                fresh.put(key, old, rejected)
            continue
        if type(obj) is UndecodableObject:
            obj = obj.after(old)
            fresh.put_undecodable(key, obj)
            changes.append(UndecodableNotification(old, obj, is_in_initial_list))
            continue
        listed_before = fresh.put(key, obj, rejected)
        if listed_before is not None:
            old = listed_before
        if old is None:
            changes.append(AddNotification(obj, is_in_initial_list))
        elif type(old) is UndecodableObject:
            changes.append(_fits_again(old, obj, is_in_initial_list))
        else:
            changes.append(UpdateNotification(old, obj))
    gone: dict[str, Notification] = {}
    for key in store.list_keys() if known is None else known.list_keys():
        yield None
        if key not in fresh:
            stored = store.find_any(key)
            gone[key] = DeleteNotification(_final_state(key, DeletedFinalStateUnknown(key, None), stored))
    yield from store.catch_up(fresh, rejected)
    store.take_over(fresh, info.resource_version, None if known is None else gone)
    yield from gone.values()
    yield from changes
