"""apply_deltas: from deltas to the store, and to what handlers are told."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer import DeletedFinalStateUnknown, Indexer, Store
from aioinformer.cache import AddNotification, DeleteNotification, Delta, DeltaType, UpdateNotification
from aioinformer.controller import apply_deltas
from aioinformer.errors import IndexFuncError, KeyFuncError
from aioinformer.notifications import Notification

from ..samples import pod

OLD, NEW, NEWER = pod("a", version="1"), pod("a", version="2"), pod("a", version="3")


def applied(store: Store[Any], *deltas: tuple[DeltaType, Any], initial: bool = False) -> list[Notification]:
    return list(apply_deltas(store, [Delta(*delta) for delta in deltas], initial))


@pytest.mark.parametrize("kind", [DeltaType.ADDED, DeltaType.UPDATED, DeltaType.REPLACED, DeltaType.SYNC])
def test_the_store_says_what_is_new_not_the_delta(kind: DeltaType) -> None:
    """C31: Added for a stored key is an update, Updated for a missing one an add."""
    store: Store[Any] = Store()
    assert applied(store, (kind, OLD), initial=True) == [AddNotification(OLD, True)]
    assert applied(store, (kind, NEW)) == [UpdateNotification(OLD, NEW)]
    assert store.list() == [NEW]


def test_a_plain_string_is_a_type_as_well() -> None:
    """Upstream's are strings."""
    store: Store[Any] = Store()
    store.add(OLD)
    deletion: Any = "Deleted"
    assert applied(store, (deletion, NEW)) == [DeleteNotification(NEW)]
    assert store.list() == []


def test_deletions_by_object_or_tombstone() -> None:
    store: Store[Any] = Store()
    store.add(OLD)
    assert applied(store, (DeltaType.DELETED, NEW)) == [DeleteNotification(NEW)]
    store.add(OLD)
    tombstone = DeletedFinalStateUnknown("ns/a", OLD)
    assert applied(store, (DeltaType.DELETED, tombstone)) == [DeleteNotification(tombstone)]
    assert store.list() == []


def test_all_that_happened_to_a_key_in_order() -> None:
    store: Store[Any] = Store()
    told = applied(
        store,
        (DeltaType.ADDED, OLD),
        (DeltaType.UPDATED, NEW),
        (DeltaType.DELETED, NEW),
        (DeltaType.ADDED, NEWER),
    )
    assert told == [
        AddNotification(OLD),
        UpdateNotification(OLD, NEW),
        DeleteNotification(NEW),
        AddNotification(NEWER),
    ]


def test_the_store_is_changed_before_anybody_is_told() -> None:
    """C32."""
    store: Store[Any] = Store()
    changes = apply_deltas(store, [Delta(DeltaType.ADDED, OLD), Delta(DeltaType.DELETED, OLD)], False)
    next(changes)
    assert store.list() == [OLD]
    next(changes)
    assert store.list() == []


def test_deleted_and_created_again_is_one_update_with_two_uids() -> None:
    """C59, W23: between two lists."""
    store: Store[Any] = Store()
    store.add(OLD)
    recreated = pod("a", version="9", metadata={"uid": "another"})
    (told,) = applied(store, (DeltaType.REPLACED, recreated))
    assert isinstance(told, UpdateNotification)
    assert (told.old.uid, told.new.uid) == ("uid-a", "another")


def test_an_object_without_key_stops_no_other() -> None:
    store: Store[Any] = Store()
    told: list[Notification] = []
    nameless = pod("")
    with pytest.raises(KeyFuncError):
        for each in apply_deltas(
            store, [Delta(DeltaType.ADDED, nameless), Delta(DeltaType.ADDED, OLD)], False
        ):
            told.append(each)  # noqa: PERF402 - until it raises
    assert told == [AddNotification(OLD)]


def test_a_failing_index_is_told_of_after_the_rest() -> None:
    """C36: upstream panics."""

    def fails(obj: Any) -> list[str]:
        raise ZeroDivisionError

    store: Indexer[Any] = Indexer(indexers={"bad": fails})
    told: list[Notification] = []
    with pytest.raises(IndexFuncError, match="'bad' failed on ns/a") as caught:
        for each in apply_deltas(store, [Delta(DeltaType.ADDED, OLD), Delta(DeltaType.UPDATED, NEW)], False):
            told.append(each)  # noqa: PERF402
    assert told == [AddNotification(OLD), UpdateNotification(OLD, NEW)]
    assert len(caught.value.all()) == 2
    assert store.list() == [NEW]
