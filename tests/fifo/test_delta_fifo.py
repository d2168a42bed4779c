"""fifo/delta_fifo.py: the rules of the queue. Corners C1 to C15 of the reference."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import (
    DeletedFinalStateUnknown,
    Delta,
    DeltaFIFO,
    DeltaType,
    ExplicitKey,
    Indexer,
    KeyFuncError,
    RequeueError,
    Store,
    TransformError,
    meta_namespace_key_func,
)

from ..samples import pod

ADDED, UPDATED, DELETED, REPLACED, SYNC = DeltaType

Deltas = list[Delta]


def obj(name: str, version: int | str = 1) -> Any:
    return pod(name, version=str(version))


def known(*objects: Any) -> Store[Any]:
    store: Store[Any] = Store(meta_namespace_key_func)
    store.replace(objects)
    return store


def tombstone(name: str, last: Any) -> DeletedFinalStateUnknown[Any]:
    return DeletedFinalStateUnknown(f"ns/{name}", last)


async def drained(fifo: DeltaFIFO) -> list[Deltas]:
    return [await fifo.pop(lambda deltas, initial: None) for _ in range(len(fifo))]


async def replacing(*objects: Any, known_objects: Any = None) -> DeltaFIFO:
    fifo = DeltaFIFO(known_objects=known_objects, emit_delta_type_replaced=True)
    await fifo.replace(list(objects), "1")
    return fifo


class TestQueueing:
    async def test_all_that_happened_to_a_key_is_one_item(self) -> None:
        fifo = DeltaFIFO()
        await fifo.add(obj("a", 1))
        await fifo.add(obj("b", 1))
        await fifo.update(obj("a", 2))
        await fifo.delete(obj("a", 3))
        assert len(fifo) == 2
        assert await drained(fifo) == [
            [Delta(ADDED, obj("a", 1)), Delta(UPDATED, obj("a", 2)), Delta(DELETED, obj("a", 3))],
            [Delta(ADDED, obj("b", 1))],
        ]

    async def test_c11_a_popped_key_goes_to_the_back_and_a_queued_one_keeps_its_place(self) -> None:
        """C11 TestDeltaFIFO_detectLineJumpers."""
        fifo = DeltaFIFO()
        for name in ("a", "b", "c"):
            await fifo.add(obj(name))
        (popped,) = [await fifo.pop(lambda deltas, initial: None)]
        assert popped[0].object == obj("a")
        await fifo.update(obj("a", 2))
        await fifo.update(obj("b", 2))
        assert fifo.list_keys() == ["ns/b", "ns/c", "ns/a"]

    async def test_process_is_given_what_pop_returns(self) -> None:
        fifo = DeltaFIFO()
        await fifo.add(obj("a"))
        given_to: list[tuple[Deltas, bool]] = []
        popped = await fifo.pop(lambda deltas, initial: given_to.append((deltas, initial)))
        assert given_to == [(popped, False)]

    async def test_reading_does_not_change_it(self) -> None:
        fifo = DeltaFIFO()
        await fifo.add(obj("a"))
        deltas = fifo.get_by_key("ns/a")
        assert deltas is not None
        assert deltas == [Delta(ADDED, obj("a"))]
        deltas.clear()
        fifo.list_keys().clear()
        assert fifo.get_by_key("ns/a") == [Delta(ADDED, obj("a"))]
        assert fifo.get_by_key("ns/b") is None

    async def test_high_water(self) -> None:
        fifo = DeltaFIFO()
        assert fifo.high_water == 0
        for name in "abc":
            await fifo.add(obj(name))
        await drained(fifo)
        assert (len(fifo), fifo.high_water) == (0, 3)

    def test_keys_of_everything_that_is_queued(self) -> None:
        fifo = DeltaFIFO()
        for what in (
            obj("a"),
            tombstone("a", None),
            ExplicitKey("ns/a"),
            [Delta(ADDED, obj("b")), Delta(DELETED, tombstone("a", None))],
        ):
            assert fifo.key_of(what) == "ns/a"
        keyless: list[Any] = [[], None, {}, [Delta(ADDED, {})]]
        for wrong in keyless:
            with pytest.raises(KeyFuncError):
                fifo.key_of(wrong)

    async def test_many_deltas_of_one_key_cost_no_more_each(self) -> None:
        fifo = DeltaFIFO()
        await fifo.apply([Delta(UPDATED, obj("a"))] * 100_000)
        assert len(await fifo.pop(lambda deltas, initial: None)) == 100_000


class TestDeletions:
    async def test_c1_of_two_real_deletions_the_older_stays(self) -> None:
        fifo = DeltaFIFO()
        await fifo.add(obj("a"))
        await fifo.delete(obj("a", 2))
        await fifo.delete(obj("a", 3))
        assert await drained(fifo) == [[Delta(ADDED, obj("a")), Delta(DELETED, obj("a", 2))]]

    async def test_c1_a_tombstone_gives_way_to_a_real_deletion(self) -> None:
        fifo = DeltaFIFO()
        await fifo.add(obj("a"))
        await fifo.delete(tombstone("a", obj("a")))
        await fifo.delete(obj("a", 2))
        await fifo.delete(obj("a", 3))
        assert await drained(fifo) == [[Delta(ADDED, obj("a")), Delta(DELETED, obj("a", 2))]]

    async def test_c1_a_tombstone_after_a_real_deletion_is_dropped(self) -> None:
        fifo = DeltaFIFO()
        await fifo.add(obj("a"))
        await fifo.delete(obj("a", 2))
        await fifo.delete(tombstone("a", obj("a")))
        assert await drained(fifo) == [[Delta(ADDED, obj("a")), Delta(DELETED, obj("a", 2))]]

    async def test_c1_deletions_apart_both_stay(self) -> None:
        fifo = DeltaFIFO()
        for verb in (fifo.add, fifo.delete, fifo.add, fifo.delete):
            await verb(obj("a"))
        assert [delta.type for delta in (await drained(fifo))[0]] == [ADDED, DELETED, ADDED, DELETED]

    async def test_c2_deleting_what_nobody_knows_queues_nothing(self) -> None:
        """C2 TestDeltaFIFO_enqueueingNoLister."""
        for known_objects in (None, known(obj("b"))):
            fifo = DeltaFIFO(known_objects=known_objects)
            assert not fifo.has_synced()
            await fifo.delete(obj("a"))
            await fifo.delete(tombstone("a", None))
            assert len(fifo) == 0
            assert fifo.has_synced()  # it counts as populated all the same

    async def test_c3_deleting_what_is_only_known(self) -> None:
        """C3 TestDeltaFIFO_enqueueingWithLister."""
        fifo = DeltaFIFO(known_objects=known(obj("a")))
        await fifo.delete(obj("a", 2))
        assert await drained(fifo) == [[Delta(DELETED, obj("a", 2))]]

    async def test_c4_deleting_what_is_only_queued(self) -> None:
        """C4 TestDeltaFIFO_DeleteExistingNonPropagated."""
        fifo = DeltaFIFO(known_objects=known())
        await fifo.add(obj("a", 1))
        await fifo.delete(obj("a", 2))
        assert await drained(fifo) == [[Delta(ADDED, obj("a", 1)), Delta(DELETED, obj("a", 2))]]

    async def test_where_known_objects_fail_the_deletion_is_kept(self) -> None:
        class Broken(Store[Any]):
            def get_by_key(self, key: str) -> Any:
                raise ConnectionError

        fifo = DeltaFIFO(known_objects=Broken())
        await fifo.apply([Delta(ADDED, obj("a")), Delta(DELETED, obj("b")), Delta(ADDED, obj("c"))])
        assert fifo.list_keys() == ["ns/a", "ns/b", "ns/c"]


class TestReplace:
    async def test_replaced_or_sync(self) -> None:
        for emit, expected in ((True, REPLACED), (False, SYNC)):
            fifo = DeltaFIFO(emit_delta_type_replaced=emit)
            await fifo.replace([obj("a")], "1")
            assert await drained(fifo) == [[Delta(expected, obj("a"))]]

    async def test_c5_after_a_queued_deletion_the_object_is_queued_again(self) -> None:
        """C5 TestDeltaFIFO_replaceWithDeleteDeltaIn (kubernetes #83810)."""
        fifo = DeltaFIFO(known_objects=known(obj("a")), emit_delta_type_replaced=True)
        await fifo.delete(obj("a", 2))
        await fifo.replace([obj("a", 3)], "3")
        assert await drained(fifo) == [[Delta(DELETED, obj("a", 2)), Delta(REPLACED, obj("a", 3))]]

    @pytest.mark.parametrize("known_objects", [None, known()], ids=["alone", "with known objects"])
    async def test_c6_what_is_only_queued_gets_a_tombstone_of_its_newest_state(
        self, known_objects: Any
    ) -> None:
        """C6 TestDeltaFIFOW_ReplaceMakesDeletionsForObjectsOnlyInQueue."""
        fifo = DeltaFIFO(known_objects=known_objects)
        await fifo.add(obj("a", 1))
        await fifo.update(obj("a", 2))
        await fifo.replace([], "3")
        assert (await drained(fifo))[0][-1] == Delta(DELETED, tombstone("a", obj("a", 2)))

    async def test_c6_a_tombstone_is_never_nested(self) -> None:
        fifo = DeltaFIFO(known_objects=known(obj("a")))
        for version in ("2", "3", "4"):
            await fifo.replace([], version)
        assert await drained(fifo) == [[Delta(DELETED, tombstone("a", obj("a")))]]

    async def test_c6_a_real_deletion_that_is_queued_stays(self) -> None:
        fifo = DeltaFIFO(known_objects=known(obj("a")))
        await fifo.delete(obj("a", 2))
        await fifo.replace([], "3")
        assert await drained(fifo) == [[Delta(DELETED, obj("a", 2))]]

    async def test_c7_a_tombstone_prefers_the_queue_to_known_objects(self) -> None:
        """C7 TestDeltaFIFO_ReplaceMakesDeletions."""
        fifo = DeltaFIFO(known_objects=known(obj("a", 1), obj("b", 1)))
        await fifo.update(obj("a", 2))
        await fifo.replace([], "3")
        assert await drained(fifo) == [
            [Delta(UPDATED, obj("a", 2)), Delta(DELETED, tombstone("a", obj("a", 2)))],
            [Delta(DELETED, tombstone("b", obj("b", 1)))],
        ]

    @pytest.mark.parametrize("error", [None, ConnectionError()], ids=["misses", "raises"])
    async def test_c8_where_known_objects_cannot_say_the_tombstone_is_empty(self, error: Any) -> None:
        class Forgetful(Store[Any]):
            def get_by_key(self, key: str) -> Any:
                if error is not None:
                    raise error

        store = Forgetful()
        store.add(obj("a"))
        fifo = await replacing(known_objects=store)
        assert await drained(fifo) == [[Delta(DELETED, tombstone("a", None))]]

    async def test_c9_what_is_new_comes_first_and_then_deletions(self) -> None:
        """C9 TestDeltaFIFO_ReplaceMakesDeletionsReplaced."""
        fifo = await replacing(obj("c"), obj("b"), known_objects=known(obj("a"), obj("b")))
        assert await drained(fifo) == [
            [Delta(REPLACED, obj("c"))],
            [Delta(REPLACED, obj("b"))],
            [Delta(DELETED, tombstone("a", obj("a")))],
        ]

    async def test_an_object_listed_twice_is_one_item(self) -> None:
        fifo = await replacing(obj("a", 1), obj("a", 2))
        assert await drained(fifo) == [[Delta(REPLACED, obj("a", 1)), Delta(REPLACED, obj("a", 2))]]
        assert fifo.has_synced()

    async def test_an_explicit_key_is_there_without_news(self) -> None:
        fifo = await replacing(ExplicitKey("ns/a"), obj("b"), known_objects=known(obj("a"), obj("c")))
        assert fifo.list_keys() == ["ns/b", "ns/c"]

    async def test_what_has_no_key_does_not_stop_the_others(self) -> None:
        fifo = DeltaFIFO(known_objects=known(obj("x")))
        with pytest.raises(KeyFuncError) as caught:
            await fifo.replace([{}, obj("a"), None, obj("b")], "1")
        assert len(caught.value.all()) == 2
        assert fifo.list_keys() == ["ns/a", "ns/b", "ns/x"]
        await drained(fifo)
        assert fifo.has_synced()


class TestResync:
    async def test_known_objects_are_repeated(self) -> None:
        fifo = DeltaFIFO(known_objects=known(obj("a"), obj("b")))
        await fifo.resync()
        assert await drained(fifo) == [[Delta(SYNC, obj("a"))], [Delta(SYNC, obj("b"))]]

    async def test_without_known_objects_there_is_nothing_to_repeat(self) -> None:
        fifo = DeltaFIFO()
        await fifo.resync()
        assert len(fifo) == 0
        assert not fifo.has_synced()

    async def test_c10_what_has_anything_queued_is_skipped(self) -> None:
        """C10 TestDeltaFIFO_UpdateResyncRace, TestDeltaFIFO_ResyncNonExisting."""
        fifo = DeltaFIFO(known_objects=known(obj("a"), obj("b"), obj("c")))
        await fifo.update(obj("a", 2))
        await fifo.delete(obj("b", 2))
        await fifo.resync()
        await fifo.resync()
        assert await drained(fifo) == [
            [Delta(UPDATED, obj("a", 2))],
            [Delta(DELETED, obj("b", 2))],
            [Delta(SYNC, obj("c"))],
        ]

    async def test_a_known_object_that_fails_is_left_out(self, caplog: pytest.LogCaptureFixture) -> None:
        class Broken(Store[Any]):
            def get_by_key(self, key: str) -> Any:
                if key == "ns/a":
                    raise ConnectionError
                return None if key == "ns/b" else super().get_by_key(key)

        store = Broken()
        store.replace([obj("a"), obj("b"), obj("c")])
        fifo = DeltaFIFO(known_objects=store)
        await fifo.resync()
        assert fifo.list_keys() == ["ns/c"]
        assert "known objects failed on ns/a" in caplog.text


class TestSynced:
    async def test_c12_synced_after_the_last_of_the_first_list(self) -> None:
        """C12 TestDeltaFIFO_HasSynced: list and deletions count."""
        fifo = await replacing(obj("a"), obj("b"), known_objects=known(obj("x")))
        initial: list[bool] = []
        for left in (2, 1, 0):
            assert not fifo.has_synced()
            await fifo.pop(lambda deltas, is_initial: initial.append(is_initial))
            assert len(fifo) == left
        assert fifo.has_synced()
        await fifo.add(obj("c"))
        await fifo.pop(lambda deltas, is_initial: initial.append(is_initial))
        assert initial == [True, True, True, False]
        await fifo.wait_synced()

    async def test_c12_a_queued_deletion_counts_too(self) -> None:
        """C12 TestDeltaFIFO_HasSyncedCorrectOnDeletion."""
        fifo = DeltaFIFO(known_objects=known(obj("x"), obj("y")))
        await fifo.replace([obj("a")], "1")
        await drained(fifo)
        assert fifo.has_synced()

    async def test_w2_not_synced_before_the_last_item_was_worked_off(self) -> None:
        """Where we differ: upstream turns true before it."""
        fifo = await replacing(obj("a"))
        seen: list[bool] = []
        await fifo.pop(lambda deltas, initial: seen.append(fifo.has_synced()))
        assert seen == [False]
        assert fifo.has_synced()

    async def test_c13_an_empty_first_list_is_synced(self) -> None:
        fifo = await replacing()
        assert fifo.has_synced()
        await fifo.wait_synced()

    @pytest.mark.parametrize("verb", ["add", "update", "delete"])
    async def test_any_other_first_verb_is_synced(self, verb: str) -> None:
        fifo = DeltaFIFO()
        await getattr(fifo, verb)(obj("a"))
        await fifo.replace([obj("a"), obj("b")], "1")
        assert fifo.has_synced()

    async def test_later_lists_change_nothing(self) -> None:
        fifo = await replacing(obj("a"))
        await drained(fifo)
        await fifo.replace([obj("a"), obj("b")], "2")
        assert fifo.has_synced()

    async def test_a_second_list_before_the_first_was_worked_off(self) -> None:
        fifo = await replacing(obj("a"), obj("b"))
        await fifo.replace([obj("b"), obj("c")], "2")
        await fifo.pop(lambda deltas, initial: None)
        assert not fifo.has_synced()
        await fifo.pop(lambda deltas, initial: None)
        assert fifo.has_synced()

    async def test_what_comes_meanwhile_does_not_stand_in_for_what_was_put_back(self) -> None:
        fifo = await replacing(obj("a"), obj("b"))
        await fifo.add(obj("new"))
        refused = 0

        def process(deltas: Deltas, initial: bool) -> None:
            nonlocal refused
            if deltas[0].object.name == "a" and not refused:
                refused += 1
                raise RequeueError

        for _ in range(3):
            await fifo.pop(process)
            assert not fifo.has_synced()
        assert fifo.list_keys() == ["ns/a"]
        await fifo.pop(process)
        assert fifo.has_synced()

    async def test_an_item_that_failed_counts_as_worked_off(self) -> None:
        fifo = await replacing(obj("a"))
        with pytest.raises(ValueError):
            await fifo.pop(raising(ValueError()))
        assert fifo.has_synced()


def raising(error: BaseException) -> Callable[[Deltas, bool], None]:
    def process(deltas: Deltas, initial: bool) -> None:
        raise error

    return process


class TestTransformer:
    async def test_c14_what_is_transformed_and_what_is_not(self) -> None:
        """C14 TestDeltaFIFO_transformer."""
        calls: list[str] = []

        def transform(what: Any) -> Any:
            calls.append(what.key)
            return pod(what.name, version="transformed")

        fifo = DeltaFIFO(
            known_objects=known(obj("gone"), obj("deleted"), obj("synced")),
            emit_delta_type_replaced=True,
            transformer=transform,
        )
        await fifo.replace([obj("listed"), obj("deleted"), obj("synced")], "1")
        assert calls == ["ns/listed", "ns/deleted", "ns/synced"]
        popped = await drained(fifo)
        assert popped[0] == [Delta(REPLACED, obj("listed", "transformed"))]
        assert popped[3] == [Delta(DELETED, tombstone("gone", obj("gone")))]
        await fifo.add(obj("a"))
        await fifo.update(obj("a"))
        await fifo.delete(obj("a"))
        await fifo.delete(tombstone("gone", obj("gone")))
        assert calls[3:] == ["ns/a"] * 3
        assert [delta.object.resource_version for delta in (await drained(fifo))[0]] == ["transformed"] * 3
        await fifo.resync()
        assert len(calls) == 6

    @pytest.mark.parametrize("wrong", ["raises", "None"])
    async def test_one_that_fails_loses_neither_deletions_nor_others(self, wrong: str) -> None:
        def transform(what: Any) -> Any:
            if what.name != "bad":
                return what
            if wrong == "raises":
                raise ValueError("no")
            return None

        fifo = DeltaFIFO(known_objects=known(obj("bad")), transformer=transform)
        with pytest.raises(TransformError, match="transforming ns/bad at 2 failed") as caught:
            await fifo.apply(
                [Delta(UPDATED, obj("bad", 2)), Delta(ADDED, obj("a")), Delta(DELETED, obj("bad", 3))]
            )
        assert len(caught.value.all()) == 2
        assert await drained(fifo) == [[Delta(ADDED, obj("a"))], [Delta(DELETED, obj("bad", 3))]]

    async def test_one_that_fails_on_a_list_takes_the_others_and_deletes_nothing(self) -> None:
        def transform(what: Any) -> Any:
            if what.name == "bad":
                raise ValueError("no")
            return what

        fifo = DeltaFIFO(known_objects=known(obj("bad"), obj("gone")), transformer=transform)
        with pytest.raises(TransformError):
            await fifo.replace([obj("a"), obj("bad", 2), obj("b")], "2")
        assert fifo.list_keys() == ["ns/a", "ns/b", "ns/gone"]
        await drained(fifo)
        assert fifo.has_synced()


class TestKeyFunctions:
    async def test_one_that_fails_stops_no_other(self) -> None:
        def key_func(what: Any) -> Any:
            if what.name == "bad":
                raise ZeroDivisionError
            return None if what.name == "keyless" else what.key

        fifo = DeltaFIFO(key_func)
        with pytest.raises(KeyFuncError) as caught:
            await fifo.apply([Delta(ADDED, obj(name)) for name in ("bad", "a", "keyless", "b")])
        assert len(caught.value.all()) == 2
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
        assert fifo.list_keys() == ["ns/a", "ns/b"]

    async def test_odd_keys(self) -> None:
        fifo = DeltaFIFO(lambda what: what["id"])
        keys = ["", "a/b/c", "\ud800", "é", "e\u0301", "x" * 100_000]
        await fifo.apply([Delta(ADDED, {"id": key}) for key in keys])
        assert fifo.list_keys() == keys
        await fifo.replace([], "1")
        assert [deltas[-1].object.key for deltas in await drained(fifo)] == keys


class TestPuttingBack:
    async def test_requeue_puts_the_item_back_as_it_was(self) -> None:
        fifo = DeltaFIFO()
        for name in ("a", "b"):
            await fifo.add(obj(name))

        def process(deltas: Deltas, initial: bool) -> None:
            deltas.clear()  # its own copy
            raise RequeueError

        popped = await fifo.pop(process)
        assert popped == [Delta(ADDED, obj("a"))]
        assert fifo.list_keys() == ["ns/b", "ns/a"]
        popped.clear()
        await fifo.update(obj("a", 2))
        assert fifo.get_by_key("ns/a") == [Delta(ADDED, obj("a")), Delta(UPDATED, obj("a", 2))]

    async def test_requeue_raises_its_cause(self) -> None:
        fifo = DeltaFIFO()
        await fifo.add(obj("a"))
        with pytest.raises(KeyError) as caught:
            await fifo.pop(raising(RequeueError(KeyError("why"))))
        assert isinstance(caught.value.__cause__, RequeueError)
        assert len(fifo) == 1

    async def test_any_other_error_is_raised_and_the_item_is_gone(self) -> None:
        fifo = DeltaFIFO()
        await fifo.add(obj("a"))
        with pytest.raises(ValueError):
            await fifo.pop(raising(ValueError()))
        assert len(fifo) == 0

    async def test_add_if_not_present(self) -> None:
        fifo = DeltaFIFO()
        await fifo.add(obj("a", 1))
        deltas = await fifo.pop(lambda deltas, initial: None)
        await fifo.add_if_not_present(deltas)
        deltas.clear()  # the queue keeps its own
        assert fifo.get_by_key("ns/a") == [Delta(ADDED, obj("a", 1))]
        await fifo.add_if_not_present([Delta(UPDATED, obj("a", 0))])
        assert fifo.get_by_key("ns/a") == [Delta(ADDED, obj("a", 1))]
        await fifo.add_if_not_present([Delta(DELETED, tombstone("b", None))])
        assert fifo.list_keys() == ["ns/a", "ns/b"]
        for wrong in ([], [Delta(ADDED, {})]):
            with pytest.raises(KeyFuncError):
                await fifo.add_if_not_present(wrong)


names = st.sampled_from("abc")


class Informed:
    """A server's truth, a queue that hears of it with gaps, and a consumer that keeps a store."""

    def __init__(self, with_known_objects: bool) -> None:
        self.truth: dict[str, Any] = {}
        self.store: Store[Any] = Indexer(meta_namespace_key_func)
        self.fifo = DeltaFIFO(
            known_objects=self.store if with_known_objects else None, emit_delta_type_replaced=True
        )
        self.version = 0
        self.deleted: set[str] = set()  # stored once, deleted since, and the consumer not told yet

    async def change(self, verb: str, name: str, is_seen: bool) -> None:
        self.version += 1
        new, key = obj(name, self.version), f"ns/{name}"
        if verb == "delete":
            if self.truth.pop(key, None) is None:
                return
            if is_seen:
                await self.fifo.delete(new)
            return
        tell = self.fifo.update if key in self.truth else self.fifo.add
        self.truth[key] = new
        if is_seen:
            await tell(new)

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
async def test_no_final_state_is_ever_lost(sequence: list[tuple[Any, ...]], with_known_objects: bool) -> None:
    """Whatever was missed, after a relist the consumer's store equals the truth; tombstones are never nested.

    Without known objects only deletions of what is queued are noticed, so all that was read must be.
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
                await fifo.pop(raising(RequeueError()))
            else:
                with pytest.raises(ValueError):
                    await fifo.pop(raising(RequeueError(ValueError())))
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


class Model:
    """DeltaFIFO's rules once more, as plainly as can be."""

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
        listed = {each.key for each in objects}
        for each in objects:
            self.append(each.key, Delta(REPLACED, each))
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
        for each in self.known.list() if self.known is not None else []:
            if each.key not in self.items:
                self.append(each.key, Delta(SYNC, each))

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
    store = known(obj("a", 0), obj("x", 0)) if with_known_objects else None
    fifo = DeltaFIFO(known_objects=store, emit_delta_type_replaced=True)
    model = Model(store)
    last: Deltas = []
    for number, (verb, what) in enumerate(sequence, start=1):
        if isinstance(verb, DeltaType) or verb == "tombstone":
            news = obj(what, number)
            if verb == "tombstone":
                verb, news = DELETED, tombstone(what, news)
            await fifo.apply([Delta(verb, news)])
            model.enqueue(Delta(verb, news))
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
                await fifo.pop(raising(RequeueError()))
                model.put_back(model.pop())
        assert fifo.list_keys() == model.queue
        assert {key: fifo.get_by_key(key) for key in fifo.list_keys()} == model.items
