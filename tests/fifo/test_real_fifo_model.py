"""fifo/real_fifo.py: any sequence of verbs, in every mode, against a simple model of the rules."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import DeletedFinalStateUnknown, RealFIFO, Store
from aioinformer.cache import BookmarkInfo, Delta, DeltaType, ReplacedAllInfo, SyncAllInfo
from aioinformer.errors import RequeueError

from .samples import (
    ADDED,
    BOOKMARK,
    DELETED,
    REPLACED,
    REPLACED_ALL,
    SYNC,
    SYNC_ALL,
    UPDATED,
    Deltas,
    obj,
    store_of,
    tombstone,
)

BATCH = 3


class Model:
    """A simple model of RealFIFO's rules: a list, and how many of its deltas are in the first list."""

    def __init__(self, store: Store[Any] | None, bookmarks: bool) -> None:
        self.queue: Deltas = []
        self.store = store
        self.bookmarks = bookmarks
        self.populated = False
        self.initial = 0

    def enqueue(self, delta: Delta) -> None:
        self.populated = True
        self.queue.append(delta)

    def replace(self, objects: list[Any], version: str) -> None:
        if self.store is None:
            self.queue.append(Delta(REPLACED_ALL, ReplacedAllInfo(version, objects)))
        else:
            listed = {new.key for new in objects}
            last = {delta.object.key: delta for delta in self.queue}
            states = {
                **{key: delta.object for key, delta in last.items() if delta.type is not DELETED},
                **{stored.key: stored for stored in self.store.list() if stored.key not in last},
            }
            for key, state in states.items():
                if key not in listed:
                    self.queue.append(Delta(DELETED, DeletedFinalStateUnknown(key, state)))
            self.queue += [Delta(REPLACED, new) for new in objects]
        if not self.populated:
            self.populated = True
            self.initial = len(self.queue)

    def resync(self) -> None:
        if self.store is None:
            self.queue.append(Delta(SYNC_ALL, SyncAllInfo()))
            return
        queued = {delta.object.key for delta in self.queue}
        self.queue += [Delta(SYNC, stored) for stored in self.store.list() if stored.key not in queued]

    def bookmark(self, version: str) -> None:
        if self.bookmarks:
            self.queue.append(Delta(BOOKMARK, BookmarkInfo(version)))

    def batch(self) -> Deltas:
        """Return the next batch."""
        batch: Deltas = []
        for delta in self.queue[: self.initial or None][:BATCH]:
            whole = delta.type in (REPLACED_ALL, SYNC_ALL, BOOKMARK)
            if not batch and whole:
                return [delta]
            if whole or delta.object.key in {delta.object.key for delta in batch}:
                break
            batch.append(delta)
        return batch

    def remove(self, count: int) -> None:
        del self.queue[:count]
        self.initial = max(0, self.initial - count)

    def has_synced(self) -> bool:
        return self.populated and not self.initial


names = st.sampled_from("abcd")
commands = st.lists(
    st.tuples(st.sampled_from([ADDED, UPDATED, DELETED]), names)
    | st.tuples(st.just("tombstone"), names)
    | st.tuples(st.just("replace"), st.lists(names, max_size=5))
    | st.tuples(
        st.sampled_from(
            ["resync", "bookmark", "pop", "pop_batch", "pop_batch", "requeue", "requeue_batch", "fail"]
        ),
        st.none(),
    ),
    max_size=40,
)


def apply(store: Store[Any], deltas: Deltas) -> None:
    for delta_type, what in deltas:
        (store.delete if delta_type is DELETED else store.add)(what)


@pytest.mark.parametrize(
    ("atomic", "bookmarks", "unlocked"),
    [
        (False, False, False),
        (True, False, False),
        (True, True, False),
        (True, False, True),
        (True, True, True),
    ],
)
@given(commands)
async def test_any_sequence_equals_the_model(
    atomic: bool, bookmarks: bool, unlocked: bool, sequence: list[tuple[Any, Any]]
) -> None:
    """C16 to C28 in every order."""
    store = None if atomic else store_of(obj("a", 0), obj("x", 0))
    fifo = RealFIFO(
        known_objects=store,
        atomic_events=atomic,
        emit_delta_type_bookmark=bookmarks,
        unlock_while_processing=unlocked,
        batch_size=BATCH,
    )
    model = Model(store, bookmarks)
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
            model.replace(objects, str(number))
        elif verb == "resync":
            await fifo.resync()
            model.resync()
        elif verb == "bookmark":
            await fifo.bookmark(str(number))
            model.bookmark(str(number))
        elif model.queue:
            is_batch = verb in ("pop_batch", "requeue_batch")
            expected = model.batch() if is_batch else model.queue[:1]
            initial = not model.has_synced()
            seen: list[tuple[Deltas, bool]] = []

            async def process(deltas: Deltas, is_initial: bool, seen: Any = seen, verb: str = verb) -> None:
                seen.append((deltas, is_initial))
                if verb.startswith("requeue"):
                    raise RequeueError
                if verb == "fail":
                    raise ValueError

            popping = fifo.pop_batch(process, process) if is_batch else fifo.pop(process)
            if verb == "fail":
                with pytest.raises(ValueError):
                    await popping
            else:
                assert await popping == (len(expected) if is_batch else expected)
            assert seen == [(expected, initial)]
            if not verb.startswith("requeue"):
                model.remove(len(expected))
                if store is not None:
                    apply(store, expected)
        assert fifo.queued == model.queue
        assert fifo.has_synced() == model.has_synced()
        assert len(fifo) == fifo.unfinished == len(model.queue)
