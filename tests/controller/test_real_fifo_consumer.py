"""RealFIFO and a store: after a relist they equal the server, whatever was missed, requeued or cancelled."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import Indexer, RealFIFO, meta_namespace_key_func
from aioinformer.cache import AddNotification, DeleteNotification, Delta, DeltaType, Notification
from aioinformer.errors import RequeueError
from aioinformer.objects.keys import deletion_handling_meta_namespace_key_func

from ..samples import pod
from ..steps import cancel_after
from .slices import apply_deltas, apply_in_slices

MODES: dict[str, dict[str, bool]] = {
    "one by one": {},
    "whole": {"atomic_events": True},
    "whole, unlocked": {"atomic_events": True, "unlock_while_processing": True},
    "default": {"atomic_events": True, "unlock_while_processing": True, "emit_delta_type_bookmark": True},
}


class Informed:
    """A server's state, a queue that misses some changes, and a consumer with a store and notifications.

    Attributes:
        copy: The objects according to the notifications.
    """

    def __init__(self, mode: str) -> None:
        self.truth: dict[str, Any] = {}
        self.store: Indexer[Any] = Indexer(
            meta_namespace_key_func, {"version": lambda obj: [obj.resource_version]}
        )
        options: dict[str, Any] = dict(MODES[mode])
        self.fifo = RealFIFO(known_objects=None if options else self.store, batch_size=3, **options)
        self.version = 0
        self.copy: dict[str, Any] = {}
        self.wrong: list[Notification] = []

    async def change(self, verb: str, name: str, is_seen: bool) -> None:
        self.version += 1
        new, key = pod(name, version=str(self.version)), f"ns/{name}"
        if verb == "delete":
            if self.truth.pop(key, None) is not None and is_seen:
                await self.fifo.delete(new)
            return
        write = self.fifo.update if key in self.truth else self.fifo.add
        self.truth[key] = new
        if is_seen:
            await write(new)

    async def relist(self) -> None:
        await self.fifo.replace(list(self.truth.values()), str(self.version))

    async def process(self, deltas: list[Delta], is_in_initial_list: bool) -> None:
        await asyncio.sleep(0)
        if deltas[0].type in (DeltaType.REPLACED_ALL, DeltaType.SYNC_ALL):
            await apply_in_slices(self.store, deltas[0], self.notify_all)
            return
        for notification in apply_deltas(self.store, deltas, is_in_initial_list):
            self.notify(notification)

    def notify_all(self, notifications: list[Notification]) -> None:
        for notification in notifications:
            self.notify(notification)

    def notify(self, notification: Notification) -> None:
        key = deletion_handling_meta_namespace_key_func(notification.obj)
        if isinstance(notification, DeleteNotification):
            self.copy.pop(key, None)
            return
        known = self.copy.get(key)
        if known is not (None if isinstance(notification, AddNotification) else notification.old):
            self.wrong.append(notification)
        self.copy[key] = notification.new

    async def relist_and_check(self) -> None:
        await self.relist()
        while len(self.fifo):
            await self.fifo.pop_batch(self.process, self.process)
        assert {obj.key: obj for obj in self.store.list()} == self.truth
        indexed = self.store.list_index_func_values("version")
        assert sorted(indexed) == sorted(obj.resource_version for obj in self.truth.values())
        assert self.fifo.has_synced()


changes = st.tuples(st.sampled_from(["put", "put", "delete"]), st.sampled_from("abc"), st.booleans())
verbs = st.tuples(
    st.sampled_from(["relist", "resync", "bookmark", "pop", "pop_batch", "pop_batches", "requeue"])
)
cancelled = st.tuples(
    st.sampled_from(["cancel pop", "cancel pop_batch", "cancel relist", "cancel resync"]), st.integers(0, 12)
)


async def refuse(deltas: list[Delta], is_in_initial_list: bool) -> None:
    raise RequeueError


async def play(informed: Informed, sequence: list[tuple[Any, ...]]) -> None:
    fifo = informed.fifo
    for verb, *arguments in sequence:
        count = arguments[0] if arguments else 0
        match verb:
            case "put" | "delete":
                await informed.change(verb, *arguments)
            case "relist":
                await informed.relist()
            case "resync":
                await fifo.resync()
            case "bookmark":
                await fifo.bookmark(str(informed.version))
            case "cancel relist":
                await cancel_after(count, informed.relist())
            case "cancel resync":
                await cancel_after(count, fifo.resync())
            case _ if not len(fifo):
                pass
            case "pop":
                await fifo.pop(informed.process)
            case "pop_batch":
                await fifo.pop_batch(informed.process)
            case "pop_batches":
                await fifo.pop_batch(informed.process, informed.process)
            case "requeue":
                await fifo.pop_batch(refuse, refuse)
            case "cancel pop":
                await cancel_after(count, fifo.pop(informed.process))
            case "cancel pop_batch":
                await cancel_after(count, fifo.pop_batch(informed.process, informed.process))


@pytest.mark.parametrize("mode", MODES)
@given(st.lists(changes | changes | verbs, max_size=40))
async def test_store_and_handlers_copy_end_equal_to_the_server(
    mode: str, sequence: list[tuple[Any, ...]]
) -> None:
    """C16 to C24 and C31 to C34: also, every notification fits the ones before it."""
    informed = Informed(mode)
    await play(informed, sequence)
    await informed.relist_and_check()
    assert informed.copy == informed.truth
    assert not informed.wrong


@pytest.mark.parametrize("mode", MODES)
@given(st.lists(changes | changes | verbs | cancelled | cancelled, max_size=40))
async def test_store_ends_equal_to_the_server_after_cancellations(
    mode: str, sequence: list[tuple[Any, ...]]
) -> None:
    """Cancelled at every await, each verb has happened as a whole or not at all."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("aioinformer._core.coop.SLICE", -1.0)  # a pause at each step
        informed = Informed(mode)
        await play(informed, sequence)
        await informed.relist_and_check()
