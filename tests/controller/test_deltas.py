"""apply_in_steps: from deltas to the store and to notifications."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer import ConfigError, DeletedFinalStateUnknown, Indexer, Store
from aioinformer.cache import AddNotification, DeleteNotification, Delta, DeltaType, UpdateNotification
from aioinformer.errors import IndexFuncError, KeyFuncError
from aioinformer.notifications import Notification

from ..samples import pod
from .slices import apply_deltas

OLD, NEW, NEWER = pod("a", version="1"), pod("a", version="2"), pod("a", version="3")


def apply(store: Store[Any], *deltas: tuple[DeltaType, Any], initial: bool = False) -> list[Notification]:
    return list(apply_deltas(store, [Delta(*delta) for delta in deltas], initial))


@pytest.mark.parametrize("kind", [DeltaType.ADDED, DeltaType.UPDATED, DeltaType.REPLACED, DeltaType.SYNC])
def test_store_content_decides_between_add_and_update(kind: DeltaType) -> None:
    """C31: Added for a stored key is an update, Updated for a missing one an add."""
    store: Store[Any] = Store()
    assert apply(store, (kind, OLD), initial=True) == [AddNotification(OLD, True)]
    assert apply(store, (kind, NEW)) == [UpdateNotification(OLD, NEW)]
    assert store.list() == [NEW]


def test_delta_type_may_be_a_string() -> None:
    """Upstream's types are strings."""
    store: Store[Any] = Store()
    store.add(OLD)
    deletion: Any = "Deleted"
    assert apply(store, (deletion, NEW)) == [DeleteNotification(NEW)]
    assert store.list() == []


def test_deletion_by_object_or_tombstone() -> None:
    store: Store[Any] = Store()
    store.add(OLD)
    assert apply(store, (DeltaType.DELETED, NEW)) == [DeleteNotification(NEW)]
    store.add(OLD)
    tombstone = DeletedFinalStateUnknown("ns/a", OLD)
    assert apply(store, (DeltaType.DELETED, tombstone)) == [DeleteNotification(tombstone)]
    assert store.list() == []


def test_deltas_of_a_key_are_applied_in_order() -> None:
    store: Store[Any] = Store()
    notifications = apply(
        store,
        (DeltaType.ADDED, OLD),
        (DeltaType.UPDATED, NEW),
        (DeltaType.DELETED, NEW),
        (DeltaType.ADDED, NEWER),
    )
    assert notifications == [
        AddNotification(OLD),
        UpdateNotification(OLD, NEW),
        DeleteNotification(NEW),
        AddNotification(NEWER),
    ]


def test_store_changes_before_the_notification() -> None:
    """C32."""
    store: Store[Any] = Store()
    changes = apply_deltas(store, [Delta(DeltaType.ADDED, OLD), Delta(DeltaType.DELETED, OLD)], False)
    next(changes)
    assert store.list() == [OLD]
    next(changes)
    assert store.list() == []


def test_recreation_between_lists_is_one_update_with_two_uids() -> None:
    """C59, W23: between two lists."""
    store: Store[Any] = Store()
    store.add(OLD)
    recreated = pod("a", version="9", metadata={"uid": "another"})
    (notification,) = apply(store, (DeltaType.REPLACED, recreated))
    assert isinstance(notification, UpdateNotification)
    assert (notification.old.uid, notification.new.uid) == ("uid-a", "another")


def test_object_without_key_does_not_stop_others() -> None:
    store: Store[Any] = Store()
    notifications: list[Notification] = []
    nameless = pod("")
    with pytest.raises(KeyFuncError):
        for notification in apply_deltas(
            store, [Delta(DeltaType.ADDED, nameless), Delta(DeltaType.ADDED, OLD)], False
        ):
            notifications.append(notification)  # noqa: PERF402 - until it raises
    assert notifications == [AddNotification(OLD)]


@pytest.mark.parametrize("wrong", ["DELETED", "Drained", ""])
def test_unknown_type_of_delta_is_an_error_that_names_it(wrong: Any) -> None:
    store: Store[Any] = Store()
    store.add(OLD)
    with pytest.raises(ConfigError, match=f"not Delta of '{wrong}'"):
        apply(store, (wrong, NEW))
    assert store.list() == [OLD]


def test_index_error_is_raised_after_all_deltas() -> None:
    """C36: upstream panics."""

    def fails(obj: Any) -> list[str]:
        raise ZeroDivisionError

    store: Indexer[Any] = Indexer(indexers={"bad": fails})
    notifications: list[Notification] = []
    with pytest.raises(IndexFuncError, match="'bad' failed on ns/a") as caught:
        for notification in apply_deltas(
            store, [Delta(DeltaType.ADDED, OLD), Delta(DeltaType.UPDATED, NEW)], False
        ):
            notifications.append(notification)  # noqa: PERF402
    assert notifications == [AddNotification(OLD), UpdateNotification(OLD, NEW)]
    assert len(caught.value.all()) == 2
    assert store.list() == [NEW]
