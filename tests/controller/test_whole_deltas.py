"""apply_in_steps: deltas of the whole collection, and of several keys at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioinformer import DeletedFinalStateUnknown, Indexer, Store
from aioinformer.cache import (
    AddNotification,
    BookmarkInfo,
    DeleteNotification,
    Delta,
    DeltaType,
    ExplicitKey,
    ReplacedAllInfo,
    SyncAllInfo,
    UpdateNotification,
)
from aioinformer.errors import IndexFuncError, KeyFuncError
from aioinformer.notifications import Notification

from ..samples import pod
from ..steps import turns
from .slices import apply_deltas, apply_in_slices

SYNC_ALL = Delta(DeltaType.SYNC_ALL, SyncAllInfo())


def replace_all(*objects: Any, version: str = "10") -> Delta:
    return Delta(DeltaType.REPLACED_ALL, ReplacedAllInfo(version, objects))


def store_of(*objects: Any) -> Indexer[Any]:
    store: Indexer[Any] = Indexer(indexers={"version": lambda obj: [obj.resource_version]})
    store.replace(objects, "1")
    return store


def tombstone(obj: Any) -> DeleteNotification:
    return DeleteNotification(DeletedFinalStateUnknown(obj.key, obj))


def apply(store: Store[Any], delta: Delta) -> list[Notification]:
    return list(apply_deltas(store, [delta], False))


A1, A2, B1, C1, D1 = pod("a"), pod("a", version="2"), pod("b"), pod("c"), pod("d")


class TestReplacedAll:
    def test_deletions_come_before_the_list_in_its_order_c32(self) -> None:
        """C32 TestReplaceEvents; C31: what is new is decided by the store."""
        store = store_of(A1, B1, C1)
        assert apply(store, replace_all(D1, A2, C1)) == [
            tombstone(B1),
            AddNotification(D1),
            UpdateNotification(A1, A2),
            UpdateNotification(C1, C1),
        ]
        assert store.list() == [D1, A2, C1]
        assert store.last_store_sync_resource_version == "10"
        assert store.index_keys("version", "2") == ["ns/a"]
        assert store.index_keys("version", "1") == ["ns/c", "ns/d"]

    def test_whole_store_is_replaced_before_the_first_notification_c32(self) -> None:
        """C32 TestReplaceEvents, which checks the store's version at each call."""
        store = store_of(A1, B1)
        seen = [
            (store.list(), store.last_store_sync_resource_version)
            for _ in apply_deltas(store, [replace_all(C1, D1)], False)
        ]
        assert seen == [([C1, D1], "10")] * 4

    def test_object_listed_twice_is_add_then_update(self) -> None:
        store = store_of()
        assert apply(store, replace_all(A1, A2)) == [AddNotification(A1), UpdateNotification(A1, A2)]
        assert store.list() == [A2]

    def test_explicit_key_keeps_the_stored_object_without_notification(self) -> None:
        store = store_of(A1, B1)
        delta = replace_all(ExplicitKey("ns/a"), ExplicitKey("ns/unknown"), C1)
        assert apply(store, delta) == [tombstone(B1), AddNotification(C1)]
        assert store.list() == [A1, C1]
        assert store.index_keys("version", "1") == ["ns/a", "ns/c"]

    def test_listed_object_wins_over_its_explicit_key(self) -> None:
        store = store_of(A1)
        assert apply(store, replace_all(A2, ExplicitKey("ns/a"))) == [UpdateNotification(A1, A2)]
        assert store.list() == [A2]

    def test_failing_objects_do_not_stop_others(self) -> None:
        store = store_of(A1)

        def fails(obj: Any) -> list[str]:
            raise ZeroDivisionError

        store.add_indexers({"fails": lambda obj: ["x"] if obj is A1 else fails(obj)})
        with pytest.raises(KeyFuncError) as caught:
            apply(store, replace_all({}, A1, B1))
        assert [type(error) for error in caught.value.all()] == [KeyFuncError, IndexFuncError]
        assert store.list() == [A1, B1]
        assert store.index_keys("fails", "x") == ["ns/a"]

    def test_notifications_carry_is_in_initial_list(self) -> None:
        (notifications,) = apply_deltas(store_of(), [replace_all(A1)], True)
        assert notifications == AddNotification(A1, True)


