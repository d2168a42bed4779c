"""From deltas to the store, and to what handlers are told (client-go ``processDeltas``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..deltas import DELETED, Delta
from ..errors import RejectedObjectError
from ..notifications import AddNotification, DeleteNotification, Notification, UpdateNotification
from ..store import Store


def apply_deltas(
    store: Store[Any], deltas: Iterable[Delta], is_in_initial_list: bool
) -> Iterator[Notification]:
    """Apply one key's deltas to a store, each followed by what handlers are to be told of it.

    What is new is decided by the store, not by the delta: Added for a stored object is an update, Updated for an
    unknown one an add.

    Raises:
        RejectedObjectError: At the end: deltas that the store could not take (no key), or took without an index.
    """
    rejected: list[RejectedObjectError] = []
    key: str | None = None
    for delta in deltas:
        obj = delta.object
        try:
            if key is None:
                key = store.key_of(obj)
            if delta.type is DELETED:
                store.remove(key)
                yield DeleteNotification(obj)
                continue
            old = store.put(key, obj, rejected)
            yield AddNotification(obj, is_in_initial_list) if old is None else UpdateNotification(old, obj)
        except RejectedObjectError as error:
            rejected.append(error)
    RejectedObjectError.raise_first(rejected)
