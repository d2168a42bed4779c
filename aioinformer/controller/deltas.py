"""From deltas to the store, and to what handlers are told (client-go ``processDeltas``)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

from ..deltas import (
    DELETED,
    REPLACED_ALL,
    SYNC_ALL,
    BookmarkInfo,
    DeletedFinalStateUnknown,
    Delta,
    ReplacedAllInfo,
    SyncAllInfo,
)
from ..errors import RejectedObjectError
from ..keys import ExplicitKey
from ..notifications import AddNotification, DeleteNotification, Notification, UpdateNotification
from ..protocols import KnownObjects
from ..store import Store
from ..turns import Turn

_INFOS = frozenset({ReplacedAllInfo, SyncAllInfo, BookmarkInfo})
"""What deltas about the whole collection have instead of an object."""


def apply_deltas(
    store: Store[Any], deltas: Iterable[Delta], is_in_initial_list: bool
) -> Iterator[Notification]:
    """Apply deltas to a store, each followed by what handlers are to be told of it.

    What is new is decided by the store, not by the delta: Added for a stored object is an update, Updated for an
    unknown one an add. A ReplacedAll replaces the whole store before anything of it is told: first what was
    deleted, as tombstones with the last stored state, then its objects in their order.

    Raises:
        RejectedObjectError: At the end: deltas that the store could not take (no key), or took without an index.
    """
    rejected: list[RejectedObjectError] = []
    for delta in deltas:
        kind, obj = delta.type, delta.object
        if type(obj) in _INFOS:
            yield from (
                each for each in _steps(store, delta, is_in_initial_list, rejected) if each is not None
            )
            continue
        try:
            key = store.key_of(obj)
        except RejectedObjectError as error:
            rejected.append(error)
            continue
        if kind != DELETED:
            old = store.put(key, obj, rejected)
            yield AddNotification(obj, is_in_initial_list) if old is None else UpdateNotification(old, obj)
            continue
        last = store.remove(key, obj)
        if last is not None and isinstance(obj, DeletedFinalStateUnknown) and obj.obj is None:
            obj = DeletedFinalStateUnknown(key, last)
        yield DeleteNotification(obj)
    RejectedObjectError.raise_first(rejected)


async def apply_in_turns(
    store: Store[Any],
    delta: Delta,
    is_in_initial_list: bool,
    tell: Callable[[list[Notification]], Awaitable[None] | None],
    known: KnownObjects[Any] | None = None,
) -> None:
    """Apply a delta about the whole collection without holding the event loop.

    What it does to the store it does in one step, and ``tell`` is called for the first time before anything else
    can run; nothing else may write the objects concerned until the end.

    Args:
        store: Where to apply it.
        delta: A ReplacedAll or SyncAll.
        is_in_initial_list: Whether it is of the initial list.
        tell: Given the notifications of each turn, in order; plain or async.
        known: The part of the store that the delta is about; None for all of it.

    Raises:
        RejectedObjectError: As ``apply_deltas``.

    Cancellation: cancelled before the first notification it has changed nothing; after it, the store is whole and
    the rest is not told.
    """
    rejected: list[RejectedObjectError] = []
    turn = Turn()
    told: list[Notification] = []
    for notification in _steps(store, delta, is_in_initial_list, rejected, known):
        if notification is not None:
            told.append(notification)
        if turn.is_over():
            if told and (telling := tell(told)) is not None:
                await telling
            told = []
            await turn.pause()
    if told and (telling := tell(told)) is not None:
        await telling
    RejectedObjectError.raise_first(rejected)


def _steps(
    store: Store[Any],
    delta: Delta,
    is_in_initial_list: bool,
    rejected: list[RejectedObjectError],
    known: KnownObjects[Any] | None = None,
) -> Iterator[Notification | None]:
    """What a delta about the whole collection does; None stands for a step that has changed nothing yet."""
    if delta.type == REPLACED_ALL:
        yield from _replace(store, delta.object, is_in_initial_list, rejected, known)
    elif delta.type == SYNC_ALL:
        keys = store.list_keys() if known is None else known.list_keys()
        for key in keys:
            obj = store.get_by_key(key)
            yield None if obj is None else UpdateNotification(obj, obj)
    else:
        store.bookmark(delta.object.resource_version)


def _replace(
    store: Store[Any],
    info: ReplacedAllInfo,
    is_in_initial_list: bool,
    rejected: list[RejectedObjectError],
    known: KnownObjects[Any] | None,
) -> Iterator[Notification | None]:
    fresh = store.fresh()
    news: list[Notification] = []
    for obj in info.objects:
        yield None
        try:
            key = store.key_of(obj)
        except RejectedObjectError as error:
            rejected.append(error)
            continue
        old = store.get_by_key(key)
        if isinstance(obj, ExplicitKey):
            if old is not None and key not in fresh:
                fresh.put(key, old, rejected)
            continue
        listed_before = fresh.put(key, obj, rejected)
        if listed_before is not None:
            old = listed_before
        news.append(AddNotification(obj, is_in_initial_list) if old is None else UpdateNotification(old, obj))
    gone: dict[str, Notification] = {}
    for key in store.list_keys() if known is None else known.list_keys():
        yield None
        if key not in fresh:
            gone[key] = DeleteNotification(DeletedFinalStateUnknown(key, store.get_by_key(key)))
    yield from store.catch_up(fresh, rejected)
    store.take_over(fresh, info.resource_version, None if known is None else gone)
    yield from gone.values()
    yield from news
