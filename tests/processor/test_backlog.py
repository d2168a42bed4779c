"""processor/backlog.py: the policies for a handler that is slower than its notifications."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import ConfigError, DeletedFinalStateUnknown, KubeObject, ResourceEventHandler
from aioinformer.cache import (
    AddNotification,
    Backlog,
    DeleteNotification,
    Notification,
    ProcessorListener,
    UpdateNotification,
)
from aioinformer.objects.keys import deletion_handling_meta_namespace_key_func as key_of
from aioinformer.processor.backlog import make_pending, merge

from ..samples import pod
from ..steps import run_during, turns, until

KEYS = ("a", "b", "c")


class Store:
    """Make the notifications that an informer would make for changes to stored objects."""

    def __init__(self) -> None:
        self.stored: dict[str, KubeObject] = {}
        self._version = 0

    def change(self, name: str, dice: int) -> Notification:
        old = self.stored.get(name)
        self._version += 1
        if old is None:
            self.stored[name] = pod(name, version=str(self._version))
            return AddNotification(self.stored[name], dice == 0)
        if dice == 0:
            return UpdateNotification(old, old)  # a resync
        if dice == 1:
            del self.stored[name]
            return DeleteNotification(old)
        if dice == 2:
            del self.stored[name]
            return DeleteNotification(DeletedFinalStateUnknown(old.key, old))
        self.stored[name] = pod(name, version=str(self._version))
        return UpdateNotification(old, self.stored[name])


class Follower:
    """A handler's copy of the objects; fails on a notification that does not fit it."""

    def __init__(self) -> None:
        self.known: dict[str, KubeObject] = {}
        self.initial = 0

    def take(self, notification: Notification) -> None:
        self.initial += notification.is_in_initial_list
        key = key_of(notification.obj)
        match notification:
            case AddNotification():
                assert key not in self.known
                self.known[key] = notification.new
            case UpdateNotification():
                assert self.known[key] is notification.old
                self.known[key] = notification.new
            case DeleteNotification():
                del self.known[key]


moves = st.lists(st.one_of(st.tuples(st.sampled_from(KEYS), st.integers(0, 4)), st.none()), max_size=60)


class TestCoalescing:
    @given(moves)
    def test_handler_sees_consistent_history_and_final_state(
        self, moves: list[tuple[str, int] | None]
    ) -> None:
        """None takes one notification, as the handler does when it is ready."""
        store, follower = Store(), Follower()
        pending = make_pending("coalesce", 1, key_of)
        sent = taken = 0

        def take() -> None:
            (notification,) = pending.take()
            follower.take(notification)
            pending.record_delivered(notification)

        for move in moves:
            if move is None:
                if pending.waiting:
                    take()
                    taken += 1
                continue
            pending.add([store.change(*move)])
            sent += 1
            assert sent - taken - pending.lost == pending.depth <= 2 * len(KEYS)
        while pending.waiting:
            take()
            taken += 1
        assert follower.known == {obj.key: obj for obj in store.stored.values()}
        assert sent == taken + pending.lost
        assert pending.initial == 0

    def test_objects_are_taken_in_the_order_of_their_first_notification(self) -> None:
        store, pending = Store(), make_pending("coalesce", 1, key_of)
        for name in ("b", "a", "c", "b", "a"):
            pending.add([store.change(name, 3)])
        assert [pending.take()[0].obj.name for _ in range(3)] == ["b", "a", "c"]

    def test_deletion_is_not_merged_with_the_following_add(self) -> None:
        old, new, newer = pod("a"), pod("a", version="2"), pod("a", version="3")
        pending = make_pending("coalesce", 1, key_of)
        for notification in (DeleteNotification(old), AddNotification(new), UpdateNotification(new, newer)):
            pending.add([notification])
        pending.add([AddNotification(pod("b"))])
        out = [pending.take()[0] for _ in range(3)]
        assert out == [DeleteNotification(old), AddNotification(newer), AddNotification(pod("b"))]
        assert not pending.waiting

    def test_close_drops_all(self) -> None:
        pending = make_pending("coalesce", 1, key_of)
        pending.add([AddNotification(pod("a"))])
        pending.close()
        assert not pending.waiting


A, B, C = (pod("a", version=version) for version in "123")
TOMB = DeletedFinalStateUnknown("ns/a", B)


@pytest.mark.parametrize(
    ("first", "then", "expected"),
    [
        (AddNotification(A, True), UpdateNotification(A, B), (AddNotification(B, True),)),
        (AddNotification(A), DeleteNotification(A), ()),
        (UpdateNotification(A, B), UpdateNotification(B, C), (UpdateNotification(A, C),)),
        (UpdateNotification(A, B), UpdateNotification(B, B), (UpdateNotification(A, B),)),
        (UpdateNotification(A, A), UpdateNotification(A, B), (UpdateNotification(A, B),)),
        (UpdateNotification(A, B), DeleteNotification(TOMB), (DeleteNotification(TOMB),)),
        (DeleteNotification(A), AddNotification(B), (DeleteNotification(A), AddNotification(B))),
        (DeleteNotification(A), DeleteNotification(TOMB), (DeleteNotification(A),)),
    ],
)
def test_merge_of_two_notifications(
    first: Notification, then: Notification, expected: tuple[Notification, ...]
) -> None:
    assert merge(first, then) == expected


@given(st.integers(1, 5), st.lists(st.booleans(), max_size=40))
def test_drop_oldest_keeps_the_newest(limit: int, moves: list[bool]) -> None:
    pending = make_pending("drop_oldest", limit, key_of)
    model: list[Notification] = []
    for number, is_append in enumerate(moves):
        if is_append:
            notification = AddNotification(number)
            pending.add([notification])
            model = [*model, notification][-limit:]
        elif model:
            (oldest,) = pending.take()
            assert oldest == model.pop(0)
            pending.record_delivered(oldest)
        assert pending.depth == len(model)


