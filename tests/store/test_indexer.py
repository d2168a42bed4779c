"""store/indexer.py: look up objects by index values."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioinformer import ConfigError, Indexer, KubeObject, SharedIndexInformer, field, meta_namespace_key_func
from aioinformer.cache import NAMESPACE_INDEX, ExplicitKey, meta_namespace_index_func
from aioinformer.errors import IndexerConflictError, IndexFuncError, KeyFuncError, UnknownIndexError

from ..reflector.scripted import Scripted
from ..samples import Pod, pod, pod_dict
from ..virtual_time import virtual_time


def colours(obj: Any) -> list[str]:
    painted_with: list[str] = obj["colours"]
    return painted_with


def paint(name: str, *values: Any, version: str = "1") -> KubeObject:
    return pod(name, version=version, colours=list(values))


@pytest.fixture
def indexer() -> Indexer[Any]:
    return Indexer(meta_namespace_key_func, {"colour": colours})


def keys(indexer: Indexer[Any], value: str, name: str = "colour") -> list[str]:
    return indexer.index_keys(name, value)


def test_read_verbs_of_an_index(indexer: Indexer[Any]) -> None:
    a, b, c = paint("a", "red"), paint("b", "red", "blue"), paint("c", "green")
    for obj in (c, b, a):
        indexer.add(obj)
    assert indexer.index_keys("colour", "red") == ["ns/a", "ns/b"]  # sorted
    assert indexer.by_index("colour", "red") == [b, a]
    assert sorted(indexer.list_index_func_values("colour")) == ["blue", "green", "red"]
    assert indexer.by_index("colour", "none") == []
    assert indexer.index_keys("colour", "none") == []


def test_index_returns_each_object_with_a_shared_value_once(indexer: Indexer[Any]) -> None:
    a, b, c = paint("a", "red", "blue"), paint("b", "blue"), paint("c", "green")
    for obj in (a, b, c):
        indexer.add(obj)
    assert indexer.index("colour", paint("not-stored", "blue", "red")) == [a, b]
    assert indexer.index("colour", paint("not-stored")) == []


def test_index_accepts_an_example_without_name() -> None:
    """Upstream's listers pass an ObjectMeta with a namespace and no name."""
    indexer: Indexer[Any] = Indexer(indexers={NAMESPACE_INDEX: meta_namespace_index_func})
    indexer.add(pod("a"))
    example: Any = {"metadata": {"namespace": "ns"}}
    assert indexer.index(NAMESPACE_INDEX, example) == [pod("a")]


def test_stale_values_and_empty_buckets_are_removed_c37(indexer: Indexer[Any]) -> None:
    """C37 TestThreadSafeStoreIndexingFunctionsWithMultipleValues."""
    indexer.add(paint("a", "red", "blue"))
    indexer.add(paint("b", "blue"))
    indexer.update(paint("a", "green", "blue"))
    assert keys(indexer, "red") == []
    assert [obj.key for obj in indexer.by_index("colour", "blue")] == ["ns/a", "ns/b"]  # a keeps its place
    assert sorted(indexer.list_index_func_values("colour")) == ["blue", "green"]
    indexer.delete(paint("a"))
    assert indexer.list_index_func_values("colour") == ["blue"]  # C37: the non-empty bucket is kept
    assert keys(indexer, "blue") == ["ns/b"]
    indexer.update(paint("b"))
    assert indexer.list_index_func_values("colour") == []


def test_duplicate_values_count_once(indexer: Indexer[Any]) -> None:
    indexer.add(paint("a", "red", "red"))
    assert indexer.by_index("colour", "red") == [paint("a", "red", "red")]
    indexer.delete(paint("a"))
    assert indexer.list_index_func_values("colour") == []


class Counted(str):
    """A value that counts its comparisons."""

    __slots__ = ()
    __hash__ = str.__hash__
    comparisons = 0

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return str.__eq__(self, other)


def test_update_of_object_with_many_values_is_not_quadratic(
    indexer: Indexer[Any],
) -> None:
    for first in (0, 250):
        indexer.add(pod_dict(colours=[Counted(number) for number in range(first, first + 500)]))
    assert Counted.comparisons < 10_000
    assert sorted(map(int, indexer.list_index_func_values("colour"))) == list(range(250, 750))


