"""Behaviour of an informer with a RealFIFO only. Other tests run with both queues."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioinformer import KubeObject, ResourceEventHandlerFuncs, SharedIndexInformer
from aioinformer.cache import CacheMutationDetector, Delta, DeltaType, ReplacedAllInfo
from aioinformer.errors import CacheMutatedError

from ..reflector.running import NoJitter
from ..reflector.scripted import FOREVER, GONE, Scripted, added, bookmark, deleted, modified, page, raw_pod
from ..virtual_time import run, settle, virtual_time
from .handlers import Follower
from .subject import informer, versions_in_cache

pytestmark = [pytest.mark.usefixtures("kept"), pytest.mark.parametrize("queue", ["real"], indirect=True)]


@virtual_time
async def test_handler_gets_every_event_in_order_c16() -> None:
    events = [
        added("a", 11),
        added("b", 12),
        modified("a", 13),
        deleted("b", 14),
        added("b", 15),
        modified("a", 16),
    ]
    subject = informer(Scripted([page(version=10)], [[events, FOREVER]]))
    follower = Follower()
    subject.add_event_handler(follower)
    async with subject:
        await asyncio.sleep(1)
    assert follower.calls == [
        "add a 11",
        "add b 12",
        "update a 11 13",
        "delete b 14",
        "add b 15",
        "update a 13 16",
    ]


@virtual_time
async def test_handler_gets_the_deletion_of_an_unknown_object_c17() -> None:
    gone: list[str] = []
    subject = informer(Scripted([page(version=10)], [[deleted("a", 11), FOREVER]]))
    subject.add_event_handler(ResourceEventHandlerFuncs(on_delete=lambda obj: gone.append(obj.key)))
    async with subject:
        await asyncio.sleep(1)
    assert gone == ["default/a"]


@virtual_time
async def test_store_version_follows_list_events_and_bookmarks_c38() -> None:
    seen: list[str] = []

    def record(*_: object) -> None:
        seen.append(subject.store.last_store_sync_resource_version)

    server = Scripted(
        [page(raw_pod("a", 7), raw_pod("b", 3), version=10), page(version=20)],
        [[1.0, added("c", 11), 1.0, bookmark(12), 4.0, GONE]],
    )
    subject = informer(server)
    subject.add_event_handler(ResourceEventHandlerFuncs(on_add=record, on_delete=record))
    async with subject:
        await subject.wait_synced()
        record()
        await asyncio.sleep(2.5)
        record()
        await asyncio.sleep(60)
    assert seen == ["10", "10", "10", "11", "12", "20", "20", "20"]


@virtual_time
async def test_empty_collection_is_synced_once_its_list_was_processed_c21() -> None:
    subject = informer(Scripted([page(version=10)]))
    async with subject:
        await subject.wait_synced()
        assert subject.store.last_store_sync_resource_version == "10"


def test_handler_added_at_any_step_of_a_relist_misses_and_repeats_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """C40, while the list is processed in slices."""
    monkeypatch.setattr("aioinformer._core.coop.SLICE", -1.0)  # a pause at each step
    lists = [
        page(raw_pod("a", 1), raw_pod("b", 2), raw_pod("c", 3), version=10),
        page(raw_pod("b", 15), raw_pod("d", 16), raw_pod("e", 17), version=20),
    ]
    kinds = set()
    for steps in range(70):

        async def main(steps: int = steps) -> Follower:
            subject = informer(Scripted(lists, [[6.0, GONE], [modified("d", 21), deleted("e", 22), FOREVER]]))
            first = Follower()
            subject.add_event_handler(first)
            async with subject:
                await asyncio.sleep(6.8)
                await settle(steps)
                late = Follower()
                registration = subject.add_event_handler(late)
                await registration.wait_synced()
                await asyncio.sleep(60)
                for follower in (first, late):
                    assert (
                        follower.copy == versions_in_cache(subject) == {"default/b": "15", "default/d": "21"}
                    )
                    assert not follower.wrong
            return late

        kinds.add(tuple(run(main()).calls[:3]))
    assert len(kinds) > 2, "before, after and in the middle"


@virtual_time
async def test_long_list_does_not_block_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aioinformer._core.coop.SLICE", 0.0005)
    subject = informer(Scripted([page(*(raw_pod(str(number)) for number in range(20_000)), version=10)]))
    follower = Follower()
    registration = subject.add_event_handler(follower)
    progress: set[int] = set()
    async with subject:
        while not subject.has_synced():
            await asyncio.sleep(0)
            progress.add(registration.state.depth + registration.state.delivered)
        assert len(subject.store) == 20_000
    assert len(progress) > 3


class TestNamespaces:
    @virtual_time
    async def test_relist_of_one_namespace_during_events_of_another(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each namespace has its own queue, and its list replaces its part of the store."""
        monkeypatch.setattr("aioinformer._core.coop.SLICE", -1.0)
        red = [raw_pod(f"r{number}", number, "red") for number in range(50)]
        blue = [added(f"b{number}", 100 + number, namespace="blue") for number in range(200)]
        servers = {
            "red": Scripted([page(*red, version=90), page(*red[25:], version=95)], [[6.0, GONE]]),
            "blue": Scripted([page(version=99)], [[6.8, *blue, FOREVER]]),
        }
        subject = SharedIndexInformer(
            servers, KubeObject, indexers={"version": lambda obj: [obj.resource_version]}, random=NoJitter()
        )
        follower = Follower()
        subject.add_event_handler(follower)
        async with subject:
            await asyncio.sleep(60)
            names = [obj.name for obj in subject.store.list()]
            assert sorted(names) == sorted([f"r{n}" for n in range(25, 50)] + [f"b{n}" for n in range(200)])
            assert len(subject.lister.namespace("red").list()) == 25
            assert len(subject.indexer.list_index_func_values("version")) == 225
            assert follower.copy == versions_in_cache(subject)
        assert not follower.wrong
        first_gone = follower.calls.index("tombstone r0 0")
        assert any(call.startswith("add b") for call in follower.calls[:first_gone])
        assert any(call.startswith("add b") for call in follower.calls[first_gone:])

    @virtual_time
    async def test_missed_deletions_come_in_the_order_of_the_adds(self) -> None:
        """As with a single namespace: sorting all keys would block the event loop."""
        red = [raw_pod(name, 1, "red") for name in "cab"]
        servers = {
            "red": Scripted([page(*red, version=90), page(version=95)], [[GONE]]),
            "blue": Scripted([page(version=99)]),
        }
        subject = SharedIndexInformer(servers, KubeObject, random=NoJitter())
        follower = Follower()
        subject.add_event_handler(follower)
        async with subject:
            await asyncio.sleep(60)
        assert follower.calls[3:] == ["tombstone c 1", "tombstone a 1", "tombstone b 1"]

    @virtual_time
    async def test_resync_reaches_each_object_once_per_period(self) -> None:
        servers = {name: Scripted([page(raw_pod("a", 1, name), version=10)]) for name in ("red", "blue")}
        subject = SharedIndexInformer(servers, KubeObject, 10.0)
        follower = Follower()
        subject.add_event_handler(follower)
        async with subject:
            await asyncio.sleep(25)
        assert follower.calls.count("update a 1 1") == 4