class Slow(ResourceEventHandler[KubeObject]):
    """A handler whose calls wait until the test releases the gate."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.gate = asyncio.Semaphore(0)

    async def on_add(self, obj: KubeObject, is_in_initial_list: bool) -> None:
        await self._record(f"add {obj.name} {obj.resource_version}")

    async def on_update(self, old: KubeObject, new: KubeObject) -> None:
        await self._record(f"update {new.name} {old.resource_version} {new.resource_version}")

    async def on_delete(self, obj: KubeObject | DeletedFinalStateUnknown[Any]) -> None:
        await self._record(f"delete {obj.key}")

    async def _record(self, call: str) -> None:
        await self.gate.acquire()
        self.calls.append(call)


def make_adds(count: int, initial: bool = False) -> list[Notification]:
    return [AddNotification(pod(str(number)), initial) for number in range(count)]


class TestListener:
    async def test_pending_notifications_coalesce_while_handler_is_busy(self) -> None:
        handler = Slow()
        listener = ProcessorListener(handler, backlog="coalesce", name="mine")
        async with run_during(listener.run()):
            listener.add(AddNotification(A))
            await until(lambda: listener.state.handling)
            for _ in range(1000):  # while the handler is at the first call
                listener.add(UpdateNotification(A, B))
                listener.add(UpdateNotification(B, A))
            listener.add(UpdateNotification(A, C))
            listener.add(AddNotification(pod("b")))
            assert (listener.depth, listener.state.coalesced) == (3, 2000)
            for _ in range(3):
                handler.gate.release()
            await until(lambda: listener.depth == 0)
        assert handler.calls == ["add a 1", "update a 1 3", "add b 1"]
        assert str(listener.state) == "mine: 0 waiting (at most 3), 3 delivered, 2000 coalesced"

    async def test_drop_oldest_counts_dropped_notifications(self) -> None:
        handler = Slow()
        listener = ProcessorListener(handler, backlog="drop_oldest", backlog_limit=3, name="mine")
        async with run_during(listener.run()):
            listener.add_all(make_adds(1))
            await until(lambda: listener.state.handling)
            listener.add_all(make_adds(10))
            assert (listener.depth, listener.high_water, listener.state.dropped) == (4, 4, 7)
            for _ in range(4):
                handler.gate.release()
            await until(lambda: listener.depth == 0)
        assert handler.calls == ["add 0 1", "add 7 1", "add 8 1", "add 9 1"]
        assert "7 dropped" in str(listener.state)

    @pytest.mark.parametrize("backlog", ["coalesce", "drop_oldest"])
    async def test_sync_does_not_wait_for_lost_initial_adds(self, backlog: Backlog) -> None:
        """C41: lost to a deletion, or to newer notifications."""
        handler = Slow()
        listener = ProcessorListener(handler, backlog=backlog, backlog_limit=4)
        listener.add_all(make_adds(4, initial=True))
        listener.add_all([DeleteNotification(pod(str(number))) for number in range(4)])
        async with run_during(listener.run()):
            for _ in range(4):
                handler.gate.release()
            await listener.wait_initial_delivered()
            assert listener.has_synced()
            await until(lambda: listener.depth == 0)

    async def test_wait_for_room_returns_when_block_backlog_has_room(self) -> None:
        handler = Slow()
        listener = ProcessorListener(handler, backlog="block", backlog_limit=3)
        async with run_during(listener.run()):
            full = []
            for _ in range(2):
                listener.add_all(make_adds(2))
                full.append(listener.is_full)
            assert full == [False, True]
            async with run_during(listener.wait_for_room()) as waiting:
                handler.gate.release()
                await until(lambda: listener.depth == 3)
                assert not waiting.done()
                handler.gate.release()
                await waiting
            assert listener.depth == 2

    async def test_stop_ends_wait_for_room(self) -> None:
        listener = ProcessorListener(Slow(), backlog="block", backlog_limit=1)
        listener.add_all(make_adds(2))
        async with run_during(listener.wait_for_room()) as waiting:
            await turns(3)
            assert not waiting.done()
            listener.stop()
            await waiting

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"backlog": "ring"}, "no backlog named 'ring'; there are: unbounded, block"),
            ({"backlog_limit": 0}, "1"),
            ({"backlog_limit": None}, "whole number"),
        ],
    )
    def test_invalid_options_are_refused(self, options: Any, message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            ProcessorListener(Slow(), **options)


@given(st.sampled_from(["unbounded", "block", "coalesce"]), moves)
async def test_handler_sees_consistent_history_with_every_lossless_policy(
    backlog: Backlog, moves: list[tuple[str, int] | None]
) -> None:
    """Through a listener. None lets the handler take one notification."""
    store, follower, handler = Store(), Follower(), Slow()

    def take(make: Callable[..., Notification]) -> Callable[..., Any]:
        async def call(*arguments: Any) -> None:
            await handler.gate.acquire()
            follower.take(make(*arguments))

        return call

    for name, make in (
        ("on_add", AddNotification),
        ("on_update", UpdateNotification),
        ("on_delete", DeleteNotification),
    ):
        setattr(handler, name, take(make))
    listener = ProcessorListener(handler, backlog=backlog, backlog_limit=2)
    async with run_during(listener.run()):
        for move in moves:
            if move is None:
                handler.gate.release()
                await until(lambda: handler.gate.locked() or not listener.depth)
            else:
                listener.add(store.change(*move))
        for _ in moves:
            handler.gate.release()
        await until(lambda: listener.depth == 0)
    assert listener.state.failed == 0
    assert follower.known == {obj.key: obj for obj in store.stored.values()}
