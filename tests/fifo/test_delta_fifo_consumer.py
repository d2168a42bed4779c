"""fifo/delta_fifo.py: after a relist the consumer's store equals the server, whatever was missed."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import DeletedFinalStateUnknown, DeltaFIFO, Indexer, Store, meta_namespace_key_func
from aioinformer.errors import RequeueError

from .samples import DELETED, Deltas, obj, raise_error

names = st.sampled_from("abc")


class Informed:
    """A server's state, a queue that misses some changes, and a consumer with a store."""

    def __init__(self, with_known_objects: bool) -> None:
        self.truth: dict[str, Any] = {}
        self.store: Store[Any] = Indexer(meta_namespace_key_func)
        self.fifo = DeltaFIFO(
            known_objects=self.store if with_known_objects else None, emit_delta_type_replaced=True
        )
        self.version = 0
        self.deleted: set[str] = set()  # stored and deleted since; the consumer does not know yet

    async def change(self, verb: str, name: str, is_seen: bool) -> None:
        self.version += 1
        new, key = obj(name, self.version), f"ns/{name}"
        if verb == "delete":
            if self.truth.pop(key, None) is None:
                return
            if is_seen:
                await self.fifo.delete(new)
            return
        write = self.fifo.update if key in self.truth else self.fifo.add
        self.truth[key] = new
        if is_seen:
            await write(new)

    def apply(self, deltas: Deltas, initial: bool) -> None:
        assert deltas
        for before, after in pairwise(deltas):
            assert not before.type == after.type == DELETED
        for delta in deltas:
            if isinstance(delta.object, DeletedFinalStateUnknown):
                assert delta.type is DELETED
                assert not isinstance(delta.object.obj, DeletedFinalStateUnknown)
            if delta.type is DELETED:
                self.store.delete(delta.object)
            else:
                self.store.add(delta.object)


steps = st.lists(
    st.tuples(st.sampled_from(["put", "put", "delete"]), names, st.booleans())
    | st.tuples(st.sampled_from(["relist", "resync", "pop", "pop", "requeue", "fail-and-requeue"])),
    max_size=40,
)


@given(steps, st.booleans())
async def test_store_ends_equal_to_the_server_after_a_relist(
    sequence: list[tuple[Any, ...]], with_known_objects: bool
) -> None:
    """After a relist the store equals the server, whatever was missed; tombstones are never nested.

    Without known objects the queue notices deletions of queued keys only.
    """
    informed = Informed(with_known_objects)
    fifo = informed.fifo
    for step in sequence:
        if step[0] in ("put", "delete"):
            await informed.change(*step)
        elif step[0] == "relist":
            await fifo.replace(list(informed.truth.values()), str(informed.version))
        elif step[0] == "resync":
            await fifo.resync()
        elif len(fifo):
            if step[0] == "pop":
                await fifo.pop(informed.apply)
            elif step[0] == "requeue":
                await fifo.pop(raise_error(RequeueError()))
            else:
                with pytest.raises(ValueError):
                    await fifo.pop(raise_error(RequeueError(ValueError())))
        keys = fifo.list_keys()
        assert len(keys) == len(set(keys)) == len(fifo)
        assert all(fifo.get_by_key(key) for key in keys)
    await fifo.replace(list(informed.truth.values()), str(informed.version))
    while len(fifo):
        await fifo.pop(informed.apply)
    assert fifo.has_synced()
    stored = {key: informed.store.get_by_key(key) for key in informed.store.list_keys()}
    if with_known_objects:
        assert stored == informed.truth
    else:
        assert informed.truth.items() <= stored.items()
