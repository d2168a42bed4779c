"""Store methods that yield to other tasks, with enough objects to do so."""

from __future__ import annotations

from collections.abc import AsyncIterator

from aioinformer import Indexer, KubeObject, Lister, Store

from ..samples import pod
from .registry import Call, case

OBJECTS = [pod(str(n), f"ns-{n % 3}") for n in range(4000)]


KINDS: list[type[Store[KubeObject]]] = [Store, Indexer]

for kind in KINDS:

    @case(f"{kind.__name__}.replace_in_turns")
    async def _(kind: type[Store[KubeObject]] = kind) -> AsyncIterator[Call]:
        store = kind()
        store.add(pod("old"))
        yield lambda: store.replace_in_turns(OBJECTS, "7")
        is_replaced = "ns/old" not in store
        assert len(store) == (len(OBJECTS) if is_replaced else 1)
        assert store.last_store_sync_resource_version == ("7" if is_replaced else "1")


@case("Indexer.add_indexers_in_turns")
async def _() -> AsyncIterator[Call]:
    indexer: Indexer[KubeObject] = Indexer()
    indexer.replace(OBJECTS)
    yield lambda: indexer.add_indexers_in_turns({"name": "metadata.name"})
    if "name" not in indexer.indexers:
        indexer.add_indexers({"name": "metadata.name"})
    indexer.add(pod("new"))
    assert indexer.index_keys("name", "7") == ["ns-1/7"]
    assert indexer.index_keys("name", "new") == ["ns/new"]


@case("Lister.list_in_turns")
async def _() -> AsyncIterator[Call]:
    indexer: Indexer[KubeObject] = Indexer()
    indexer.replace(OBJECTS)
    lister = Lister(indexer)
    yield lambda: lister.list_in_turns("!app")
    assert len(lister.list()) == len(OBJECTS)
