"""Structs with only some fields and without a version: handlers get changes of those fields only."""

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
    raw_pod,
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


class Recorder(ResourceEventHandlerFuncs[Pod]):
    def __init__(self) -> None:
        self.calls: list[str] = []
        super().__init__(
            on_add=lambda obj, _: self._record("add", obj),
            on_update=lambda old, new: self._record("update", old, new),
            on_delete=lambda obj: self._record("delete", obj.obj if isinstance(obj, Tombstone) else obj),
        )

    def _record(self, call: str, *states: Any) -> None:
        name = states[-1].metadata.name
        self.calls.append(" ".join([call, name, *(state.spec.node for state in states)]))


def informer(
    lists: Sequence[Any], watch: list[Step], queue: Any = "delta", period: float = 0.0, **options: Any
) -> tuple[SharedIndexInformer[Pod], Recorder]:
    server = Scripted(lists, [[*watch, FOREVER]], watch_list_semantics=not lists)
    subject = SharedIndexInformer(server, Pod, period, queue=queue, random=NoJitter(), **options)
    recorder = Recorder()
    subject.add_event_handler(recorder)
    return subject, recorder


EVENTS: list[Step] = [
    added("b", 11, node="x"),
    modified("b", 12, node="x", image="new"),
    modified("b", 13, node="y"),
    deleted("b", 14, node="y"),
]


@QUEUES
@pytest.mark.parametrize("streamed", [False, True])
@virtual_time
async def test_handler_gets_changes_of_named_fields_only(queue: Any, streamed: bool) -> None:
    if streamed:
        subject, recorder = informer([], [added("a", 1, node="x"), closing_bookmark(10), 5.0, *EVENTS], queue)
    else:
        subject, recorder = informer([page(raw_pod("a", 1, node="x"), version=10)], [5.0, *EVENTS], queue)
    async with subject:
        await subject.wait_synced()
        assert (recorder.calls, subject.last_sync_resource_version) == (["add a x"], "10")
        await asyncio.sleep(60)
        assert recorder.calls[1:] == ["add b x", "update b x y", "delete b y"]
        assert subject.last_sync_resource_version == "14"
        assert subject.store.list_keys() == ["default/a"]


@QUEUES
@virtual_time
async def test_relist_notifies_changes_of_named_fields_only(queue: Any) -> None:
    lists = [
        page(raw_pod("a", 1, node="x"), raw_pod("b", 2, node="x"), raw_pod("c", 3, node="x"), version=10),
        page(raw_pod("a", 11, node="x"), raw_pod("b", 12, node="y"), version=20),
    ]
    subject, recorder = informer(lists, [5.0, error_event(410, "Gone")], queue)
    async with subject:
        await subject.wait_synced()
        del recorder.calls[:]
        await asyncio.sleep(60)
        assert sorted(recorder.calls) == ["delete c x", "update b x y"]
        assert subject.last_sync_resource_version == "20"


@QUEUES
@virtual_time
async def test_resyncs_reach_only_handlers_with_a_period(queue: Any) -> None:
    subject, recorder = informer([page(raw_pod("a", 1, node="x"), version=10)], [5.0], queue, period=10.0)
    never = Recorder()
    subject.add_event_handler(never, resync_period=0.0)
    async with subject:
        await asyncio.sleep(25)
        assert recorder.calls == ["add a x", "update a x x", "update a x x"]
        assert never.calls == ["add a x"]


class Amount(msgspec.Struct):
    metadata: Meta
    spec: dict[str, Decimal]


@QUEUES
@virtual_time
async def test_object_that_cannot_be_compared_is_an_update_and_others_continue(
    queue: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aioinformer._core.coop.SLICE", -1.0)  # a pause at each step
    others = [str(number) for number in range(5)]
    changes = [modified("a", 11, value="sNaN"), *(added(name, 12, value="1") for name in others)]
    server = Scripted([page(raw_pod("a", 1, value="sNaN"), version=10)], [[changes, FOREVER]])
    subject = SharedIndexInformer(server, Amount, queue=queue, random=NoJitter())
    names: list[str] = []
    subject.add_event_handler(
        ResourceEventHandlerFuncs(
            on_add=lambda obj, _: names.append(obj.metadata.name),
            on_update=lambda _, new: names.append(f"{new.metadata.name} again"),
        )
    )
    async with subject:
        await asyncio.sleep(5)
        assert sorted(names) == [*others, "a", "a again"]
        assert len(subject.store) == 6
        assert subject.state.failed == 0


@virtual_time
async def test_reflector_follows_versions_with_a_store() -> None:
    store = Store[Pod]()
    server = Scripted([page(raw_pod("a", 1), version=10)], [[*EVENTS[:3], 9.0, error_event(500, "x")]])
    subject = Reflector(server, Pod, store, random=NoJitter())
    await run_for(subject, 5)
    assert store.list_keys() == ["default/a", "default/b"]
    assert subject.last_sync_resource_version == "13"


@virtual_time
async def test_retry_watcher_resumes_after_its_last_event() -> None:
    server = Scripted([], [[EVENTS[0], EVENTS[1]], [EVENTS[2], FOREVER]])
    async with RetryWatcher(server, "10", Pod, random=NoJitter()) as events:
        seen = [(await anext(events)).object.spec.node for _ in range(3)]
    assert seen == ["x", "x", "y"]
    assert server.versions() == [("watch", "10"), ("watch", "12")]


@virtual_time
async def test_wait_for_uses_the_version_of_the_collection() -> None:
    subject, _ = informer([page(raw_pod("a", 1), version=10)], [5.0, modified("a", 11, node="y")])
    async with subject:
        await subject.wait_synced()
        obj = await subject.wait_for(json.loads(raw_pod("a", 11)), timeout=10)
        assert obj is not None
        assert obj.spec.node == "y"


@virtual_time
async def test_wait_for_refuses_an_object_without_version() -> None:
    subject, _ = informer([page(raw_pod("a", 1), version=10)], [])
    async with subject:
        await subject.wait_synced()
        (obj,) = subject.store.list()
        with pytest.raises(ConfigError, match=r"metadata\.resourceVersion of default/a"):
            await subject.wait_for(obj)
        with pytest.raises(ConfigError, match=r"metadata\.resourceVersion of default/a"):
            MutationCache(subject.indexer).mutation(obj)


async def test_cached_resource_refuses_a_type_without_version() -> None:
    subject, _ = informer([], [])
    async with Client.from_url("http://localhost:1") as client:
        with pytest.raises(ConfigError, match=r"Pod\.metadata needs `resource_version: str`"):
            CachedResource(Resource(client, "v1", "pods", Pod), subject)
        whole: Resource[Any] = Resource(client, "v1", "pods")
        with pytest.raises(ConfigError, match=r"Pod\.metadata needs `uid: str`"):
            CachedResource(whole, subject)