class TestOtherDeltas:
    def test_sync_all_repeats_stored_objects(self) -> None:
        store = store_of(A1, B1)
        assert apply(store, SYNC_ALL) == [UpdateNotification(A1, A1), UpdateNotification(B1, B1)]

    def test_bookmark_sets_store_version_without_notification(self) -> None:
        store = store_of(A1)
        assert list(apply_deltas(store, [Delta(DeltaType.BOOKMARK, BookmarkInfo("77"))], False)) == []
        assert store.last_store_sync_resource_version == "77"

    def test_batch_notifies_only_stored_changes_c34(self) -> None:
        """C34 TestProcessDeltasInBatch; C35: in order."""
        store = store_of(A1)
        deltas = [
            Delta(DeltaType.UPDATED, A2),
            Delta(DeltaType.ADDED, {}),
            Delta(DeltaType.ADDED, B1),
            Delta(DeltaType.DELETED, None),
            Delta(DeltaType.DELETED, C1),
        ]
        notifications: list[Notification] = []
        with pytest.raises(KeyFuncError) as caught:
            for notification in apply_deltas(store, deltas, False):
                notifications.append(notification)  # noqa: PERF402 - until it raises
        assert notifications == [UpdateNotification(A1, A2), AddNotification(B1), DeleteNotification(C1)]
        assert len(caught.value.all()) == 2

    def test_tombstone_without_object_gets_the_stored_object(self) -> None:
        unread = Delta(DeltaType.DELETED, DeletedFinalStateUnknown("ns/a", None))
        store = store_of(A1)
        assert list(apply_deltas(store, [unread, unread], False)) == [
            tombstone(A1),
            DeleteNotification(unread.object),
        ]


class Part:
    """The objects of some namespaces of a store."""

    def __init__(self, store: Store[Any], *namespaces: str) -> None:
        self._store = store
        self._namespaces = namespaces

    def list_keys(self) -> list[str]:
        return [key for key in self._store.list_keys() if key.split("/")[0] in self._namespaces]

    def get_by_key(self, key: str) -> Any:
        return self._store.get_by_key(key)


class TestSlices:
    async def test_part_of_the_store_is_replaced(self) -> None:
        red, blue = pod("a", "red"), pod("a", "blue")
        store = store_of(red, blue)
        notifications: list[Notification] = []
        known = Part(store, "red")
        newer = pod("b", "red", version="2")
        await apply_in_slices(store, replace_all(newer), notifications.extend, known)
        assert notifications == [tombstone(red), AddNotification(newer)]
        assert sorted(store.list_keys()) == ["blue/a", "red/b"]
        assert store.index_keys("version", "1") == ["blue/a"]
        assert store.index_keys("version", "2") == ["red/b"]
        notifications.clear()
        await apply_in_slices(store, SYNC_ALL, notifications.extend, known)
        assert notifications == [UpdateNotification(newer, newer)]

    @pytest.mark.parametrize("count", range(16))
    async def test_cancel_before_first_notification_changes_nothing(
        self, count: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("aioinformer._core.coop.SLICE", -1.0)  # a pause at each step
        store = store_of(A1, B1)
        notifications: list[Notification] = []
        task = asyncio.create_task(apply_in_slices(store, replace_all(B1, C1, D1), notifications.extend))
        await turns(count)
        task.cancel()
        await asyncio.wait({task})
        assert store.list() == ([B1, C1, D1] if notifications else [A1, B1])
        assert store.index_keys("version", "1") == sorted(store.list_keys())
        assert store.last_store_sync_resource_version == ("10" if notifications else "1")

    async def test_index_added_meanwhile_is_complete(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("aioinformer._core.coop.SLICE", -1.0)
        for count in range(12):
            store = store_of(A1, B1)
            known = Part(store, "ns") if count % 2 else None
            task = asyncio.create_task(
                apply_in_slices(store, replace_all(B1, C1), lambda notifications: None, known)
            )
            await turns(count)
            store.add_indexers({"name": lambda obj: [obj.name]})
            await task
            assert sorted(store.list_index_func_values("name")) == ["b", "c"]

    async def test_index_added_meanwhile_is_filled_in_slices(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("aioinformer._core.coop.SLICE", -1.0)
        store = store_of(A1)
        objects = [pod(f"p{number}") for number in range(20)]
        task = asyncio.create_task(apply_in_slices(store, replace_all(*objects), lambda notifications: None))
        await turns(10)
        listed: list[str] = []

        def name(obj: Any) -> list[str]:
            listed.append(obj.name)
            return [obj.name]

        await store.add_indexers_in_turns({"name": name})
        most = 0
        while not task.done():
            before = len(listed)
            await asyncio.sleep(0)
            most = max(most, len(listed) - before)
        assert most == 1
        assert store.by_index("name", "p7") == [objects[7]]

    async def test_event_loop_is_not_blocked(self) -> None:
        store: Store[Any] = Store()
        objects = [pod(f"p{number}") for number in range(20_000)]
        notifications: list[Notification] = []
        for delta in (replace_all(*objects), SYNC_ALL):
            task = asyncio.create_task(apply_in_slices(store, delta, notifications.extend))
            rounds = 0
            while not task.done():
                await asyncio.sleep(0)
                rounds += 1
            await task
            assert rounds > 2
        assert len(notifications) == 40_000
