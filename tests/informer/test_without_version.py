"""Structs that name just the fields wanted, and no version: what changes none of them is no news."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from aioinformer import (
    CachedResource,
    Client,
    ConfigError,
    Reflector,
    Resource,
    ResourceEventHandlerFuncs,
    RetryWatcher,
    SharedIndexInformer,
    Store,
)
from aioinformer import DeletedFinalStateUnknown as Tombstone
from aioinformer.cache import MutationCache

from ..reflector.running import NoJitter, run_for
from ..reflector.scripted import (
    FOREVER,
    Scripted,
    Step,
    added,
    closing_bookmark,
    deleted,
    error_event,
    modified,
    page,
    pod,
)
from ..virtual_time import virtual_time

QUEUES = pytest.mark.parametrize("queue", ["delta", "real"])


class Meta(msgspec.Struct, frozen=True, gc=False):
    name: str
    namespace: str = ""


class Spec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    node: str = ""


class Pod(msgspec.Struct, frozen=True, gc=False):
    metadata: Meta
    spec: Spec


class Told(ResourceEventHandlerFuncs[Pod]):
    def __init__(self) -> None:
        self.calls: list[str] = []
        super().__init__(
            on_add=lambda obj, _: self._note("add", obj),
            on_update=lambda old, new: self._note("update", old, new),
            on_delete=lambda obj: self._note("delete", obj.obj if isinstance(obj, Tombstone) else obj),
        )

    def _note(self, call: str, *states: Any) -> None:
        name = states[-1].metadata.name
        self.calls.append(" ".join([call, name, *(each.spec.node for each in states)]))


def informer(
    lists: Sequence[Any], watch: list[Step], queue: Any = "delta", period: float = 0.0, **options: Any
) -> tuple[SharedIndexInformer[Pod], Told]:
    server = Scripted(lists, [[*watch, FOREVER]], watch_list_semantics=not lists)
    subject = SharedIndexInformer(server, Pod, period, queue=queue, random=NoJitter(), **options)
    told = Told()
    subject.add_event_handler(told)
    return subject, told


EVENTS: list[Step] = [
    added("b", 11, node="x"),
    modified("b", 12, node="x", image="new"),
    modified("b", 13, node="y"),
    deleted("b", 14, node="y"),
]


@QUEUES
@pytest.mark.parametrize("streamed", [False, True])
@virtual_time
async def test_it_is_told_of_what_it_names(queue: Any, streamed: bool) -> None:
    if streamed:
        subject, told = informer([], [added("a", 1, node="x"), closing_bookmark(10), 5.0, *EVENTS], queue)
    else:
        subject, told = informer([page(pod("a", 1, node="x"), version=10)], [5.0, *EVENTS], queue)
    async with subject:
        await subject.wait_synced()
        assert (told.calls, subject.last_sync_resource_version) == (["add a x"], "10")
        await asyncio.sleep(60)
        assert told.calls[1:] == ["add b x", "update b x y", "delete b y"]
        assert subject.last_sync_resource_version == "14"
        assert subject.store.list_keys() == ["default/a"]


@QUEUES
@virtual_time
async def test_of_another_list_it_is_told_what_has_changed(queue: Any) -> None:
    lists = [
        page(pod("a", 1, node="x"), pod("b", 2, node="x"), pod("c", 3, node="x"), version=10),
        page(pod("a", 11, node="x"), pod("b", 12, node="y"), version=20),
    ]
    subject, told = informer(lists, [5.0, error_event(410, "Gone")], queue)
    async with subject:
        await subject.wait_synced()
        del told.calls[:]
        await asyncio.sleep(60)
        assert sorted(told.calls) == ["delete c x", "update b x y"]
        assert subject.last_sync_resource_version == "20"


@QUEUES
@virtual_time
async def test_resyncs_go_to_those_who_ask_for_them(queue: Any) -> None:
    subject, told = informer([page(pod("a", 1, node="x"), version=10)], [5.0], queue, period=10.0)
    never = Told()
    subject.add_event_handler(never, resync_period=0.0)
    async with subject:
        await asyncio.sleep(25)
        assert told.calls == ["add a x", "update a x x", "update a x x"]
        assert never.calls == ["add a x"]


class Amount(msgspec.Struct):
    metadata: Meta
    spec: dict[str, Decimal]


@QUEUES
@virtual_time
async def test_one_that_cannot_be_compared_is_news_and_keeps_nothing_from_others(
    queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aioinformer._core.coop.SLICE", -1.0)  # each is told by itself, and the rest after it
    others = [str(number) for number in range(5)]
    changes = [modified("a", 11, value="sNaN"), *(added(name, 12, value="1") for name in others)]
    server = Scripted([page(pod("a", 1, value="sNaN"), version=10)], [[changes, FOREVER]])
    subject = SharedIndexInformer(server, Amount, queue=queue, random=NoJitter())
    told: list[str] = []
    subject.add_event_handler(
        ResourceEventHandlerFuncs(
            on_add=lambda obj, _: told.append(obj.metadata.name),
            on_update=lambda _, new: told.append(f"{new.metadata.name} again"),
        )
    )
    async with subject:
        await asyncio.sleep(5)
        assert sorted(told) == [*others, "a", "a again"]
        assert len(subject.store) == 6
        assert subject.state.failed == 0


@virtual_time
async def test_a_reflector_with_a_store() -> None:
    store = Store[Pod]()
    server = Scripted([page(pod("a", 1), version=10)], [[*EVENTS[:3], 9.0, error_event(500, "x")]])
    subject = Reflector(server, Pod, store, random=NoJitter())
    await run_for(subject, 5)
    assert store.list_keys() == ["default/a", "default/b"]
    assert subject.last_sync_resource_version == "13"


@virtual_time
async def test_a_retry_watcher_goes_on_behind_its_last_event() -> None:
    server = Scripted([], [[EVENTS[0], EVENTS[1]], [EVENTS[2], FOREVER]])
    async with RetryWatcher(server, "10", Pod, random=NoJitter()) as events:
        seen = [(await anext(events)).object.spec.node for _ in range(3)]
    assert seen == ["x", "x", "y"]
    assert server.versions() == [("watch", "10"), ("watch", "12")]


@virtual_time
async def test_what_was_written_is_waited_for_by_the_collection() -> None:
    subject, _ = informer([page(pod("a", 1), version=10)], [5.0, modified("a", 11, node="y")])
    async with subject:
        await subject.wait_synced()
        found = await subject.wait_for(json.loads(pod("a", 11)), timeout=10)
        assert found is not None
        assert found.spec.node == "y"


@virtual_time
async def test_what_says_no_version_cannot_be_waited_for() -> None:
    subject, _ = informer([page(pod("a", 1), version=10)], [])
    async with subject:
        await subject.wait_synced()
        (found,) = subject.store.list()
        with pytest.raises(ConfigError, match=r"metadata\.resourceVersion of default/a"):
            await subject.wait_for(found)
        with pytest.raises(ConfigError, match=r"metadata\.resourceVersion of default/a"):
            MutationCache(subject.indexer).mutation(found)


async def test_a_cached_resource_could_not_wait_for_its_own_writes() -> None:
    subject, _ = informer([], [])
    async with Client.from_url("http://localhost:1") as client:
        with pytest.raises(ConfigError, match=r"Pod\.metadata needs `resource_version: str`"):
            CachedResource(Resource(client, "v1", "pods", Pod), subject)
        whole: Resource[Any] = Resource(client, "v1", "pods")
        with pytest.raises(ConfigError, match=r"Pod\.metadata needs `uid: str`"):
            CachedResource(whole, subject)
