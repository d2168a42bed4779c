"""MutationCache: one's own writes over the cache."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioinformer import (
    ConfigError,
    DeletedFinalStateUnknown,
    Indexer,
    KubeObject,
    deletion_handling_meta_namespace_key_func,
)
from aioinformer.cache import MutationCache
from aioinformer.errors import KeyFuncError, UnknownIndexError, WrongEventLoopError

from ..samples import pod
from ..virtual_time import virtual_time


def by_node(obj: KubeObject) -> list[str]:
    return [obj["spec"]["node"]]


def on(node: str, name: str = "a", version: int = 1) -> KubeObject:
    return pod(name, version=str(version), spec={"node": node})


def indexer(*objects: KubeObject) -> Indexer[KubeObject]:
    made: Indexer[KubeObject] = Indexer(deletion_handling_meta_namespace_key_func, {"node": by_node})
    made.replace(objects)
    return made


def version(obj: KubeObject | None) -> str | None:
    return None if obj is None else obj.resource_version


@virtual_time
async def test_a_write_is_shown_until_something_newer_is_stored() -> None:
    store = indexer(on("x", version=9))
    cache = MutationCache(store)
    assert version(cache.get_by_key("ns/a")) == "9"
    cache.mutation(on("x", version=10))
    assert version(cache.get_by_key("ns/a")) == "10"
    assert version(cache.get(on("x"))) == "10"
    store.update(on("x", version=10))
    assert version(cache.get_by_key("ns/a")) == "10"
    assert len(cache) == 0, "what has arrived is forgotten"
    store.update(on("x", version=11))
    assert version(cache.get_by_key("ns/a")) == "11"


@virtual_time
async def test_versions_are_compared_as_numbers() -> None:
    cache = MutationCache(indexer(on("x", version=100)))
    cache.mutation(on("x", version=99))
    assert version(cache.get_by_key("ns/a")) == "100"


@virtual_time
async def test_the_newest_write_counts_whatever_its_answers_order() -> None:
    cache = MutationCache(indexer(on("x", version=1)))
    cache.mutation(on("x", version=12))
    cache.mutation(on("x", version=11))
    assert version(cache.get_by_key("ns/a")) == "12"


@virtual_time
async def test_what_is_not_stored_is_shown_if_asked_for() -> None:
    for include_adds in (False, True):
        cache = MutationCache(indexer(), include_adds=include_adds)
        cache.mutation(on("x", version=5))
        for _ in range(2):
            assert version(cache.get_by_key("ns/a")) == ("5" if include_adds else None)
        assert [obj.name for obj in cache.by_index("node", "x")] == (["a"] if include_adds else [])


@virtual_time
async def test_a_write_is_shown_for_so_long_only() -> None:
    cache = MutationCache(indexer(on("x", version=1)))
    cache.mutation(on("x", version=5))
    await asyncio.sleep(299)
    assert version(cache.get_by_key("ns/a")) == "5"
    cache.mutation(on("x", version=5))
    await asyncio.sleep(2)
    assert version(cache.get_by_key("ns/a")) == "1"
    assert len(cache) == 0


@virtual_time
async def test_of_many_writes_those_used_last_are_kept() -> None:
    cache = MutationCache(indexer(), include_adds=True)
    for n in range(100):
        cache.mutation(on("x", str(n), n + 1))
    assert cache.get_by_key("ns/0") is not None
    cache.mutation(on("x", "more", 200))
    assert len(cache) == 100
    assert cache.get_by_key("ns/0") is not None
    assert cache.get_by_key("ns/1") is None


@virtual_time
async def test_deletions_and_writes_do_not_drive_out_each_other() -> None:
    cache = MutationCache(indexer(), include_adds=True)
    cache.mutation(on("x", version=500))
    for n in range(300):
        cache.on_delete(on("x", f"gone-{n}", n + 1))
    assert version(cache.get_by_key("ns/a")) == "500"
    assert len(cache) == 1
    assert len(cache._deleted) == 100
    for n in range(100):
        cache.mutation(on("x", f"written-{n}", n + 501))
    cache.mutation(on("x", "gone-299", 299))
    assert cache.get_by_key("ns/gone-299") is None, "an answer that was late"


@virtual_time
async def test_an_index_lists_what_was_written_where_it_belongs_now() -> None:
    """Upstream goes on listing it under its old value."""
    cache = MutationCache(indexer(on("x", "a", 1), on("x", "b", 2), on("y", "c", 3)), include_adds=True)
    cache.mutation(on("y", "a", 10))
    cache.mutation(on("x", "d", 11))
    cache.mutation(on("y", "c", 12))
    assert {obj.key: obj.resource_version for obj in cache.by_index("node", "x")} == {
        "ns/b": "2",
        "ns/d": "11",
    }
    assert {obj.key: obj.resource_version for obj in cache.by_index("node", "y")} == {
        "ns/a": "10",
        "ns/c": "12",
    }


@virtual_time
async def test_as_a_handler_it_learns_of_deletions() -> None:
    cache = MutationCache(indexer(), include_adds=True)
    cache.mutation(on("x", version=5))
    cache.on_delete(on("x", version=6))
    assert cache.get_by_key("ns/a") is None
    cache.mutation(on("x", version=5))
    assert cache.get_by_key("ns/a") is None, "an answer that was late"
    cache.mutation(on("x", version=7))
    assert version(cache.get_by_key("ns/a")) == "7", "created anew"
    cache.on_delete(on("x", version=6))
    assert version(cache.get_by_key("ns/a")) == "7"
    assert [obj.name for obj in cache.by_index("node", "x")] == ["a"]


@virtual_time
async def test_as_a_handler_it_forgets_what_has_arrived() -> None:
    store = indexer()
    cache = MutationCache(store, include_adds=True)
    for name in "ab":
        cache.mutation(on("x", name, 5))
    store.add(on("x", "a", 5))
    cache.on_add(on("x", "a", 5), False)
    cache.on_update(on("x", "b", 3), on("x", "b", 4))
    assert len(cache) == 1
    cache.on_update(on("x", "b", 4), on("x", "b", 5))
    assert len(cache) == 0


@virtual_time
async def test_a_tombstone_tells_of_the_last_known_version_only() -> None:
    cache = MutationCache(indexer(), include_adds=True)
    cache.mutation(on("x", version=5))
    cache.on_delete(DeletedFinalStateUnknown("ns/a", on("x", version=4)))
    assert version(cache.get_by_key("ns/a")) == "5", "it may have been written after the list"
    cache.on_delete(DeletedFinalStateUnknown("ns/a", on("x", version=5)))
    assert cache.get_by_key("ns/a") is None
    cache.on_delete(DeletedFinalStateUnknown("ns/a", on("x", version=3)))
    cache.mutation(on("x", version=4))
    assert cache.get_by_key("ns/a") is None
    cache.on_delete(DeletedFinalStateUnknown("ns/b", None))


@virtual_time
async def test_what_cannot_be_kept_or_read() -> None:
    cache: MutationCache[Any] = MutationCache(indexer(), include_adds=True)
    with pytest.raises(ConfigError, match=r"metadata.resourceVersion of ns/a must be"):
        cache.mutation(pod("a", version=""))
    with pytest.raises(KeyFuncError):
        cache.mutation({"metadata": {}})
    with pytest.raises(UnknownIndexError):
        cache.by_index("zone", "x")


@virtual_time
async def test_an_index_function_that_raises_loses_its_own_entry_only_and_is_told_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cache = MutationCache(indexer(on("x", "a", 1), on("x", "b", 2)), include_adds=True)
    for unscheduled in "ac":
        cache.mutation(pod(unscheduled, version="5"))
    for _ in range(3):
        assert [obj.name for obj in cache.by_index("node", "x")] == ["b"]
        assert version(cache.get_by_key("ns/a")) == "5"
    told = [f"index 'node' failed on ns/{name} at 5: KeyError('spec')" for name in "ac"]
    assert [record.getMessage() for record in caplog.records] == told
    cache.mutation(pod("a", version="6"))
    assert [obj.name for obj in cache.by_index("node", "x")] == ["b"]
    assert [record.getMessage() for record in caplog.records][2:] == [told[0].replace("at 5", "at 6")]


@virtual_time
async def test_an_index_function_that_gives_a_string_for_a_list(caplog: pytest.LogCaptureFixture) -> None:
    store: Indexer[KubeObject] = Indexer(indexers={"node": lambda obj: obj["spec"]["node"]})
    cache = MutationCache(store, include_adds=True)
    cache.mutation(on("x", version=5))
    assert cache.by_index("node", "x") == []
    assert "must return a list of strings" in caplog.text


@pytest.mark.parametrize("options", [{"ttl": -1}, {"ttl": float("nan")}, {"size": -1}, {"size": 1.5}])
def test_options_that_cannot_work(options: Any) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        MutationCache(indexer(), **options)


async def test_it_is_for_the_event_loops_own_thread_whatever_was_written() -> None:
    cache = MutationCache(indexer(on("x", version=9)))
    for _ in range(2):
        with pytest.raises(WrongEventLoopError, match="only in the event loop's thread"):
            await asyncio.to_thread(cache.get_by_key, "ns/a")
        with pytest.raises(WrongEventLoopError):
            await asyncio.to_thread(cache.by_index, "node", "x")
        with pytest.raises(WrongEventLoopError):
            await asyncio.to_thread(cache.mutation, on("x", version=11))
        cache.mutation(on("x", version=10))
