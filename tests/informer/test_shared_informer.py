"""SharedIndexInformer: one collection, one cache, many handlers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aioinformer import (
    ConfigError,
    DeletedFinalStateUnknown,
    KubeObject,
    ResourceEventHandlerFuncs,
    SharedIndexInformer,
    StoppedError,
)
from aioinformer.cache import Delta, DeltaType, Phase
from aioinformer.controller import QueueName
from aioinformer.errors import IndexerConflictError, KeyFuncError

from ..reflector.running import NoJitter
from ..reflector.scripted import FOREVER, GONE, Scripted, added, bookmark, deleted, modified, page, raw_pod
from ..steps import until
from ..virtual_time import run, settle, virtual_time
from .handlers import Follower
from .subject import informer, versions_in_cache

pytestmark = pytest.mark.usefixtures("kept")


class TestDataFlow:
    @virtual_time
    async def test_cache_follows_server_and_handlers_are_called(self, queue: QueueName) -> None:
        """C56: in the store's order; C33: a relist is not the initial list; C9, C32: the order of a relist's
        notifications."""
        server = Scripted(
            [
                page(raw_pod("a", 1), raw_pod("b", 2), version=10),
                page(raw_pod("c", 11), raw_pod("d", 19), version=20),
            ],
            [[1.0, added("c", 11), modified("a", 12), deleted("b", 13), 6.0, GONE]],
        )
        subject = informer(server)
        follower = Follower()
        subject.add_event_handler(follower)
        async with subject:
            await subject.wait_synced()
            assert versions_in_cache(subject) == {"default/a": "1", "default/b": "2"}
            await asyncio.sleep(60)
            assert versions_in_cache(subject) == {"default/c": "11", "default/d": "19"}
            assert subject.last_sync_resource_version == "20"
        relisted = ["add d 19", "tombstone a 12"] if queue == "delta" else ["tombstone a 12", "add d 19"]
        assert follower.calls == [
            "add a 1", "add b 2", "add c 11", "update a 1 12", "delete b 13", *relisted,
        ]  # fmt: skip
        assert follower.initial == [True, True, False, False]
        assert not follower.wrong
        server.assert_closed()

    @virtual_time
    async def test_store_changes_before_handlers_are_called(self) -> None:
        """C32."""
        seen: list[str | None] = []

        def record(obj: KubeObject | DeletedFinalStateUnknown[Any], *_: object) -> None:
            stored = subject.store.get_by_key(obj.key)
            seen.append(None if stored is None else stored.resource_version)

        subject = informer(Scripted([page(raw_pod("a", 1), version=10)], [[deleted("a", 11), FOREVER]]))
        subject.add_event_handler(ResourceEventHandlerFuncs(on_add=record, on_delete=record))
        async with subject:
            await asyncio.sleep(1)
        assert seen[-1] is None

    @virtual_time
    async def test_has_synced_after_the_last_initial_object(self) -> None:
        """W2: difference from upstream."""
        server = Scripted([page(*(raw_pod(str(n)) for n in range(5000)), version=10)])
        async with informer(server) as subject:
            await subject.wait_synced()
            assert len(subject.store) == 5000
            assert subject.state.synced

    @virtual_time
    async def test_slow_handler_delays_neither_cache_nor_other_handlers(self) -> None:
        """C55."""

        async def stall(obj: KubeObject, is_in_initial_list: bool) -> None:
            await asyncio.sleep(1000)

        subject = informer(Scripted([page(*(raw_pod(str(n)) for n in range(2000)), version=10)]))
        slow = subject.add_event_handler(ResourceEventHandlerFuncs(on_add=stall))
        follower = Follower()
        subject.add_event_handler(follower)
        async with subject:
            await subject.wait_synced(timeout=1)
            await settle(200)
            assert len(follower.copy) == 2000
            assert slow.state.depth == 2000
            assert not slow.has_synced()

    @virtual_time
    async def test_failing_handler_is_logged_counted_and_continues_at_once(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """C42, W16: difference from upstream, where such a handler never syncs and pauses for a second."""
        loop = asyncio.get_running_loop()
        subject = informer(Scripted([page(raw_pod("a", 7), raw_pod("b", 8), version=10)]))
        follower = Follower(raises=1)
        registration = subject.add_event_handler(follower)
        async with subject:
            started = loop.time()
            await registration.wait_synced()
            assert loop.time() - started < 0.1
        assert follower.calls == ["add a 7", "add b 8"]
        assert (registration.state.failed, registration.state.delivered) == (2, 2)
        assert "a follower failed on add of default/a at 7" in caplog.text

    @virtual_time
    async def test_object_without_name_does_not_stop_others(self, caplog: pytest.LogCaptureFixture) -> None:
        nameless = b'{"metadata": {"resourceVersion": "3"}}'
        async with informer(Scripted([page(nameless, raw_pod("a", 1), version=10)])) as subject:
            await subject.wait_synced()
            assert versions_in_cache(subject) == {"default/a": "1"}
            assert subject.state.reflectors[0].rejected == 1

    @virtual_time
    async def test_custom_key_function(self) -> None:
        def key(obj: KubeObject) -> str:
            if obj.name == "bad":
                raise ZeroDivisionError
            return obj.uid

        server = Scripted(
            [page(raw_pod("a", 1), raw_pod("bad", 2), version=10), page(raw_pod("b", 11), version=20)],
            [[6.0, GONE]],
        )
        subject = informer(server, key_func=key)
        async with subject:
            await subject.wait_synced()
            assert subject.store.list_keys() == ["uid-a"]
            await asyncio.sleep(60)
            assert subject.store.list_keys() == ["uid-b"]

    @virtual_time
    async def test_transformer_is_called_once_per_object(self) -> None:
        """C14: once per object, also for deletions of a watch; C79: a failure loses that object only."""
        seen: list[str] = []

        def strip(obj: KubeObject) -> KubeObject:
            seen.append(f"{obj.name} {obj.resource_version}")
            if obj.name == "bad":
                raise ValueError("cannot")
            return KubeObject.from_bytes(obj.raw.replace(b'"big": 1', b'"big": 0'))

        server = Scripted(
            [page(raw_pod("a", 1, big=1), raw_pod("bad", 2), version=10)],
            [[0.5, deleted("a", 11, big=1), FOREVER]],
        )
        subject = informer(server)
        subject.set_transform(strip)
        gone: list[Any] = []
        subject.add_event_handler(ResourceEventHandlerFuncs(on_delete=gone.append))
        async with subject:
            await subject.wait_synced()
            (obj,) = subject.store.list()
            assert obj["spec"] == {"big": 0}
            await asyncio.sleep(1)
        assert seen == ["a 1", "bad 2", "a 11"]
        assert gone[0]["spec"] == {"big": 0}

    def test_handle_deltas_works_without_running(self) -> None:
        subject = informer(Scripted())
        first, nameless = KubeObject.from_bytes(raw_pod("a", 1)), KubeObject.from_bytes(b'{"metadata": {}}')
        with pytest.raises(KeyFuncError):
            subject.handle_deltas([Delta(DeltaType.ADDED, nameless), Delta(DeltaType.ADDED, first)])
        assert subject.store.list() == [first]

    @virtual_time
    async def test_indexes_and_lister(self) -> None:
        """C39: indexers added while running index stored objects."""
        subject = informer(
            Scripted([page(raw_pod("a", 1, node="n1"), raw_pod("b", 2, node="n2"), version=10)]),
            indexers={"node": lambda obj: [obj["spec"]["node"]]},
        )
        async with subject:
            await subject.wait_synced()
            assert [obj.name for obj in subject.indexer.by_index("node", "n1")] == ["a"]
            subject.add_indexers({"first": lambda obj: [obj.name[0]]})
            assert subject.indexer.index_keys("first", "b") == ["default/b"]
            with pytest.raises(IndexerConflictError):
                subject.add_indexers({"first": lambda obj: []})
            assert subject.lister.get("default/a").resource_version == "1"
            assert len(subject.lister.namespace("default").list()) == 2
        with pytest.raises(StoppedError):
            subject.add_indexers({"late": lambda obj: []})


class TestNamespaces:
    def servers(self) -> dict[str, Scripted]:
        red = [
            page(raw_pod("a", 1, "red"), raw_pod("b", 2, "red"), version=10),
            page(raw_pod("b", 2, "red"), version=20),
        ]
        return {
            "red": Scripted(red, [[6.0, GONE]]),
            "blue": Scripted(
                [page(raw_pod("a", 3, "blue"), version=11)],
                [[1.0, added("c", 12, namespace="blue"), FOREVER]],
            ),
        }

    @virtual_time
    async def test_relist_of_one_namespace_deletes_in_that_namespace_only(self) -> None:
        subject = SharedIndexInformer(self.servers(), KubeObject, random=NoJitter())
        follower = Follower()
        registration = subject.add_event_handler(follower)
        async with subject:
            await registration.wait_synced()
            assert versions_in_cache(subject) == {"red/a": "1", "red/b": "2", "blue/a": "3"}
            await asyncio.sleep(60)
            assert versions_in_cache(subject) == {"red/b": "2", "blue/a": "3", "blue/c": "12"}
            assert [obj.name for obj in subject.lister.namespace("blue").list()] == ["a", "c"]
            assert subject.last_sync_resource_version == "12"
        assert sorted(follower.calls) == [
            "add a 1", "add a 3", "add b 2", "add c 12", "tombstone a 1",
        ]  # fmt: skip
        assert follower.initial == [True, True, True, False]

    @virtual_time
    async def test_has_synced_after_all_namespaces(self) -> None:
        servers = self.servers() | {"green": Scripted([30.0, page(version=1)])}
        subject = SharedIndexInformer(servers, KubeObject)
        loop = asyncio.get_running_loop()
        async with subject:
            started = loop.time()
            await asyncio.sleep(5)
            assert not subject.has_synced()
            assert subject.last_sync_resource_version == ""
            assert subject.state.phase is Phase.LISTING
            await subject.wait_synced()
            assert loop.time() - started == pytest.approx(30)

    @virtual_time
    async def test_all_namespaces_resync_each_period(self) -> None:
        """Each reflector's clock asks; one that cannot list delays nothing."""
        servers = {
            "red": Scripted([page(raw_pod("a", 1, "red"), version=10)]),
            "blue": Scripted([3.0, page(raw_pod("a", 2, "blue"), version=10)]),
            "green": Scripted([7.0, page(raw_pod("a", 3, "green"), version=10)]),
            "away": Scripted([OSError("down")] * 50),
        }
        subject = SharedIndexInformer(servers, KubeObject, 10.0)
        follower = Follower()
        subject.add_event_handler(follower)
        async with subject:
            await asyncio.sleep(45)
        assert [follower.calls.count(f"update a {n} {n}") for n in (1, 2, 3)] == [4, 4, 4]

    @virtual_time
    async def test_reflector_names_include_the_namespace(self) -> None:
        servers = {name: Scripted([OSError("no")] * 9) for name in ("red", "blue")}
        for subject in (
            SharedIndexInformer(servers, KubeObject, name="pods"),
            SharedIndexInformer(servers, KubeObject),
        ):
            async with subject:
                await asyncio.sleep(0.5)
                names = [reflector.name for reflector in subject.state.reflectors]
                assert names == [f"{subject.name} in red", f"{subject.name} in blue"]

    @pytest.mark.parametrize("list_watches", [{}, {"": Scripted(), "red": Scripted()}])
    def test_invalid_mappings_of_namespaces_are_refused(self, list_watches: dict[str, Scripted]) -> None:
        with pytest.raises(ConfigError, match="all namespaces or a list of them"):
            SharedIndexInformer(list_watches, KubeObject)