def test_added_indexers_index_stored_objects_c39(indexer: Indexer[Any]) -> None:
    """C39 TestIndexer."""
    indexer.add(paint("a", "red"))
    indexer.add_indexers({NAMESPACE_INDEX: meta_namespace_index_func, "name": lambda obj: [obj.name]})
    assert keys(indexer, "ns", NAMESPACE_INDEX) == ["ns/a"]
    assert keys(indexer, "a", "name") == ["ns/a"]
    assert set(indexer.indexers) == {"colour", NAMESPACE_INDEX, "name"}


@pytest.mark.parametrize("wrong", [None, ["spec.nodeName"], "spec.nodeName"], ids=repr)
async def test_indexers_must_be_a_mapping(indexer: Indexer[Any], wrong: Any) -> None:
    with pytest.raises(ConfigError, match="indexers must map names to index functions or field paths"):
        indexer.add_indexers(wrong)
    with pytest.raises(ConfigError):
        await indexer.add_indexers_in_turns(wrong)


def test_name_conflict_fails_the_whole_call_c39(indexer: Indexer[Any]) -> None:
    with pytest.raises(IndexerConflictError, match="indexer conflict: colour"):
        indexer.add_indexers({"new": colours, "colour": lambda obj: []})
    assert indexer.indexers == {"colour": colours}


async def unready(obj: Any) -> list[str]:
    return []


@pytest.mark.parametrize("func", [5, None, unready, lambda: [], lambda old, new: []])
def test_invalid_index_functions_are_refused(indexer: Indexer[Any], func: Any) -> None:
    with pytest.raises(ConfigError, match="the index 'new' "):
        indexer.add_indexers({"fine": lambda obj: [], "new": func})
    assert indexer.indexers == {"colour": colours}


@pytest.mark.parametrize("values", [None, [None], [1, "1"], b"ab", "red"])
def test_values_must_be_a_list_of_strings(indexer: Indexer[Any], values: Any) -> None:
    indexer.add_indexers({"odd": lambda obj: values})
    with pytest.raises(IndexFuncError, match="must return a list of strings"):
        indexer.add(paint("a"))
    assert indexer.list_index_func_values("odd") == []
    assert indexer.get_by_key("ns/a") is not None


def test_generator_function_is_an_index_function(indexer: Indexer[Any]) -> None:
    def names(obj: Any) -> Iterator[str]:
        yield obj.name

    indexer.add_indexers({"name": names})
    indexer.add(paint("a"))
    assert indexer.index_keys("name", "a") == ["ns/a"]


def test_indexers_are_a_copy(indexer: Indexer[Any]) -> None:
    """W24: upstream returns the live map."""
    indexer.indexers.clear()
    assert indexer.indexers == {"colour": colours}


def test_unknown_index_raises_c36(indexer: Indexer[Any]) -> None:
    indexer.add(paint("a", "red"))
    for read in (
        lambda: indexer.index("x", paint("a")),
        lambda: indexer.index_keys("x", "red"),
        lambda: indexer.by_index("x", "red"),
        lambda: indexer.list_index_func_values("x"),
    ):
        with pytest.raises(UnknownIndexError, match="no index named 'x'; there are: colour"):
            read()


def await_cancelled(obj: Any) -> list[str]:
    """An index function that awaited the result of a cancelled task."""
    raise asyncio.CancelledError


