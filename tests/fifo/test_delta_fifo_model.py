"""fifo/delta_fifo.py: any sequence of verbs against a simple model of the rules."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aioinformer import DeletedFinalStateUnknown, DeltaFIFO, Store
from aioinformer.cache import Delta, DeltaType
from aioinformer.errors import RequeueError

from .samples import ADDED, DELETED, REPLACED, SYNC, UPDATED, Deltas, obj, raise_error, store_of, tombstone

names = st.sampled_from("abc")


class Model:
    """A simple model of DeltaFIFO's rules."""

    def __init__(self, known_objects: Store[Any] | None) -> None:
        self.queue: list[str] = []
        self.items: dict[str, Deltas] = {}
        self.known = known_objects

    def append(self, key: str, delta: Delta) -> None:
        deltas = self.items.setdefault(key, [])
        if key not in self.queue:
            self.queue.append(key)
        if delta.type is DELETED and deltas and deltas[-1].type is DELETED:
            if not isinstance(deltas[-1].object, DeletedFinalStateUnknown):
                return
            deltas.pop()
        deltas.append(delta)

    def enqueue(self, delta: Delta) -> None:
        key = delta.object.key
        is_known = key in self.items or (self.known is not None and key in self.known)
        if delta.type is not DELETED or is_known:
            self.append(key, delta)

    def replace(self, objects: list[Any]) -> None:
        listed = {new.key for new in objects}
        for new in objects:
            self.append(new.key, Delta(REPLACED, new))
        for key in [*self.queue, *(self.known.list_keys() if self.known is not None else [])]:
            if key in listed:
                continue
            listed.add(key)
            if key in self.items:
                last = self.items[key][-1].object
                last = last.obj if isinstance(last, DeletedFinalStateUnknown) else last
            else:
                assert self.known is not None
                last = self.known.get_by_key(key)
            self.append(key, Delta(DELETED, DeletedFinalStateUnknown(key, last)))

    def resync(self) -> None:
        for stored in self.known.list() if self.known is not None else []:
            if stored.key not in self.items:
                self.append(stored.key, Delta(SYNC, stored))

    def pop(self) -> Deltas:
        return self.items.pop(self.queue.pop(0))

    def put_back(self, deltas: Deltas) -> None:
        key = deltas[-1].object.key
        if key not in self.items:
            self.queue.append(key)
            self.items[key] = deltas


commands = st.lists(
    st.tuples(st.sampled_from([ADDED, UPDATED, DELETED]), names)
    | st.tuples(st.just("tombstone"), names)
    | st.tuples(st.just("replace"), st.lists(names, max_size=4))
    | st.tuples(st.sampled_from(["resync", "pop", "requeue", "add_if_not_present"]), st.none()),
    max_size=40,
)


@given(commands, st.booleans())
async def test_any_sequence_equals_the_model(
    sequence: list[tuple[Any, Any]], with_known_objects: bool
) -> None:
    """C1 to C11 in every order."""
    store = store_of(obj("a", 0), obj("x", 0)) if with_known_objects else None
    fifo = DeltaFIFO(known_objects=store, emit_delta_type_replaced=True)
    model = Model(store)
    last: Deltas = []
    for number, (verb, what) in enumerate(sequence, start=1):
        if isinstance(verb, DeltaType) or verb == "tombstone":
            change = obj(what, number)
            if verb == "tombstone":
                verb, change = DELETED, tombstone(what, change)
            await fifo.apply([Delta(verb, change)])
            model.enqueue(Delta(verb, change))
        elif verb == "replace":
            objects = [obj(name, number) for name in what]
            await fifo.replace(objects, str(number))
            model.replace(objects)
        elif verb == "resync":
            await fifo.resync()
            model.resync()
        elif verb == "add_if_not_present":
            if last:
                await fifo.add_if_not_present(last)
                model.put_back(list(last))
        elif model.queue:
            if verb == "pop":
                last = await fifo.pop(lambda deltas, initial: None)
                assert last == model.pop()
                for delta in last:
                    if store is not None:
                        (store.delete if delta.type is DELETED else store.add)(delta.object)
            else:
                await fifo.pop(raise_error(RequeueError()))
                model.put_back(model.pop())
        assert fifo.list_keys() == model.queue
        assert {key: fifo.get_by_key(key) for key in fifo.list_keys()} == model.items