class TestState:
    def test_state_before_the_start_without_event_loop(self) -> None:
        subject = informer(Scripted())
        subject.add_event_handler(Follower(), 5.0)
        state = subject.state
        assert (
            str(state)
            == "not synced, 0 objects, 0 queued; not started: enter it (async with), or await its run()"
        )
        assert (state.phase, state.last_error, state.idle_seconds) == (Phase.NEW, None, None)
        assert subject.last_sync_resource_version == ""
        assert not subject.is_stopped
        assert repr(subject) == "<SharedIndexInformer scripted pods>"

    @virtual_time
    async def test_state_from_start_to_stop(self) -> None:
        server = Scripted(
            [OSError("refused"), page(raw_pod("a", 1), version=10)], [[20.0, bookmark(12), FOREVER]]
        )
        subject = informer(server)
        async with subject:
            await asyncio.sleep(0.3)
            assert str(subject.state) == (
                "not synced, 0 objects, 0 queued; scripted pods: backing off for 0.3 s, next try in 0.5 s, "
                "nothing read yet; last error: refused"
            )
            await asyncio.sleep(5)
            assert str(subject.state) == (
                "synced, 1 objects, 0 queued; scripted pods: watching for 4.5 s, last byte 4.5 s ago; "
                "last error: refused"
            )
            assert subject.state.idle_seconds == pytest.approx(4.5)
            await asyncio.sleep(20)
            assert subject.state.last_error is None
        assert subject.state.phase is Phase.STOPPED
        assert "stopped for 0.0 s" in str(subject.state)

    def test_state_after_stop_without_event_loop(self) -> None:
        subject = informer(Scripted([page(version=1)]))

        async def main() -> None:
            async with subject:
                await subject.wait_synced()

        run(main())
        assert subject.state.phase is Phase.STOPPED
        assert subject.state.synced
        with pytest.raises(StoppedError):
            subject.add_event_handler(Follower())


async def test_runs_on_both_event_loops() -> None:
    server = Scripted([page(raw_pod("a", 1), version=10)], [[added("b", 11), deleted("a", 12), FOREVER]])
    subject = informer(server)
    follower = Follower()
    registration = subject.add_event_handler(follower)
    async with subject:
        await registration.wait_synced(timeout=5)
        await until(lambda: len(follower.calls) == 3)
    assert follower.calls == ["add a 1", "add b 11", "delete a 12"]
    server.assert_closed()


def test_custom_namespace_index_with_several_namespaces_is_refused() -> None:
    """The index separates the namespaces' lists: without it deletions would be missed."""
    servers = {name: Scripted([page(version=1)]) for name in ("red", "blue")}
    with pytest.raises(ConfigError, match="has its own index 'namespace'"):
        SharedIndexInformer(servers, KubeObject, indexers={"namespace": lambda obj: [obj.name]})