BROKEN: list[Any] = [
    lambda obj: str(1 / 0),
    lambda obj: "red",  # iterating a string gives its letters
    lambda obj: None,
    lambda obj: 5,
    lambda obj: [["unhashable"]],
    lambda obj: (str(1 // number) for number in (1, 0)),
    await_cancelled,
]


@pytest.mark.parametrize(
    "broken", BROKEN, ids=["raises", "str", "None", "int", "unhashable", "midway", "cancelled"]
)
class TestC36FailingFunctions:
    """C36: upstream panics; here the object is stored and in all other indexes."""

    def indexer(self, broken: Any) -> Indexer[Any]:
        return Indexer(meta_namespace_key_func, {"broken": broken, "colour": colours})

    def test_write_stores_the_object_and_raises(self, broken: Any) -> None:
        indexer = self.indexer(broken)
        with pytest.raises(IndexFuncError, match="index 'broken' failed on ns/a"):
            indexer.add(paint("a", "red"))
        assert indexer.get_by_key("ns/a") is not None
        assert keys(indexer, "red") == ["ns/a"]
        assert indexer.list_index_func_values("broken") == []
        indexer.delete(paint("a"))
        assert not indexer.list()
        assert keys(indexer, "red") == []

    def test_replace_stores_all_objects_and_raises(self, broken: Any) -> None:
        indexer = self.indexer(broken)
        with pytest.raises(KeyFuncError) as caught:
            indexer.replace([{}, paint("a", "red"), paint("b", "red")])
        assert [type(error) for error in caught.value.all()] == [KeyFuncError, IndexFuncError, IndexFuncError]
        assert keys(indexer, "red") == ["ns/a", "ns/b"]

    def test_add_indexers_keeps_the_other_indexers_and_raises(self, broken: Any) -> None:
        indexer: Indexer[Any] = Indexer(meta_namespace_key_func)
        indexer.add(paint("a", "red"))
        with pytest.raises(IndexFuncError):
            indexer.add_indexers({"colour": colours, "broken": broken})
        assert set(indexer.indexers) == {"colour", "broken"}
        assert keys(indexer, "red") == ["ns/a"]

    def test_index_of_an_example_raises(self, broken: Any) -> None:
        with pytest.raises(IndexFuncError):
            self.indexer(broken).index("broken", paint("a"))


def test_failed_update_removes_the_old_entry() -> None:
    indexer: Indexer[Any] = Indexer(meta_namespace_key_func, {"colour": colours})
    indexer.add(paint("a", "red"))
    with pytest.raises(IndexFuncError):
        indexer.update(pod("a", version="2"))
    assert indexer.list_index_func_values("colour") == []
    indexer.update(paint("a", "blue"))
    assert keys(indexer, "blue") == ["ns/a"]


def test_failed_pack_stores_nothing() -> None:
    def pack(obj: Any) -> Any:
        raise ValueError

    indexer = Indexer[Any](indexers={NAMESPACE_INDEX: meta_namespace_index_func}, pack=pack)
    with pytest.raises(ValueError):
        indexer.add(pod("a", "one"))
    assert (len(indexer), indexer.list_index_func_values(NAMESPACE_INDEX)) == (0, [])


def test_replace_rebuilds_the_indexes(indexer: Indexer[Any]) -> None:
    indexer.add(paint("a", "red"))
    indexer.add(paint("b", "blue"))
    indexer.replace([paint("c", "green"), ExplicitKey("ns/b")])
    assert sorted(indexer.list_index_func_values("colour")) == ["blue", "green"]
    assert keys(indexer, "blue") == ["ns/b"]


def test_index_function_is_called_once_per_stored_object() -> None:
    calls: list[str] = []

    def counting(obj: Any) -> list[str]:
        calls.append(obj["metadata"]["name"])
        return []

    indexer: Indexer[Any] = Indexer(meta_namespace_key_func, {"x": counting})
    indexer.add(pod_dict("a"))
    indexer.update(pod_dict("a"))
    indexer.delete(pod_dict("a"))
    indexer.replace([pod_dict("b")])
    assert calls == ["a", "a", "b"]


def test_dict_changed_in_place_can_be_deleted_and_replaced(indexer: Indexer[Any]) -> None:
    obj: dict[str, Any] = {**pod_dict("a"), "colours": ["red"]}
    indexer.add(obj)
    obj["colours"][:] = ["blue"]
    indexer.add({**pod_dict("a"), "colours": ["green"]})
    assert indexer.list_index_func_values("colour") == ["green"]
    obj["colours"].clear()
    indexer.delete(obj)
    assert indexer.list_index_func_values("colour") == []


names = st.sampled_from("abcd")
values = st.lists(st.sampled_from(["red", "blue", "green", ""]), max_size=3)
operations = st.lists(
    st.tuples(st.sampled_from(["add", "update", "delete", "fail"]), names, values)
    | st.tuples(st.just("replace"), st.lists(st.tuples(names, values), max_size=4), st.none())
    | st.tuples(st.just("add_indexers"), st.none(), st.none()),
    max_size=25,
)


@given(operations)
def test_after_any_sequence_the_indexes_equal_a_recomputation_c37(
    sequence: list[tuple[str, Any, Any]],
) -> None:
    indexer: Indexer[Any] = Indexer(meta_namespace_key_func, {"colour": colours})
    for verb, what, value in sequence:
        if verb == "replace":
            indexer.replace([paint(name, *colour) for name, colour in what])
        elif verb == "add_indexers":
            number = len(indexer.indexers)
            indexer.add_indexers({f"first-{number}": lambda obj: obj.get("colours", [])[:1]})
        elif verb == "fail":
            with pytest.raises(IndexFuncError):
                indexer.add(pod(what))
        else:
            getattr(indexer, verb)(paint(what, *value))
        for name, func in indexer.indexers.items():
            expected: dict[str, set[str]] = {}
            for obj in indexer.list():
                for colour in func(obj) if "colours" in obj else ():
                    expected.setdefault(colour, set()).add(obj.key)
            assert set(indexer.list_index_func_values(name)) == set(expected)
            for colour, stored in expected.items():
                assert indexer.index_keys(name, colour) == sorted(stored)
                assert {obj.key for obj in indexer.by_index(name, colour)} == stored


class TestAddIndexersInTurns:
    """Other tasks run meanwhile, and may write."""

    def full(self, count: int = 3000) -> Indexer[Any]:
        indexer: Indexer[Any] = Indexer(meta_namespace_key_func)
        indexer.replace([paint(str(n), "red" if n % 2 else "blue") for n in range(count)])
        return indexer

    @virtual_time
    async def test_stored_objects_are_indexed(self) -> None:
        indexer = self.full()
        await indexer.add_indexers_in_turns({"colour": colours, "name": "metadata.name"})
        assert len(keys(indexer, "red")) == len(keys(indexer, "blue")) == 1500
        assert keys(indexer, "7", "name") == ["ns/7"]

    @virtual_time
    async def test_concurrent_writes_are_indexed(self) -> None:
        indexer = self.full(30_000)
        task = asyncio.create_task(indexer.add_indexers_in_turns({"colour": colours}))
        await asyncio.sleep(0)
        assert not task.done()
        assert indexer.indexers == {}
        for n in (0, 29_999):
            indexer.update(paint(str(n), "green", version="2"))
        indexer.delete(paint("1"))
        indexer.delete(paint("29998"))
        indexer.add(paint("new", "green"))
        await task
        assert keys(indexer, "green") == ["ns/0", "ns/29999", "ns/new"]
        assert len(keys(indexer, "red")) == len(keys(indexer, "blue")) == 14_998

    @pytest.mark.parametrize("again", [1, 3])
    @virtual_time
    async def test_concurrent_replace_is_indexed(self, again: int) -> None:
        indexer = self.full(30_000)
        task = asyncio.create_task(indexer.add_indexers_in_turns({"colour": colours}))
        for n in range(again):
            await asyncio.sleep(0)
            indexer.replace([paint(str(n), "green")])
        await task
        assert indexer.list_index_func_values("colour") == ["green"]
        assert keys(indexer, "green") == [f"ns/{again - 1}"]

    @virtual_time
    async def test_names_are_reserved_meanwhile(self) -> None:
        indexer = self.full(30_000)
        task = asyncio.create_task(indexer.add_indexers_in_turns({"colour": colours}))
        await asyncio.sleep(0)
        with pytest.raises(IndexerConflictError):
            indexer.add_indexers({"colour": colours})
        with pytest.raises(IndexerConflictError):
            await indexer.add_indexers_in_turns({"colour": colours})
        await task
        assert set(indexer.indexers) == {"colour"}

    @virtual_time
    async def test_failing_object_raises_and_others_are_indexed(self) -> None:
        indexer = self.full(10)
        indexer.add(pod("bad"))
        with pytest.raises(IndexFuncError, match="failed on ns/bad"):
            await indexer.add_indexers_in_turns({"colour": colours})
        assert len(keys(indexer, "red")) == 5


class TestNamespaceIndex:
    """It is free where keys start with the namespace, and gives the same results where they do not."""

    @pytest.mark.parametrize("key_func", [meta_namespace_key_func, lambda obj: f"{obj.name}/{obj.namespace}"])
    def test_lists_by_namespace(self, key_func: Any) -> None:
        indexer: Indexer[KubeObject] = Indexer(key_func, {NAMESPACE_INDEX: meta_namespace_index_func})
        a, b, c, node = pod("a", "x"), pod("b", "y"), pod("c", "x"), pod("node", "")
        indexer.replace([a, b, c, node])
        assert indexer.by_index(NAMESPACE_INDEX, "x") == [a, c]
        assert indexer.by_index(NAMESPACE_INDEX, "") == [node]
        assert indexer.by_index(NAMESPACE_INDEX, "none") == []
        assert indexer.index(NAMESPACE_INDEX, a) == [a, c]
        assert indexer.index_keys(NAMESPACE_INDEX, "y") == [key_func(b)]
        indexer.delete(b)
        assert sorted(indexer.list_index_func_values(NAMESPACE_INDEX)) == ["", "x"]
        assert indexer.indexers == {NAMESPACE_INDEX: meta_namespace_index_func}
        fresh = indexer.fresh()
        fresh.put(key_func(b), b, [])
        indexer.take_over(fresh, "5", [key_func(a)])
        assert indexer.by_index(NAMESPACE_INDEX, "x") == [c]
        assert indexer.by_index(NAMESPACE_INDEX, "y") == [b]


def take_over(*lists: dict[str, list[str]]) -> tuple[Indexer[Any], Indexer[Any]]:
    """Return an indexer after it took over these lists of one namespace, and the last fresh part."""
    indexer: Indexer[Any] = Indexer(indexers={"colour": colours})
    indexer.add(pod("other", "elsewhere", colours=["red", "blue"]))
    fresh = indexer.fresh()
    for objects in lists:
        fresh = indexer.fresh()
        for name, values in objects.items():
            fresh.put(f"ns/{name}", paint(name, *values), [])
        gone = {key for key in indexer.list_keys() if key.startswith("ns/")} - set(fresh.list_keys())
        indexer.take_over(fresh, "5", sorted(gone))
    return indexer, fresh


class TestTakeOver:
    @given(
        st.lists(
            st.dictionaries(
                st.sampled_from("abcd"), st.lists(st.sampled_from(["red", "blue", "green"]), max_size=2)
            ),
            min_size=1,
            max_size=4,
        )
    )
    def test_equals_single_writes(self, lists: list[dict[str, list[str]]]) -> None:
        indexer, _ = take_over(*lists)
        expected: Indexer[Any] = Indexer(indexers={"colour": colours})
        for obj in indexer.list():
            expected.add(obj)
        values = expected.list_index_func_values("colour")
        assert sorted(indexer.list_index_func_values("colour")) == sorted(values)
        assert {value: keys(indexer, value) for value in values} == {
            value: keys(expected, value) for value in values
        }
        for obj in indexer.list():
            indexer.delete(obj)
        assert indexer.list_index_func_values("colour") == []

    def test_lists_of_new_values_are_not_copied(self) -> None:
        indexer, fresh = take_over({"a": ["green"], "b": ["red"]})
        lists, fresh_lists = indexer.index_named("colour"), fresh.index_named("colour")
        assert lists.keys("green") is fresh_lists.keys("green")
        assert list(lists.keys("red")) == ["elsewhere/other", "ns/b"]


def test_garbage_collector_tracks_neither_objects_nor_entries() -> None:
    indexer: Indexer[KubeObject] = Indexer(
        meta_namespace_key_func, {NAMESPACE_INDEX: meta_namespace_index_func, "colour": colours}
    )
    gc.collect()
    before = len(gc.get_objects())
    for n in range(5000):
        indexer.add(paint(str(n), "red" if n % 2 else "blue"))
    gc.collect()
    assert len(gc.get_objects()) - before < 50
    assert not any(map(gc.is_tracked, indexer.list()))


def test_index_functions_are_type_checked() -> None:
    """mypy reports each ``type: ignore`` below that is not needed."""

    def of_structs(obj: Pod) -> list[str]:
        return [obj.metadata.name]

    def of_objects(obj: KubeObject) -> list[str]:
        return [obj.name]

    indexer: Indexer[Pod] = Indexer(indexers={"of anything": colours, "namespace": meta_namespace_index_func})
    indexer.add_indexers({"of structs": of_structs, "path": "spec.node", "field": field("spec.node").values})
    indexer.add_indexers({"given here": lambda obj: (obj.metadata.name,)})
    indexer.add_indexers({"others": of_objects})  # type: ignore[dict-item]
    indexer.add_indexers({"mispelt": lambda obj: obj.mispelt})  # type: ignore[attr-defined]
    informer = SharedIndexInformer(Scripted(), Pod, indexers={"of structs": of_structs, "any": colours})
    informer.add_indexers({"given here": lambda obj: [obj.metadata.name], "path": "spec.node"})
    informer.add_indexers({"others": of_objects})  # type: ignore[dict-item]
