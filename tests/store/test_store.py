"""store/store.py: store objects by key."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import (
    ConfigError,
    DeletedFinalStateUnknown,
    Indexer,
    KubeObject,
    Store,
    meta_namespace_key_func,
)
from aioinformer.cache import ExplicitKey
from aioinformer.errors import KeyFuncError
from aioinformer.objects.kube_object import AS_JSON

from ..reflector.running import reflector
from ..reflector.scripted import FOREVER, Scripted, page, raw_pod
from ..samples import compress_object, pod, pod_dict
from ..steps import run_during, turns
from ..virtual_time import virtual_time


@pytest.fixture(params=[Store, Indexer])
def store(request: pytest.FixtureRequest) -> Store[Any]:
    made: Store[Any] = request.param(meta_namespace_key_func)
    return made


def test_add_get_update_delete(store: Store[KubeObject]) -> None:
    old, new = pod(version="1"), pod(version="2")
    store.add(old)
    assert store.get(new) is old
    assert store.get_by_key("ns/a") is old
    assert "ns/a" in store
    assert len(store) == 1
    store.update(new)
    assert store.list() == [new]
    assert store.list_keys() == ["ns/a"]
    store.delete(old)
    assert store.get(new) is None
    assert store.get_by_key("ns/a") is None
    assert not store.list()
    store.resync()


def test_update_of_missing_adds_and_delete_of_missing_does_nothing(store: Store[KubeObject]) -> None:
    store.update(pod())
    store.delete(pod("b"))
    assert store.list_keys() == ["ns/a"]


def test_tombstones_and_explicit_keys_delete(store: Store[Any]) -> None:
    for name in "abc":
        store.add(pod(name))
    store.delete(DeletedFinalStateUnknown("ns/a", None))
    store.delete(DeletedFinalStateUnknown("ns/b", pod("other")))
    store.delete(ExplicitKey("ns/c"))
    assert not store.list_keys()


@pytest.mark.parametrize("wrong", [None, 5, b"ns/a", KubeObject.from_dict(pod_dict())], ids=repr)
def test_key_must_be_a_string(store: Store[KubeObject], wrong: Any) -> None:
    with pytest.raises(ConfigError, match="key must be a string"):
        store.get_by_key(wrong)


def test_lists_are_copies(store: Store[KubeObject]) -> None:
    store.add(pod())
    store.list().clear()
    store.list_keys().clear()
    assert len(store.list()) == len(store.list_keys()) == 1


def test_object_without_key_raises_and_changes_nothing(store: Store[Any]) -> None:
    store.add(pod())
    keyless: list[Any] = [None, {}, pod(""), 5]
    for verb in (store.add, store.update, store.delete, store.get):
        for wrong in keyless:
            with pytest.raises(KeyFuncError):
                verb(wrong)
    assert store.list_keys() == ["ns/a"]


def test_replace_removes_all_other_objects(store: Store[Any]) -> None:
    store.add(pod("a"))
    store.add(pod("b"))
    newer = pod("b", version="2")
    store.replace([newer, pod("c")], "7")
    assert store.list() == [newer, pod("c")]
    store.replace([])
    assert not store.list()


def test_replace_with_explicit_key_keeps_the_stored_object(store: Store[Any]) -> None:
    store.add(pod("a"))
    store.replace([ExplicitKey("ns/a"), ExplicitKey("ns/unknown"), pod("b")])
    assert store.list() == [pod("a"), pod("b")]


def test_replace_prefers_a_listed_object_over_its_explicit_key(store: Store[Any]) -> None:
    store.add(pod("a"))
    store.replace([pod("a", version="2"), ExplicitKey("ns/a")])
    assert store.list() == [pod("a", version="2")]


def test_replace_skips_objects_without_key_and_raises(store: Store[Any]) -> None:
    with pytest.raises(KeyFuncError) as caught:
        store.replace([{}, pod("a"), None, pod("b")])
    assert len(caught.value.all()) == 2
    assert store.list_keys() == ["ns/a", "ns/b"]


def test_failed_iteration_in_replace_changes_nothing(store: Store[Any]) -> None:
    def objects() -> Any:
        yield pod("b")
        raise ValueError

    store.add(pod("a"))
    with pytest.raises(ValueError):
        store.replace(objects())
    assert store.list_keys() == ["ns/a"]


@pytest.mark.parametrize("kind", [Store, Indexer])
class TestKeyFunctions:
    def test_custom_key_function(self, kind: type[Store[Any]]) -> None:
        store: Store[Any] = kind(lambda obj: obj["spec"]["id"])
        store.add(pod(spec={"id": "x"}))
        store.add(DeletedFinalStateUnknown("y", None))
        assert store.list_keys() == ["x", "y"]

    @pytest.mark.parametrize("failure", [ZeroDivisionError, asyncio.CancelledError])
    def test_failing_key_function(self, failure: type[BaseException], kind: type[Store[Any]]) -> None:
        def fail(obj: Any) -> str:
            raise failure

        with pytest.raises(KeyFuncError) as caught:
            kind(fail).add(pod())
        assert isinstance(caught.value.__cause__, failure)
        assert "ns/a at 1" in str(caught.value)

    @pytest.mark.parametrize("wrong", [None, 5, b"a", []])
    def test_key_function_must_return_a_string(self, kind: type[Store[Any]], wrong: Any) -> None:
        with pytest.raises(KeyFuncError, match="not a string"):
            kind(lambda obj: wrong).add(pod())

    def test_unusual_keys_are_kept(self, kind: type[Store[Any]]) -> None:
        store: Store[Any] = kind(lambda obj: obj["id"])
        for key in ("", "a/b/c", "\ud800", "é", "e\u0301", "x" * 1_000_000):
            store.add({"id": key})
            assert store.get_by_key(key) == {"id": key}
        assert len(store) == 6


names = st.sampled_from("abcd")
operations = st.lists(
    st.tuples(st.sampled_from(["add", "update", "delete"]), names, st.integers(0, 3))
    | st.tuples(st.just("replace"), st.lists(names, unique=True), st.integers(0, 3)),
    max_size=30,
)


@given(operations)
def test_any_sequence_equals_a_dict(sequence: list[tuple[str, Any, int]]) -> None:
    store: Store[KubeObject] = Store(meta_namespace_key_func)
    model: dict[str, KubeObject] = {}
    for verb, what, version in sequence:
        if verb == "replace":
            objects = [pod(name, version=str(version)) for name in what]
            store.replace(objects)
            model = {obj.key: obj for obj in objects}
            continue
        obj = pod(what, version=str(version))
        getattr(store, verb)(obj)
        if verb == "delete":
            model.pop(obj.key, None)
        else:
            model[obj.key] = obj
    assert dict(zip(store.list_keys(), store.list(), strict=True)) == model


@pytest.mark.parametrize("kind", [Store, Indexer])
class TestPacking:
    """The store keeps what ``pack`` returns, and readers get equal objects."""

    def test_every_write_verb_packs(self, kind: type[Store[Any]]) -> None:
        store = kind(pack=compress_object)
        a, b, c = pod("a"), pod("b"), pod("c")
        store.add(a)
        store.replace([a, b], "5")
        fresh = store.fresh()
        fresh.put("ns/c", c, [])
        store.take_over(fresh, "6", ["ns/b"])
        assert store.list() == [a, c]
        assert all(obj._form is not AS_JSON for obj in store.list())
        assert store.get_by_key("ns/a") == a
        assert store.last_store_sync_resource_version == "6"

    def test_exchange_replaces_only_the_expected_object(self, kind: type[Store[Any]]) -> None:
        store = kind()
        old, other = pod("a"), compress_object(pod("a"))
        store.add(old)
        store.exchange("ns/a", pod("a"), pod("a", version="2"))
        store.exchange("ns/b", old, other)
        assert store.get_by_key("ns/a") is old
        store.exchange("ns/a", old, other)
        assert store.list() == [other]
        assert store.get_by_key("ns/a") is other


class TestParts:
    """The store has one dict for each namespace."""

    def test_lists_are_grouped_by_namespace(self, store: Store[KubeObject]) -> None:
        objects = [pod("a", "x"), pod("b", "y"), pod("c", "x"), pod("node", "")]
        store.replace(objects)
        assert [obj.key for obj in store.list()] == store.list_keys() == ["x/a", "x/c", "y/b", "node"]
        assert list(store.list_keys_by_parts()) == [["x/a", "x/c"], ["y/b"], ["node"]]
        assert len(store) == 4
        store.delete(objects[1])
        assert list(store.list_keys_by_parts()) == [["x/a", "x/c"], ["node"]]

    def test_parts_may_change_during_iteration(self, store: Store[KubeObject]) -> None:
        store.replace([pod("a", "x"), pod("b", "y")])
        parts = store.list_keys_by_parts()
        assert next(parts) == ["x/a"]
        store.replace([pod("c", "z")])
        assert list(parts) == [[]]

    def test_parts_may_change_while_another_thread_counts(self, store: Store[KubeObject]) -> None:
        class Interrupted(dict[str, KubeObject]):
            """The event loop's thread writes at this point of the other thread's count."""

            def __len__(self) -> int:
                store.add(pod("b", "y"))
                return super().__len__()

        store._parts["x"] = Interrupted(a=pod("a", "x"))
        assert len(store) == 1


class TestReplaceInTurns:
    @virtual_time
    async def test_other_tasks_run_and_see_the_old_content(self, store: Store[KubeObject]) -> None:
        store.add(pod("old"))
        seen: list[int] = []
        objects = [pod(str(n), f"ns-{n % 9}") for n in range(20_000)]

        async def observe() -> None:
            while True:
                seen.append(len(store))
                await asyncio.sleep(0)

        async with run_during(observe()):
            await store.replace_in_turns(objects, "7")
        assert len(seen) > 2
        assert set(seen) == {1}
        assert len(store) == 20_000
        assert store.last_store_sync_resource_version == "7"

    @virtual_time
    async def test_objects_without_key_are_skipped_and_raise(self, store: Store[Any]) -> None:
        with pytest.raises(KeyFuncError) as caught:
            await store.replace_in_turns([{}, pod("a"), None])
        assert len(caught.value.all()) == 2
        assert store.list_keys() == ["ns/a"]

    @virtual_time
    async def test_changes_to_the_given_list_have_no_effect(
        self, store: Store[KubeObject], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("aioinformer._core.coop.SLICE", -1.0)  # a pause at each step
        objects = [pod("a"), pod("b"), pod("c")]
        replacing = asyncio.create_task(store.replace_in_turns(objects, "7"))
        await turns(2)
        del objects[0]
        await replacing
        assert store.list_keys() == ["ns/a", "ns/b", "ns/c"]

    @virtual_time
    async def test_reflector_uses_replace_in_turns(self, monkeypatch: pytest.MonkeyPatch) -> None:
        store: Store[KubeObject] = Store()
        monkeypatch.delattr(Store, "replace")
        server = Scripted([page(raw_pod("a"), version=10)], [[FOREVER]])
        async with reflector(server, store=store):
            await asyncio.sleep(1)
        assert store.list_keys() == ["default/a"]