class TestBackPressure:
    @virtual_time
    async def test_blocking_handler_delays_the_watch(self) -> None:
        """C29: the queue is bounded, and it does not merge events."""
        events = [modified("a", version) for version in range(11, 10_011)]
        stream = [events[start : start + 100] for start in range(0, 10_000, 100)]
        subject = informer(Scripted([page(raw_pod("a", 1), version=10)], [[*stream, FOREVER]]))
        slow = Follower(seconds=1.0)
        subject.add_event_handler(slow, backlog="block", backlog_limit=5)
        async with subject:
            await asyncio.sleep(100)
            assert 2000 <= subject.state.queue_depth < 2200
            assert int(subject.last_sync_resource_version) < 2500
            await asyncio.sleep(20_000)
            assert slow.copy == {"default/a": "10010"}
        assert not slow.wrong

    @virtual_time
    async def test_blocking_handler_delays_a_list(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is checked after each slice, which here is each notification."""
        monkeypatch.setattr("aioinformer._core.coop.SLICE", -1.0)
        subject = informer(Scripted([page(*(raw_pod(str(number)) for number in range(100)), version=10)]))
        slow = Follower(seconds=1.0)
        registration = subject.add_event_handler(slow, backlog="block", backlog_limit=5)
        async with subject:
            await asyncio.sleep(10.5)
            assert len(subject.store) == 100
            assert not subject.has_synced()
            await subject.wait_synced()
            assert registration.state.high_water == 5


@virtual_time
async def test_mutation_detector_checks_listed_objects() -> None:
    subject = SharedIndexInformer(
        Scripted([page(raw_pod("a", 1), version=10)]),
        dict[str, Any],
        mutation_detector=CacheMutationDetector(1.0),
    )
    with pytest.raises(CacheMutatedError, match="default/a"):
        async with subject:
            await subject.wait_synced()
            subject.store.list()[0]["spec"]["wrong"] = 1
            await asyncio.sleep(5)


def test_handle_deltas_accepts_replaced_all() -> None:
    subject = informer(Scripted())
    first = KubeObject.from_bytes(raw_pod("a", 1))
    subject.handle_deltas([Delta(DeltaType.REPLACED_ALL, ReplacedAllInfo("7", [first]))])
    assert subject.store.list() == [first]
    assert subject.store.last_store_sync_resource_version == "7"
