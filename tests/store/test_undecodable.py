"""Stores and their readers, when an object does not fit the object type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import DecodeError, NotFoundError, UndecodableObject
from aioinformer.cache import ExplicitKey, Indexer, Lister, MutationCache, Store
from aioinformer.objects.keys import deletion_handling_meta_namespace_key_func
from aioinformer.store import NAMESPACE_INDEX, meta_namespace_index_func

from ..narrow import Narrow, fit, unfit
from ..virtual_time import virtual_time


def nodes(obj: Narrow) -> list[str]:
    return [obj.spec.node]  # raises AttributeError for an UndecodableObject


def indexer() -> Indexer[Narrow]:
    indexers: Any = {NAMESPACE_INDEX: meta_namespace_index_func, "node": nodes, "name": "metadata.name"}
    return Indexer(deletion_handling_meta_namespace_key_func, indexers)


def make_filled() -> Indexer[Narrow]:
    """a fits, b did and does not any more, c never did."""
    store = indexer()
    for obj in (fit("a", 1), fit("b", 2), unfit("b", 3), unfit("c", 4)):
        store.add(obj)  # type: ignore[arg-type]
    return store


def names(objects: list[Any]) -> list[str]:
    return [obj.metadata.name for obj in objects]


class TestReading:
    def test_reading_an_undecodable_object_raises_its_error_for_that_key_alone(self) -> None:
        store = make_filled()
        reads: list[Callable[[str], Any]] = [
            store.get_by_key,
            lambda key: store.get(fit(key.rpartition("/")[2], 1)),
            Lister(store).get,
            lambda key: Lister(store).namespace("default").get(key.rpartition("/")[2]),
        ]
        for read in reads:
            assert read("default/a") == fit("a", 1)
            for name in "bc":
                with pytest.raises(DecodeError, match=f"{name} does not fit, version"):
                    read(f"default/{name}")
        with pytest.raises(NotFoundError):
            Lister(store).get("default/d")
        assert store.get_by_key("default/d") is None

    def test_lists_leave_undecodable_objects_out(self) -> None:
        store = make_filled()
        lister = Lister(store)
        for listed in (
            store.list(),
            lister.list(),
            lister.list(lambda obj: obj.spec.node == "n1"),
            lister.list("app!=web"),
            lister.namespace("default").list(),
            store.by_index("node", "n1"),
            store.by_index(NAMESPACE_INDEX, "default"),
            store.index("node", fit("x", 1)),
        ):
            assert names(listed) == ["a"]

    def test_keys_of_undecodable_objects_are_listed(self) -> None:
        store = make_filled()
        keys = ["default/a", "default/b", "default/c"]
        assert store.list_keys() == keys
        assert store.index_keys(NAMESPACE_INDEX, "default") == keys
        assert store.index_keys("node", "n1") == store.index_keys("name", "a") == ["default/a"]
        assert store.list_index_func_values("name") == ["a"]
        assert len(store) == 3
        assert all(key in store for key in keys)

    def test_undecodable_objects_can_be_listed(self) -> None:
        store = make_filled()
        store.add(unfit("d", 5, namespace="other"))  # type: ignore[arg-type]
        assert names(store.undecodable()) == names(Lister(store).undecodable()) == ["b", "c", "d"]
        assert names(Lister(store).namespace("other").undecodable()) == ["d"]
        assert names(Lister(store).namespace("").undecodable()) == ["b", "c", "d"]
        assert [obj.last for obj in store.undecodable()] == [fit("b", 2), None, None]

    async def test_indexes_that_are_added_later_leave_undecodable_objects_out(self) -> None:
        store = make_filled()
        store.add_indexers({"again": nodes})
        await store.add_indexers_in_turns({"slowly": nodes})
        assert store.index_keys("again", "n1") == store.index_keys("slowly", "n1") == ["default/a"]


class TestWriting:
    def test_object_that_fits_again_is_read_again(self) -> None:
        store = make_filled()
        store.update(fit("b", 5, "n2"))
        assert store.get_by_key("default/b") == fit("b", 5, "n2")
        assert store.index_keys("node", "n2") == ["default/b"]
        assert names(store.undecodable()) == ["c"]

    @pytest.mark.parametrize("gone", [fit("b", 9), unfit("b", 9), ExplicitKey("default/b")])
    def test_deletion_of_an_undecodable_object(self, gone: Any) -> None:
        store = make_filled()
        store.delete(gone)
        assert store.get_by_key("default/b") is None
        assert "default/b" not in store
        assert names(store.undecodable()) == ["c"]

    def test_replace_with_undecodable_objects(self) -> None:
        store = make_filled()
        listed: list[Any] = [unfit("a", 5), fit("b", 6), ExplicitKey("default/c"), unfit("new", 7)]
        store.replace(listed, "8")
        assert names(store.list()) == ["b"]
        assert names(store.undecodable()) == ["a", "c", "new"]
        assert [obj.last for obj in store.undecodable()] == [fit("a", 1), None, None]
        assert store.index_keys("node", "n1") == ["default/b"]
        assert store.last_store_sync_resource_version == "8"
        store.replace([], "9")
        assert len(store) == 0
        assert store.undecodable() == []


class TestMutationCache:
    @virtual_time
    async def test_own_write_is_shown_until_a_newer_undecodable_state_arrives(self) -> None:
        store = make_filled()
        cache = MutationCache(store)
        cache.mutation(fit("b", 5))
        assert cache.get_by_key("default/b") == fit("b", 5)
        assert names(cache.by_index("node", "n1")) == ["a", "b"]
        store.add(unfit("b", 6))  # type: ignore[arg-type]
        cache.on_undecodable(unfit("b", 6))
        with pytest.raises(DecodeError):
            cache.get_by_key("default/b")
        assert names(cache.by_index("node", "n1")) == ["a"]


class Model:
    """The newest state of each key, and the last one that fitted."""

    def __init__(self) -> None:
        self.newest: dict[str, Any] = {}
        self.last: dict[str, Any] = {}

    def put(self, obj: Any) -> None:
        key = f"default/{obj.metadata.name}"
        self.newest[key] = obj
        if not isinstance(obj, UndecodableObject):
            self.last[key] = obj

    def delete(self, key: str) -> None:
        self.newest.pop(key, None)
        self.last.pop(key, None)

    def replace(self, objects: list[Any]) -> None:
        self.newest = {}
        for obj in objects:
            self.put(obj)
        self.last = {key: obj for key, obj in self.last.items() if key in self.newest}


named = st.sampled_from("abc")
states = st.tuples(named, st.booleans())
steps = st.one_of(
    st.tuples(st.just("put"), states),
    st.tuples(st.just("delete"), states),
    st.tuples(st.just("replace"), st.lists(states, unique_by=lambda state: state[0])),
)


@given(st.lists(steps, max_size=12))
def test_store_never_keeps_a_state_that_is_older_than_its_last_write(given_steps: list[Any]) -> None:
    model, store = Model(), indexer()
    for version, (verb, what) in enumerate(given_steps, 1):

        def made(state: tuple[str, bool], version: int = version) -> Any:
            name, fits = state
            return fit(name, version) if fits else unfit(name, version)

        if verb == "put":
            obj = made(what)
            store.add(obj)
            model.put(obj)
        elif verb == "delete":
            store.delete(made(what))
            model.delete(f"default/{what[0]}")
        else:
            objects = [made(state) for state in what]
            store.replace(objects, str(version))
            model.replace(objects)
        fitting = {key for key, obj in model.newest.items() if not isinstance(obj, UndecodableObject)}
        assert {f"default/{name}" for name in names(store.list())} == fitting
        assert (
            set(store.list_keys()) == set(model.newest) == set(store.index_keys(NAMESPACE_INDEX, "default"))
        )
        assert set(store.index_keys("node", "n1")) == fitting
        assert len(store) == len(model.newest)
        for key, obj in model.newest.items():
            assert store.find_any(key) == obj
            if key in fitting:
                assert store.get_by_key(key) == obj
            else:
                unfitting = store.find_any(key)
                assert isinstance(unfitting, UndecodableObject)
                assert unfitting.last == model.last.get(key)


def test_plain_store_passes_as_known_objects_of_a_queue() -> None:
    store: Store[Narrow] = Store(deletion_handling_meta_namespace_key_func)
    store.add(unfit("a", 1))  # type: ignore[arg-type]
    assert store.list_keys() == ["default/a"]
    assert store.find_any("default/a") == unfit("a", 1)
    assert store.find_fitting("default/a") is None
