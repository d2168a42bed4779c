"""Reads of the cache in other threads while the event loop writes: no read waits for it, fails, or misses an object."""

from __future__ import annotations

import asyncio
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from aioinformer import KubeObject, blocking
from aioinformer.cache import Indexer
from aioinformer.objects.undecodable import UndecodableObject

from .conftest import Server

NAMESPACES = ("blue", "green", "red")
KEPT = {f"{namespace}/kept-{number}" for namespace in NAMESPACES for number in range(20)}
"""Keys of objects that are always stored."""


def make(key: str, version: int) -> KubeObject:
    namespace, _, name = key.partition("/")
    labels = {"kept": str(name.startswith("kept")).lower(), "color": random.choice(NAMESPACES)}
    metadata = {"namespace": namespace, "name": name, "resourceVersion": str(version), "labels": labels}
    return KubeObject.from_dict(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"v": "1"}}
    )


async def churn(indexer: Indexer[KubeObject], is_over: Callable[[], bool]) -> int:
    """Change the cache as an informer does: single objects, unfit ones, and relists of all."""
    changes = 0
    while not is_over():
        for key in KEPT:
            indexer.add(make(key, changes))
        for number in range(200):
            key = f"{random.choice(NAMESPACES)}/other-{number % 40}"
            choice = random.random()
            if choice < 0.4:
                indexer.add(make(key, changes))
            elif choice < 0.7:
                indexer.remove(key)
            else:
                indexer.put_undecodable(key, make(key, changes).decode(UndecodableObject))
            changes += 1
        others = [f"{random.choice(NAMESPACES)}/new-{number}" for number in range(20)]
        await indexer.replace_in_turns([make(key, changes) for key in (*KEPT, *others)], str(changes))
        fresh = indexer.fresh()
        for key in KEPT:
            fresh.put(key, make(key, changes), [])
        indexer.take_over(fresh, str(changes), set(indexer.list_keys()) - KEPT)
        await asyncio.sleep(0)
    return changes


@contextmanager
def switching_often() -> Iterator[None]:
    """Let threads take turns after a few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@pytest.mark.parametrize("compress", [False, True])
def test_reads_in_threads_find_every_object_while_the_cache_changes(server: Server, compress: bool) -> None:
    failures: list[BaseException] = []
    reads: dict[str, int] = {}
    deadline = time.monotonic() + 3

    def over() -> bool:
        return bool(failures) or time.monotonic() > deadline

    with blocking.Factory(server.client()) as factory:
        maps = factory.for_resource("v1", "configmaps", label_selector="none=here", compress=compress)
        maps.add_indexers(
            {"color": "metadata.labels.color", "kept": lambda obj: [obj.metadata.labels["kept"]]}
        )
        maps.wait_synced(30)
        lister, indexer = maps.lister, maps.indexer
        factory.call(indexer.replace, [make(key, 0) for key in KEPT])

        def get_each() -> None:
            for key in KEPT:
                assert lister.get(key).to_dict()["data"] == {"v": "1"}

        def list_all() -> None:
            keys = [obj.key for obj in lister.list()]
            assert len(keys) == len(set(keys))
            assert set(keys) >= KEPT

        def list_some() -> None:
            assert {obj.key for obj in lister.list("kept=true")} == KEPT

        def list_namespace() -> None:
            assert {obj.name for obj in lister.namespace("red").list()} >= {f"kept-{n}" for n in range(20)}

        def read_index() -> None:
            assert {obj.key for obj in indexer.by_index("kept", "true")} == KEPT
            assert set(indexer.index_keys("kept", "true")) == KEPT
            assert set(indexer.index_keys("namespace", "red")) >= {f"red/kept-{n}" for n in range(20)}
            assert set(indexer.list_index_func_values("color")) <= set(NAMESPACES)
            for color in NAMESPACES:
                assert all(obj.key for obj in indexer.by_index("color", color))

        def read_rest() -> None:
            assert set(indexer.list_keys()) >= KEPT
            assert len(indexer) >= len(KEPT)
            assert all(key in indexer for key in KEPT)
            assert all("/" in obj.key for obj in lister.undecodable())
            assert maps.state.objects >= len(KEPT)
            assert factory.ready()
            assert "aioinformer_objects" in factory.metrics()

        def repeat(read: Callable[[], None]) -> None:
            reads[read.__name__] = 0
            while not over():
                try:
                    read()
                except BaseException as error:
                    failures.append(error)
                reads[read.__name__] += 1

        every = (get_each, list_all, list_some, list_namespace, read_index, read_rest)
        threads = [threading.Thread(target=repeat, args=(read,)) for read in every]
        with switching_often():
            for thread in threads:
                thread.start()
            changes = factory.call(churn, maps.informer.indexer, over)
            for thread in threads:
                thread.join()
    if failures:
        raise failures[0]
    assert changes > 200
    assert min(reads.values()) > 3, reads


def test_a_read_does_not_wait_for_the_event_loop(server: Server) -> None:
    server.create("a")
    over = threading.Event()
    with blocking.Factory(server.client()) as factory:
        maps = factory.for_resource("v1", "configmaps")
        maps.wait_synced(30)
        busy = threading.Thread(target=factory.call, args=(over.wait, 30))
        busy.start()
        assert len(maps.lister.list()) == 1
        assert maps.has_synced()
        assert maps.state.objects == 1
        assert factory.ready()
        assert not over.is_set()
        over.set()
        busy.join()
