"""MutationCache: a program's own writes on top of the cache."""

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
async def test_write_is_returned_until_store_has_a_newer_version() -> None:
    store = indexer(on("x", version=9))
    cache = MutationCache(store)
    assert version(cache.get_by_key("ns/a")) == "9"
    cache.mutation(on("x", version=10))
    assert version(cache.get_by_key("ns/a")) == "10"
    assert version(cache.get(on("x"))) == "10"
    store.update(on("x", version=10))
    assert version(cache.get_by_key("ns/a")) == "10"
    assert len(cache) == 0, "the store has caught up, so the write is dropped"
    store.update(on("x", version=11))
    assert version(cache.get_by_key("ns/a")) == "11"


@virtual_time
async def test_versions_are_compared_as_numbers() -> None:
    cache = MutationCache(indexer(on("x", version=100)))
    cache.mutation(on("x", version=99))
    assert version(cache.get_by_key("ns/a")) == "100"


@virtual_time
async def test_newest_version_wins_over_response_order() -> None:
    cache = MutationCache(indexer(on("x", version=1)))
    cache.mutation(on("x", version=12))
    cache.mutation(on("x", version=11))
    assert version(cache.get_by_key("ns/a")) == "12"


@virtual_time
async def test_unstored_objects_are_returned_with_include_adds() -> None:
    for include_adds in (False, True):
        cache = MutationCache(indexer(), include_adds=include_adds)
        cache.mutation(on("x", version=5))
        for _ in range(2):
            assert version(cache.get_by_key("ns/a")) == ("5" if include_adds else None)
        assert [obj.name for obj in cache.by_index("node", "x")] == (["a"] if include_adds else [])


@virtual_time
async def test_write_expires_after_ttl() -> None:
    cache = MutationCache(indexer(on("x", version=1)))
    cache.mutation(on("x", version=5))
    await asyncio.sleep(299)
    assert version(cache.get_by_key("ns/a")) == "5"
    cache.mutation(on("x", version=5))
    await asyncio.sleep(2)
    assert version(cache.get_by_key("ns/a")) == "1"
    assert len(cache) == 0


@virtual_time
async def test_size_limit_keeps_the_last_used() -> None:
    cache = MutationCache(indexer(), include_adds=True)
    for n in range(100):
        cache.mutation(on("x", str(n), n + 1))
    assert cache.get_by_key("ns/0") is not None
    cache.mutation(on("x", "more", 200))
    assert len(cache) == 100
    assert cache.get_by_key("ns/0") is not None
    assert cache.get_by_key("ns/1") is None


@virtual_time
async def test_deletions_and_writes_have_separate_size_limits() -> None:
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
    assert cache.get_by_key("ns/gone-299") is None, "the response was late"


@virtual_time
async def test_by_index_uses_the_written_values() -> None:
    """Upstream keeps listing an object under its old value."""
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
async def test_on_delete_drops_the_write() -> None:
    cache = MutationCache(indexer(), include_adds=True)
    cache.mutation(on("x", version=5))
    cache.on_delete(on("x", version=6))
    assert cache.get_by_key("ns/a") is None
    cache.mutation(on("x", version=5))
    assert cache.get_by_key("ns/a") is None, "the response was late"
    cache.mutation(on("x", version=7))
    assert version(cache.get_by_key("ns/a")) == "7", "created again"
    cache.on_delete(on("x", version=6))
    assert version(cache.get_by_key("ns/a")) == "7"
    assert [obj.name for obj in cache.by_index("node", "x")] == ["a"]


@virtual_time
async def test_on_add_and_on_update_drop_stored_writes() -> None:
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
async def test_tombstone_drops_writes_up_to_its_version_only() -> None:
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
async def test_invalid_objects_and_unknown_indexes_raise() -> None:
    cache: MutationCache[Any] = MutationCache(indexer(), include_adds=True)
    with pytest.raises(ConfigError, match=r"metadata.resourceVersion of ns/a must be"):
        cache.mutation(pod("a", version=""))
    with pytest.raises(KeyFuncError):
        cache.mutation({"metadata": {}})
    with pytest.raises(UnknownIndexError):
        cache.by_index("zone", "x")


@virtual_time
async def test_failing_index_function_is_logged_once_per_version(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cache = MutationCache(indexer(on("x", "a", 1), on("x", "b", 2)), include_adds=True)
    for unscheduled in "ac":
        cache.mutation(pod(unscheduled, version="5"))
    for _ in range(3):
        assert [obj.name for obj in cache.by_index("node", "x")] == ["b"]
        assert version(cache.get_by_key("ns/a")) == "5"
    messages = [f"index 'node' failed on ns/{name} at 5: KeyError('spec')" for name in "ac"]
    assert [record.getMessage() for record in caplog.records] == messages
    cache.mutation(pod("a", version="6"))
    assert [obj.name for obj in cache.by_index("node", "x")] == ["b"]
    assert [record.getMessage() for record in caplog.records][2:] == [messages[0].replace("at 5", "at 6")]


@virtual_time
async def test_index_function_that_returns_a_string_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    store: Indexer[KubeObject] = Indexer(indexers={"node": lambda obj: obj["spec"]["node"]})
    cache = MutationCache(store, include_adds=True)
    cache.mutation(on("x", version=5))
    assert cache.by_index("node", "x") == []
    assert "must return a list of strings" in caplog.text


@pytest.mark.parametrize("options", [{"ttl": -1}, {"ttl": float("nan")}, {"size": -1}, {"size": 1.5}])
def test_invalid_options_are_refused(options: Any) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        MutationCache(indexer(), **options)


async def test_use_from_another_thread_raises() -> None:
    cache = MutationCache(indexer(on("x", version=9)))
    for _ in range(2):
        with pytest.raises(WrongEventLoopError, match="a MutationCache needs"):
            await asyncio.to_thread(cache.get_by_key, "ns/a")
        with pytest.raises(WrongEventLoopError):
            await asyncio.to_thread(cache.by_index, "node", "x")
        with pytest.raises(WrongEventLoopError):
            await asyncio.to_thread(cache.mutation, on("x", version=11))
        cache.mutation(on("x", version=10))
