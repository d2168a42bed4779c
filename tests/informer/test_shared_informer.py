"""SharedIndexInformer: one collection, one cache, many handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from aioinformer import (
    AlreadyStartedError,
    CacheMutatedError,
    CacheMutationDetector,
    ConfigError,
    DeletedFinalStateUnknown,
    Delta,
    DeltaType,
    IndexerConflictError,
    KeyFuncError,
    KubeObject,
    Phase,
    ProcessorListener,
    ResourceEventHandlerFuncs,
    SharedIndexInformer,
    StoppedError,
)

from ..reflector.running import NoJitter
from ..reflector.scripted import (
    FOREVER,
    Scripted,
    added,
    bookmark,
    deleted,
    error_event,
    expired,
    modified,
    page,
    pod,
)
from ..steps import until
from ..virtual_time import cancel_after, run, settled, virtual_time
from .handlers import Follower

GONE = error_event(410, "Gone")


def informer(server: Scripted, **options: Any) -> SharedIndexInformer[KubeObject]:
    return SharedIndexInformer(server, KubeObject, random=NoJitter(), **options)


def cached(informer: SharedIndexInformer[KubeObject]) -> dict[str, str]:
    return {obj.key: obj.resource_version for obj in informer.store.list()}


class TestTheWayOfTheData:
    @virtual_time
    async def test_the_cache_follows_and_handlers_are_told(self) -> None:
        """C56: in the store's order; C33: what a relist brings is not of the initial list."""
        server = Scripted(
            [page(pod("a", 1), pod("b", 2), version=10), page(pod("c", 11), pod("d", 19), version=20)],
            [[1.0, added("c", 11), modified("a", 12), deleted("b", 13), 6.0, GONE]],
        )
        subject = informer(server)
        follower = Follower()
        subject.add_event_handler(follower)
        async with subject:
            await subject.wait_synced()
            assert cached(subject) == {"default/a": "1", "default/b": "2"}
            await asyncio.sleep(60)
            assert cached(subject) == {"default/c": "11", "default/d": "19"}
            assert subject.last_sync_resource_version == "20"
        assert follower.calls == [
            "add a 1", "add b 2", "add c 11", "update a 1 12", "delete b 13", "add d 19", "tombstone a 12",
        ]  # fmt: skip
        assert follower.initial == [True, True, False, False]
        assert not follower.wrong
        server.assert_closed()

    @virtual_time
    async def test_the_store_is_changed_before_handlers_are_told(self) -> None:
        """C32."""
        seen: list[str | None] = []

        def look(obj: KubeObject | DeletedFinalStateUnknown[Any], *_: object) -> None:
            stored = subject.store.get_by_key(obj.key)
            seen.append(None if stored is None else stored.resource_version)

        subject = informer(Scripted([page(pod("a", 1), version=10)], [[deleted("a", 11), FOREVER]]))
        subject.add_event_handler(ResourceEventHandlerFuncs(on_add=look, on_delete=look))
        async with subject:
            await asyncio.sleep(1)
        assert seen[-1] is None

    @virtual_time
    async def test_synced_only_after_the_last_initial_object(self) -> None:
        """W2: difference from upstream."""
        server = Scripted([page(*(pod(str(n)) for n in range(5000)), version=10)])
        async with informer(server) as subject:
            await subject.wait_synced()
            assert len(subject.store) == 5000
            assert subject.state.synced

    @virtual_time
    async def test_a_slow_handler_delays_neither_the_cache_nor_another_handler(self) -> None:
        """C55."""

        async def stall(obj: KubeObject, is_in_initial_list: bool) -> None:
            await asyncio.sleep(1000)

        subject = informer(Scripted([page(*(pod(str(n)) for n in range(2000)), version=10)]))
        slow = subject.add_event_handler(ResourceEventHandlerFuncs(on_add=stall))
        follower = Follower()
        subject.add_event_handler(follower)
        async with subject:
            await subject.wait_synced(timeout=1)
            await settled(200)
            assert len(follower.copy) == 2000
            assert slow.state.depth == 2000
            assert not slow.has_synced()

    @virtual_time
    async def test_a_handler_that_raises_is_logged_counted_and_goes_on_at_once(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """C42, W16: difference from upstream, where it never becomes synced and pauses for a second."""
        loop = asyncio.get_running_loop()
        subject = informer(Scripted([page(pod("a", 7), pod("b", 8), version=10)]))
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
    async def test_an_object_without_a_name_stops_no_other(self, caplog: pytest.LogCaptureFixture) -> None:
        nameless = b'{"metadata": {"resourceVersion": "3"}}'
        async with informer(Scripted([page(nameless, pod("a", 1), version=10)])) as subject:
            await subject.wait_synced()
            assert cached(subject) == {"default/a": "1"}
            assert subject.state.reflectors[0].rejected == 1

    @virtual_time
    async def test_a_key_function_of_ones_own(self) -> None:
        def key(obj: KubeObject) -> str:
            if obj.name == "bad":
                raise ZeroDivisionError
            return obj.uid

        server = Scripted(
            [page(pod("a", 1), pod("bad", 2), version=10), page(pod("b", 11), version=20)],
            [[6.0, GONE]],
        )
        subject = informer(server, key_func=key)
        async with subject:
            await subject.wait_synced()
            assert subject.store.list_keys() == ["uid-a"]
            await asyncio.sleep(60)
            assert subject.store.list_keys() == ["uid-b"]

    @virtual_time
    async def test_a_transformer(self) -> None:
        """C14: once per object, also on what a watch says was deleted; C79: one that fails loses that object only."""
        seen: list[str] = []

        def strip(obj: KubeObject) -> KubeObject:
            seen.append(f"{obj.name} {obj.resource_version}")
            if obj.name == "bad":
                raise ValueError("cannot")
            return KubeObject.from_bytes(obj.raw.replace(b'"big": 1', b'"big": 0'))

        server = Scripted(
            [page(pod("a", 1, big=1), pod("bad", 2), version=10)], [[0.5, deleted("a", 11, big=1), FOREVER]]
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

    def test_handle_deltas_without_running(self) -> None:
        subject = informer(Scripted())
        first, nameless = KubeObject.from_bytes(pod("a", 1)), KubeObject.from_bytes(b'{"metadata": {}}')
        with pytest.raises(KeyFuncError):
            subject.handle_deltas([Delta(DeltaType.ADDED, nameless), Delta(DeltaType.ADDED, first)])
        assert subject.store.list() == [first]

    @virtual_time
    async def test_indexes_and_the_lister(self) -> None:
        """C39: added while running they hold what is there."""
        subject = informer(
            Scripted([page(pod("a", 1, node="n1"), pod("b", 2, node="n2"), version=10)]),
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


class TestRelistsAndResyncs:
    @pytest.mark.parametrize("resync", [0.0, 1000.0])
    @virtual_time
    async def test_unchanged_objects_of_a_relist_are_no_news(self, resync: float) -> None:
        """C43, C44: difference from upstream, where with resync off every handler is told of every object."""
        server = Scripted(
            [page(pod("a", 1), pod("b", 2), version=10), page(pod("a", 1), pod("b", 15), version=20)],
            [[6.0, GONE]],
        )
        subject = SharedIndexInformer(server, KubeObject, resync, random=NoJitter())
        follower = Follower()
        subject.add_event_handler(follower)
        async with subject:
            await asyncio.sleep(60)
        assert follower.calls == ["add a 1", "add b 2", "update b 2 15"]

    @virtual_time
    async def test_they_are_for_handlers_whose_resync_is_due(self) -> None:
        """C43."""
        server = Scripted([page(pod("a", 1), version=10), page(pod("a", 1), version=20)], [[12.0, GONE]])
        subject = SharedIndexInformer(server, KubeObject, 10.0, random=NoJitter())
        often, never = Follower(), Follower()
        subject.add_event_handler(often)
        subject.add_event_handler(never, 0.0)
        async with subject:
            await asyncio.sleep(15)
        assert often.resyncs == 2, "one at 10 s, one by the list at 12.8 s"
        assert never.resyncs == 0

    @virtual_time
    async def test_each_handler_at_its_own_period(self) -> None:
        """C46 (the shortest before the start is the check period), C48, C49 (rounded up to a multiple of it)."""
        subject = SharedIndexInformer(Scripted([page(pod("a", 1), version=10)]), KubeObject, 100.0)
        periods = {2.0: 50, 3.0: 25, 5.0: 16, 100.0: 1, 0.0: 0}
        followers = {period: Follower() for period in periods}
        for period, follower in followers.items():
            subject.add_event_handler(follower, period)
        async with subject:
            await asyncio.sleep(101)
        assert {period: follower.resyncs for period, follower in followers.items()} == periods

    def test_added_before_there_is_a_loop(self) -> None:
        """The period counts from the start."""
        subject = SharedIndexInformer(Scripted([page(pod("a", 1), version=10)]), KubeObject, 2.0)
        follower = Follower()
        subject.add_event_handler(follower, 5.0)

        async def main() -> None:
            async with subject:
                await asyncio.sleep(5.9)
                assert follower.resyncs == 0
                await asyncio.sleep(0.2)
                assert follower.resyncs == 1

        run(main())

    @virtual_time
    async def test_added_later_the_period_counts_from_then(self) -> None:
        """C49."""
        subject = SharedIndexInformer(Scripted([page(pod("a", 1), version=10)]), KubeObject, 10.0)
        follower = Follower()
        async with subject:
            await asyncio.sleep(5)
            subject.add_event_handler(follower, 30.0)
            await asyncio.sleep(34)
            assert follower.resyncs == 0
            await asyncio.sleep(2)
            assert follower.resyncs == 1

    def test_a_timer_that_rings_early_costs_no_period(self) -> None:
        """uvloop's do, by a millisecond."""
        listener = ProcessorListener(Follower(), 10.0, 10.0)
        listener.determine_next_resync(100.0)
        assert listener.should_resync(109.999)
        assert not listener.should_resync(109.9)

    @virtual_time
    async def test_less_than_a_second_is_a_second(self, caplog: pytest.LogCaptureFixture) -> None:
        """C45."""
        subject = SharedIndexInformer(Scripted([page(pod("a", 1), version=10)]), KubeObject, 100.0)
        follower = Follower()
        subject.add_event_handler(follower, 0.1)
        async with subject:
            await asyncio.sleep(10.5)
        assert follower.resyncs == 10
        assert "raised to 1 s" in caplog.text

    @virtual_time
    async def test_after_the_start_it_is_raised_to_the_check_period(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        """C46."""
        subject = SharedIndexInformer(Scripted([page(pod("a", 1), version=10)]), KubeObject, 20.0)
        follower = Follower()
        async with subject:
            await settled()
            subject.add_event_handler(follower, 5.0)
            await asyncio.sleep(41)
        assert follower.resyncs == 2
        assert "raised to 20 s" in caplog.text

    @virtual_time
    async def test_an_informer_that_does_not_resync(self, caplog: pytest.LogCaptureFixture) -> None:
        """C47."""
        subject = informer(Scripted([page(pod("a", 1), version=10)]))
        follower = Follower()
        subject.add_event_handler(follower, 5.0)
        async with subject:
            await asyncio.sleep(100)
        assert follower.resyncs == 0
        assert "is ignored" in caplog.text

    @virtual_time
    async def test_relists_do_not_put_resyncs_off(self) -> None:
        """C50: difference from upstream."""
        server = Scripted([page(pod("a", 1), version=10)] * 50, [[6.0, GONE]] * 50)
        subject = SharedIndexInformer(server, KubeObject, 10.0, random=NoJitter())
        calls = 0

        def on_update(old: KubeObject, new: KubeObject) -> None:
            nonlocal calls
            calls += 1

        subject.add_event_handler(ResourceEventHandlerFuncs(on_update=on_update))
        async with subject:
            await asyncio.sleep(101)
        assert calls >= 10

    @virtual_time
    async def test_nor_does_an_outage(self) -> None:
        server = Scripted([page(pod("a", 1), version=10)], [[6.0, OSError("cut")], *[OSError("down")] * 50])
        subject = SharedIndexInformer(server, KubeObject, 10.0)
        follower = Follower()
        subject.add_event_handler(follower)
        async with subject:
            await asyncio.sleep(101)
        assert follower.resyncs == 10


class TestNamespaces:
    def servers(self) -> dict[str, Scripted]:
        red = [page(pod("a", 1, "red"), pod("b", 2, "red"), version=10), page(pod("b", 2, "red"), version=20)]
        return {
            "red": Scripted(red, [[6.0, GONE]]),
            "blue": Scripted(
                [page(pod("a", 3, "blue"), version=11)], [[1.0, added("c", 12, namespace="blue"), FOREVER]]
            ),
        }

    @virtual_time
    async def test_they_are_one_collection_and_a_relist_of_one_deletes_in_that_one_only(self) -> None:
        subject = SharedIndexInformer(self.servers(), KubeObject, random=NoJitter())
        follower = Follower()
        registration = subject.add_event_handler(follower)
        async with subject:
            await registration.wait_synced()
            assert cached(subject) == {"red/a": "1", "red/b": "2", "blue/a": "3"}
            await asyncio.sleep(60)
            assert cached(subject) == {"red/b": "2", "blue/a": "3", "blue/c": "12"}
            assert [obj.name for obj in subject.lister.namespace("blue").list()] == ["a", "c"]
            assert subject.last_sync_resource_version == "12"
        assert sorted(follower.calls) == [
            "add a 1", "add a 3", "add b 2", "add c 12", "tombstone a 1",
        ]  # fmt: skip
        assert follower.initial == [True, True, True, False]

    @virtual_time
    async def test_synced_only_once_all_are(self) -> None:
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
    async def test_all_are_resynced_each_period(self) -> None:
        """Whether a resync is due is asked once for all, whenever each began to watch."""
        servers = {
            "red": Scripted([page(pod("a", 1, "red"), version=10)]),
            "blue": Scripted([3.0, page(pod("a", 2, "blue"), version=10)]),
            "green": Scripted([7.0, page(pod("a", 3, "green"), version=10)]),
        }
        subject = SharedIndexInformer(servers, KubeObject, 10.0)
        follower = Follower()
        subject.add_event_handler(follower)
        async with subject:
            await asyncio.sleep(45)
        assert [follower.calls.count(f"update a {n} {n}") for n in (1, 2, 3)] == [4, 4, 4]

    @virtual_time
    async def test_each_is_named(self) -> None:
        servers = {name: Scripted([OSError("no")] * 9) for name in ("red", "blue")}
        subject = SharedIndexInformer(servers, KubeObject, name="pods")
        async with subject:
            await asyncio.sleep(0.5)
            assert [each.name for each in subject.state.reflectors] == ["pods in red", "pods in blue"]

    @pytest.mark.parametrize("list_watches", [{}, {"": Scripted(), "red": Scripted()}])
    def test_mappings_that_make_no_sense(self, list_watches: dict[str, Scripted]) -> None:
        with pytest.raises(ConfigError, match="everything or some namespaces"):
            SharedIndexInformer(list_watches, KubeObject)


class TestLifecycle:
    @virtual_time
    async def test_it_runs_once(self) -> None:
        """W18."""
        subject = informer(Scripted([page(version=1)]))
        async with subject:
            with pytest.raises(AlreadyStartedError, match="already started: scripted pods"):
                await subject.run()
            with pytest.raises(AlreadyStartedError):
                async with subject:
                    pass
        with pytest.raises(AlreadyStartedError):
            await subject.run()
        with pytest.raises(AlreadyStartedError):
            async with subject:
                pass

    @virtual_time
    async def test_run_by_hand_it_cannot_be_entered(self) -> None:
        subject = informer(Scripted([page(version=1)]))
        task = asyncio.create_task(subject.run())
        await subject.wait_synced()
        with pytest.raises(AlreadyStartedError):
            async with subject:
                pass
        task.cancel()
        await asyncio.wait({task})
        assert subject.is_stopped

    @pytest.mark.parametrize("started", [False, True])
    @virtual_time
    async def test_what_must_be_set_before_the_start(self, started: bool) -> None:
        subject = informer(Scripted([page(version=1)]))
        async with subject:
            if started:
                await settled()
            with pytest.raises(AlreadyStartedError, match="already started"):
                subject.set_transform(lambda obj: obj)
            with pytest.raises(AlreadyStartedError, match="already started"):
                subject.set_watch_error_handler(lambda reflector, error: None)

    @virtual_time
    async def test_the_watch_error_handler(self) -> None:
        """The last one set counts; errors in the stream reach it, too (C72: difference from upstream)."""
        errors: list[str] = []
        server = Scripted([OSError("no"), page(version=10)], [[GONE]])
        subject = informer(server, watch_error_handler=lambda reflector, error: errors.append("another's"))
        subject.set_watch_error_handler(lambda reflector, error: errors.append(f"{reflector.name}: {error}"))
        async with subject:
            await asyncio.sleep(10)
        assert errors == ["scripted pods: no", "scripted pods: 410 Gone: no message"]

    @virtual_time
    async def test_entered_in_one_task_and_left_in_another(self) -> None:
        subject = informer(server := Scripted([page(version=1)]))
        await asyncio.create_task(subject.__aenter__())
        await subject.wait_synced()
        await asyncio.create_task(subject.__aexit__(None, None, None))
        assert subject.is_stopped
        server.assert_closed()

    @virtual_time
    async def test_left_before_it_has_begun(self) -> None:
        """Whoever waits for it learns that it is over."""
        subject = informer(server := Scripted([page(version=1)]))
        registration = subject.add_event_handler(Follower())
        waiting = [asyncio.create_task(each.wait_synced()) for each in (subject, registration)]
        await settled()
        async with subject:
            pass
        for task in waiting:
            with pytest.raises(StoppedError):
                await task
        assert subject.is_stopped
        assert not server.calls
        with pytest.raises(StoppedError):
            subject.add_event_handler(Follower())

    @virtual_time
    async def test_an_error_of_run_is_raised_on_leaving(self) -> None:
        class Mutating:
            def on_add(self, obj: dict[str, Any], is_in_initial_list: bool) -> None:
                obj["metadata"]["labels"] = {"seen": "yes"}

            def on_update(self, old: dict[str, Any], new: dict[str, Any]) -> None: ...

            def on_delete(self, obj: dict[str, Any] | DeletedFinalStateUnknown[Any]) -> None: ...

        subject = SharedIndexInformer(
            Scripted([page(pod("a", 1), version=10)]),
            dict[str, Any],
            mutation_detector=CacheMutationDetector(1.0),
        )
        subject.add_event_handler(Mutating())
        with pytest.raises(CacheMutatedError, match="default/a"):
            async with subject:
                await asyncio.sleep(5)
                assert subject.is_stopped
        with pytest.raises(StoppedError):
            subject.add_event_handler(Mutating())

    @virtual_time
    async def test_handlers_end_strictly_after_reading(self) -> None:
        """C57: controller first, then processor; what still waits is dropped, a call that runs is cancelled."""
        order: list[str] = []

        class Server(Scripted):
            async def watch(self, options: Any) -> Any:
                return Watched()

        class Watched:
            def __aiter__(self) -> Any:
                return self

            async def __anext__(self) -> Any:
                await asyncio.get_running_loop().create_future()

            async def aclose(self) -> None:
                await asyncio.sleep(1)
                order.append("watch closed")

        async def on_add(obj: KubeObject, is_in_initial_list: bool) -> None:
            try:
                await asyncio.sleep(1000)
            finally:
                order.append(f"handler of {obj.name} ended")

        subject = informer(Server([page(pod("a", 1), pod("b", 2), version=10)]))
        registration = subject.add_event_handler(ResourceEventHandlerFuncs(on_add=on_add))
        async with subject:
            await asyncio.sleep(1)
        assert order == ["watch closed", "handler of a ended"]
        assert registration.state.depth == 0

    @virtual_time
    async def test_synced_stays_true_and_unsynced_stays_false(self) -> None:
        """C58."""
        subject = informer(Scripted([page(version=1)]))
        assert not subject.has_synced()
        async with subject:
            await subject.wait_synced()
        assert subject.has_synced()
        await subject.wait_synced()
        subject = informer(Scripted())
        async with subject:
            await settled()
        assert not subject.has_synced()
        with pytest.raises(StoppedError, match="scripted pods stopped before it had synced"):
            await subject.wait_synced()

    @pytest.mark.parametrize(
        "server",
        [
            lambda: Scripted([page(pod("a", 1), version=10)], [[added("b", 11), deleted("a", 12), FOREVER]]),
            lambda: Scripted([page(pod("a", 1), version=10), expired(), page(version=12)], [[GONE]]),
            lambda: Scripted([OSError("x")], [OSError("x")], watch_list_semantics=True),
        ],
    )
    def test_cancelled_anywhere_nothing_is_left_and_waiters_are_told(
        self, server: Callable[[], Scripted]
    ) -> None:
        """C75; and what each handler was told is a beginning of what happened."""
        for steps in range(60):

            async def main(steps: int = steps) -> None:
                source = server()
                subject = SharedIndexInformer(source, KubeObject, 0.5, random=NoJitter())
                follower = Follower(seconds=0.01)
                waiting = [
                    asyncio.create_task(each.wait_synced())
                    for each in (subject, subject.add_event_handler(follower))
                ]
                task = asyncio.create_task(subject.run())
                assert await cancel_after(steps, task)
                source.assert_closed()
                if steps == 0:
                    for each in waiting:  # it never began, and may yet
                        each.cancel()
                await asyncio.wait(waiting)
                assert steps == 0 or subject.is_stopped
                for each in waiting:
                    if not each.cancelled() and each.exception() is not None:
                        assert isinstance(each.exception(), StoppedError)
                assert not follower.wrong

            run(main())

    @virtual_time
    async def test_waiting_can_be_cancelled(self) -> None:
        for steps in range(8):
            subject = informer(Scripted())
            async with subject:
                assert await cancel_after(steps, asyncio.create_task(subject.wait_synced()))

    @virtual_time
    async def test_leaving_while_cancelled_still_waits_for_the_end(self) -> None:
        for steps in range(12):
            subject = informer(server := Scripted([page(pod("a", 1), version=1)]))
            await subject.__aenter__()
            await subject.wait_synced()
            await cancel_after(steps, asyncio.create_task(subject.__aexit__(None, None, None)))
            if steps:
                assert subject.is_stopped
                server.assert_closed()
            else:
                await subject.__aexit__(None, None, None)

    def test_unknown_queues_and_object_types(self) -> None:
        with pytest.raises(ConfigError, match="no queue named 'ring'"):
            SharedIndexInformer(Scripted(), KubeObject, queue="ring")  # type: ignore[arg-type]
        with pytest.raises(ConfigError):
            SharedIndexInformer(Scripted(), int)


class TestState:
    def test_before_the_start_and_outside_a_loop(self) -> None:
        subject = informer(Scripted())
        subject.add_event_handler(Follower(), 5.0)
        state = subject.state
        assert str(state) == "not synced, 0 objects, 0 queued; not started"
        assert (state.phase, state.last_error, state.idle_seconds) == (Phase.NEW, None, None)
        assert subject.last_sync_resource_version == ""
        assert not subject.is_stopped
        assert repr(subject) == "<SharedIndexInformer scripted pods>"

    @virtual_time
    async def test_through_a_life(self) -> None:
        server = Scripted(
            [OSError("refused"), page(pod("a", 1), version=10)], [[20.0, bookmark(12), FOREVER]]
        )
        subject = informer(server)
        async with subject:
            await asyncio.sleep(0.3)
            assert str(subject.state) == (
                "not synced, 0 objects, 0 queued; scripted pods: backing off for 0.3 s, next try in 0.5 s, "
                "nothing received; last error: refused"
            )
            await asyncio.sleep(10)
            assert str(subject.state) == (
                "synced, 1 objects, 0 queued; scripted pods: watching for 9.5 s, last byte 9.5 s ago; "
                "last error: refused"
            )
            assert subject.state.idle_seconds == pytest.approx(9.5)
            await asyncio.sleep(20)
            assert subject.state.last_error is None
        assert subject.state.phase is Phase.STOPPED
        assert "stopped for 0.0 s" in str(subject.state)

    def test_after_the_end_and_outside_a_loop(self) -> None:
        subject = informer(Scripted([page(version=1)]))

        async def main() -> None:
            async with subject:
                await subject.wait_synced()

        run(main())
        assert subject.state.phase is Phase.STOPPED
        assert subject.state.synced
        with pytest.raises(StoppedError):
            subject.add_event_handler(Follower())


async def test_on_the_real_loops() -> None:
    server = Scripted([page(pod("a", 1), version=10)], [[added("b", 11), deleted("a", 12), FOREVER]])
    subject = informer(server)
    follower = Follower()
    registration = subject.add_event_handler(follower)
    async with subject:
        await registration.wait_synced(timeout=5)
        await until(lambda: len(follower.calls) == 3)
    assert follower.calls == ["add a 1", "add b 11", "delete a 12"]
    server.assert_closed()
