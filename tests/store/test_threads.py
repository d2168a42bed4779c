"""Other threads read while the event loop writes, as FastAPI's sync endpoints do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from aioinformer import Indexer, KubeObject, Lister, NotFoundError, deletion_handling_meta_namespace_key_func
from aioinformer.cache import NAMESPACE_INDEX, meta_namespace_index_func

from ..samples import pod

READS = 1500
ROUNDS = 100_000
"""The maximum number of writes; they end when the reads end."""

Read = Callable[[Indexer[KubeObject]], object]


def on(node: str, name: str, namespace: str) -> KubeObject:
    return pod(name, namespace, spec={"nodeName": node})


HERE = on("here", "0", "home")


def get(indexer: Indexer[KubeObject]) -> None:
    assert Lister(indexer).namespace("home").get("0").name == "0"
    with pytest.raises(NotFoundError):
        Lister(indexer).get("none")


READERS: dict[str, Read] = {
    "list": lambda indexer: indexer.list(),
    "list_keys": lambda indexer: indexer.list_keys(),
    "list_keys_by_parts": lambda indexer: list(indexer.list_keys_by_parts()),
    "len": len,
    "get": get,
    "lister.list": lambda indexer: Lister(indexer).list("app=web"),
    "namespace.list": lambda indexer: Lister(indexer).namespace("home").list(),
    "by_index": lambda indexer: indexer.by_index("node", "here"),
    "by_index of namespaces": lambda indexer: indexer.by_index(NAMESPACE_INDEX, "home"),
    "index": lambda indexer: indexer.index("node", HERE),
    "index_keys": lambda indexer: indexer.index_keys("node", "here"),
    "list_index_func_values": lambda indexer: indexer.list_index_func_values("node"),
    "indexers": lambda indexer: indexer.indexers,
}


@pytest.fixture(autouse=True)
def threads_switch_constantly() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("read", READERS.values(), ids=list(READERS))
def test_reads_in_another_thread_survive_writes(read: Read) -> None:
    indexer: Indexer[KubeObject] = Indexer(
        deletion_handling_meta_namespace_key_func,
        {NAMESPACE_INDEX: meta_namespace_index_func, "node": "spec.nodeName"},
    )
    for n in range(200):
        indexer.add(on("here", f"{n}", "home" if n % 2 else f"ns-{n}"))
    indexer.add(HERE)

    def reads() -> None:
        for _ in range(READS):
            read(indexer)

    with ThreadPoolExecutor(1) as threads:
        reading = threads.submit(reads)
        for n in range(ROUNDS):
            indexer.add(passing := on("here", f"x{n}", "home" if n % 2 else f"passing-{n}"))
            if n % 1000 == 0:
                indexer.add_indexers({f"more-{n}": "spec.nodeName"})
            indexer.delete(passing)
            if reading.done():
                break
        reading.result()
