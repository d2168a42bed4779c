"""operator/manager.py with leader election: only the leader reconciles."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from aioinformer import KubeObject
from aioinformer._core.tasks import finish
from aioinformer.errors import AlreadyStartedError
from aioinformer.leaderelection import LeaderElector
from aioinformer.operator import Controller, Manager, Request, Result, informer_triggers
from aioinformer.testing import ResourceType, Simulation
from tests.virtual_time import simulate_scenario

from .worlds import Reconciler, StubbornReconcile, create, elector, make_managed, return_or_raise


def holder(world: Simulation) -> str:
    """Return the Lease's holder; "" if it has none."""
    identity: str = world.server.get("coordination.k8s.io/v1", "leases", "operator")["spec"]["holderIdentity"]
    return identity


@simulate_scenario
async def test_standby_keeps_its_caches_synced_and_queues_changes(world: Simulation) -> None:
    create(world, "a")
    reconciler = Reconciler()
    manager, controller = make_managed(world.client, reconciler, leader_election=elector(world.client))
    async with elector(world.new_client()):
        running = manager.begin()
        await asyncio.sleep(60)
        create(world, "b")
        await asyncio.sleep(60)
        state = manager.state
        assert (reconciler.keys, state.leading, state.controllers[0].working) == ([], False, False)
        assert (len(controller.informer.store), controller.queue.state.depth) == (2, 2)
        assert manager.ready(), "who stands by is ready"
        assert "standing by" in str(state)
        assert 'leader_election_master_status{name="operator"} 0' in manager.metrics()
    began = world.now
    await world.eventually(lambda: sorted(reconciler.keys) == ["default/a", "default/b"], every=0.1)
    assert world.now - began < 5
    assert manager.state.leading
    assert str(manager.state).startswith("leading")
    await finish(running)
    assert (manager.state.ended, manager.state.leading) == (True, False)
    assert str(manager.state).startswith("ended")


def test_deletions_do_not_pile_up_on_standby(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replica may stand by for weeks while jobs come and go; it still queues the newest deletions."""
    monkeypatch.setattr(informer_triggers, "MOST_GONE", 10)

    @simulate_scenario
    async def scenario(world: Simulation) -> None:
        create(world, "stays")
        reconciler = Reconciler()
        manager, controller = make_managed(world.client, reconciler, leader_election=elector(world.client))
        async with elector(world.new_client()):
            running = manager.begin()
            await world.eventually(controller.informer.has_synced)
            for number in range(50):
                create(world, f"job-{number}")
                await asyncio.sleep(1)
                world.server.delete("v1", "configmaps", f"job-{number}")
                await asyncio.sleep(1)
            create(world, "job-0")  # recreated: no longer a deletion
            await asyncio.sleep(1)
            assert controller.queue.state.depth == 12
        await world.eventually(lambda: len(reconciler.keys) == 12, every=0.1)
        newest = {f"default/job-{number}" for number in range(40, 50)}
        assert set(reconciler.keys) == {"default/stays", "default/job-0"} | newest
        for number in range(40):  # while leading, each deletion is processed
            world.server.delete("v1", "configmaps", create(world, f"more-{number}")["metadata"]["name"])
        await world.eventually(lambda: len(set(reconciler.keys)) == 52, every=0.1)
        await finish(running)

    scenario()


@simulate_scenario
async def test_state_names_unsynced_caches(world: Simulation) -> None:
    manager, _ = make_managed(world.client, Reconciler(), leader_election=elector(world.client))
    manager.for_resource("example.com/v1", "backups")
    async with manager:
        await asyncio.sleep(60)
        assert str(manager.state).startswith("waiting for caches: backups.example.com\n")
        world.server.register(ResourceType("example.com", "v1", "backups", "Backup"))
        await world.eventually(lambda: str(manager.state).startswith("leading\n"), every=0.1)


@simulate_scenario
async def test_state_says_why_the_lease_cannot_be_acquired(world: Simulation) -> None:
    manager, _ = make_managed(world.client, Reconciler(), leader_election=elector(world.client))
    forbidden = world.server.forbid("get", "leases")
    async with manager:
        await asyncio.sleep(60)
        state = manager.state
        assert str(state).startswith("standing by: get leases.coordination.k8s.io default/operator: ")
        assert "403 Forbidden" in str(state).splitlines()[0]
        assert "403 Forbidden" in state.to_dict()["election_error"]
        forbidden.remove()
        await world.eventually(lambda: str(manager.state).startswith("leading\n"), every=0.1)


@simulate_scenario
async def test_lost_leadership_stops_reconciles_and_can_be_regained(world: Simulation) -> None:
    create(world, "a")
    ended: list[float] = []

    async def act(request: Request[KubeObject]) -> None:
        if not ended:
            try:
                await asyncio.sleep(3600)
            finally:
                ended.append(world.now)

    reconciler, election = Reconciler(act), elector(world.client)
    manager, controller = make_managed(world.client, reconciler, leader_election=election)
    async with manager:
        await asyncio.sleep(5)
        assert reconciler.keys == ["default/a"]
        began = world.now
        world.server.faults.fail(503, times=None, resource="leases")
        await asyncio.sleep(30)
        assert 5 < ended[0] - began < 10.1, "before another one can lead, at 15"
        assert (controller.queue.state.depth, controller.state.working) == (1, False)
        assert manager.healthy()
        world.server.faults.clear()
        await asyncio.sleep(10)
        assert reconciler.keys == ["default/a"] * 2, "what was interrupted comes again"
        assert controller.state.failed == 0


@simulate_scenario
async def test_no_reconcile_starts_after_lost_leadership_even_if_cancellation_was_swallowed(
    world: Simulation,
) -> None:
    """A reconcile that swallows its cancellation must not let the worker continue."""
    led: list[bool] = []

    async def act(request: Request[KubeObject]) -> None:
        led.append(election.is_leader)
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)

    election = elector(world.client)
    manager, controller = make_managed(world.client, Reconciler(act), leader_election=election)
    for name in "abc":
        create(world, name)
    async with manager:
        await asyncio.sleep(5)
        world.server.faults.fail(503, times=None, resource="leases")
        await asyncio.sleep(60)
        assert led == [True]
        assert (controller.state.working, controller.state.workers) == (False, 0)
        world.server.faults.clear()
        await asyncio.sleep(60)
        assert led == [True, True]


@pytest.mark.parametrize("is_async", [False, True])
def test_no_reconcile_starts_after_a_blocked_event_loop_lost_the_lease(is_async: bool) -> None:
    """The clock shows that another candidate may lead, before the cancellation arrives."""

    @simulate_scenario
    async def scenario(world: Simulation) -> None:
        led: list[bool] = []

        def act(request: Request[KubeObject]) -> Any:
            led.append(election.is_leader)
            if len(led) == 5:
                world._loop.work(60)
            return asyncio.sleep(0) if is_async else None

        election = elector(world.client)
        manager = Manager(world.client, leader_election=election)
        maps = manager.for_resource("v1", "configmaps")
        controller = manager.add(Controller("tests", Reconciler(act), maps, concurrency=3))
        for number in range(40):
            create(world, f"map-{number}")
        async with manager:
            await world.eventually(lambda: controller.state.reconciles >= 40, every=0.1)
        assert all(led)
        assert controller.state.queue.depth == 0

    scenario()


@simulate_scenario
async def test_election_that_is_not_leading_is_checked_again(world: Simulation) -> None:
    """A user's election that does not cancel the work."""

    class Hesitant:
        is_leader = False

        async def run(self, work: Callable[[], Awaitable[Any]]) -> None:
            await work()

    election = Hesitant()
    create(world, "a")
    reconciler = Reconciler()
    manager, controller = make_managed(world.client, reconciler, leader_election=election)
    async with manager:
        await asyncio.sleep(60)
        assert (reconciler.keys, controller.queue.state.depth, controller.state.workers) == ([], 1, 1)
        election.is_leader = True
        await asyncio.sleep(2)
        assert reconciler.keys == ["default/a"]
        election.is_leader = False
        create(world, "b")
        await asyncio.sleep(5)
        left = world.now
    assert world.now - left < 2
    assert reconciler.keys == ["default/a"]


@pytest.mark.parametrize("made_of_it", [None, Result(requeue_after=3600), ValueError("cut off")], ids=repr)
def test_interrupted_reconcile_is_queued_again_whatever_it_returned(made_of_it: Any) -> None:
    @simulate_scenario
    async def scenario(world: Simulation) -> None:
        create(world, "a")

        async def act(request: Request[KubeObject]) -> Any:
            if len(reconciler.seen) > 1:
                return None
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(3600)
            return return_or_raise(made_of_it)

        reconciler = Reconciler(act)
        manager, controller = make_managed(world.client, reconciler, leader_election=elector(world.client))
        async with manager:
            await asyncio.sleep(5)
            world.server.faults.fail(503, times=None, resource="leases")
            await asyncio.sleep(30)
            state = controller.state
            assert (state.queue.depth, state.reconciles, state.failed) == (1, 0, 0)
            world.server.faults.clear()
            await asyncio.sleep(30)
            assert reconciler.keys == ["default/a"] * 2
        logged = [str(entry) for entry in world.history if "default/a was cancelled" in str(entry)]
        assert len(logged) == isinstance(made_of_it, Exception)
        assert all(
            " WARNING " in entry and entry.endswith("raised ValueError: cut off; it is queued again")
            for entry in logged
        )

    scenario()


@simulate_scenario
async def test_reconcile_that_outlives_the_leadership_is_not_replaced(world: Simulation) -> None:
    create(world, "a")
    stubborn = StubbornReconcile()
    reconciler = Reconciler(lambda request: stubborn(request) if request.name == "a" else None)
    manager = Manager(world.client, leader_election=elector(world.client))
    maps = manager.for_resource("v1", "configmaps")
    controller = manager.add(Controller("tests", reconciler, maps, timeout=3600))
    async with manager:
        await asyncio.sleep(5)
        world.server.faults.fail(503, times=None, resource="leases")
        await asyncio.sleep(30)
        create(world, "b")
        await asyncio.sleep(60)
        assert controller.state.stuck
        assert "tests is stuck at default/a" in str(manager.healthy())
        assert reconciler.keys == ["default/a"], "no replica leads"
        assert (controller.state.working, controller.state.workers) == (False, 0)
        world.server.faults.clear()
        await asyncio.sleep(30)
        assert reconciler.keys == ["default/a", "default/b"]
        assert (controller.state.workers, controller.state.concurrency) == (1, 1)
        stubborn.gives_in = True
        await asyncio.sleep(5)
        assert controller.state.stuck == ()
        assert controller.state.workers == 1
        assert manager.healthy()


@simulate_scenario
async def test_swallowed_cancellation_is_repeated(world: Simulation) -> None:
    async def act(request: Request[KubeObject]) -> None:
        with suppress(asyncio.CancelledError):  # as asyncio.wait_for of Python 3.11 does sometimes
            await asyncio.sleep(3600)
        await asyncio.sleep(3600)

    create(world, "a")
    manager, controller = make_managed(world.client, Reconciler(act), leader_election=elector(world.client))
    async with manager:
        await asyncio.sleep(5)
        world.server.faults.fail(503, times=None, resource="leases")
        await asyncio.sleep(30)
        assert controller.state.running == ()
        assert manager.healthy()


@simulate_scenario
async def test_manager_keeps_the_lease_until_its_reconciles_have_ended(world: Simulation) -> None:
    create(world, "a")
    led: list[bool] = []

    async def act(request: Request[KubeObject]) -> None:
        await asyncio.sleep(20)
        led.append(election.is_leader)

    election = elector(world.client)
    manager, _ = make_managed(world.client, Reconciler(act), leader_election=election)
    async with manager:
        await asyncio.sleep(5)
    assert led == [True]
    assert holder(world) == "", "it is given back"


@simulate_scenario
async def test_manager_ends_before_a_pod_is_killed(world: Simulation) -> None:
    """A pod is killed after 30 s by default; cancelled reconciles clean up and the lease is released before that."""
    create(world, "a")

    async def act(request: Request[KubeObject]) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(8)

    manager, _ = make_managed(world.client, Reconciler(act), leader_election=elector(world.client))
    async with manager:
        await asyncio.sleep(5)
        reported_at = world.now
    assert 20 < world.now - reported_at < 30
    assert holder(world) == ""


@pytest.mark.parametrize("timeout", [None, 60], ids=["cancelled at the end", "too slow long before"])
def test_lease_is_not_given_back_while_a_reconcile_runs(timeout: float | None) -> None:
    """A reconcile that ignores its cancellation: no other replica works before the lease has expired."""

    @simulate_scenario
    async def scenario(world: Simulation) -> None:
        create(world, "a")
        stubborn, election = StubbornReconcile(), elector(world.client)
        manager = Manager(world.client, leader_election=election, grace_period=1)
        maps = manager.for_resource("v1", "configmaps")
        manager.add(Controller("tests", Reconciler(stubborn), maps, timeout=timeout))
        async with manager:
            await asyncio.sleep(100)
        assert holder(world) == election.identity
        left = world.now
        async with elector(world.new_client()):
            assert world.now - left > 12
        (warning,) = [str(entry) for entry in world.history if "the lease is not released" in str(entry)]
        assert " WARNING " in warning
        assert warning.endswith("and has to expire, since this work still runs: tests at default/a")
        stubborn.gives_in = True
        await asyncio.sleep(2)

    scenario()


class Wrapped:
    """A user's election that wraps another one."""

    def __init__(self, inner: LeaderElector) -> None:
        self._inner = inner
        self.left_behind: list[str] = []

    @property
    def is_leader(self) -> bool:
        return self._inner.is_leader

    async def run(self, work: Callable[[], Awaitable[Any]]) -> Any:
        return await self._inner.run(work)

    def let_expire(self, left_behind: str) -> None:
        self.left_behind.append(left_behind)


@simulate_scenario
async def test_custom_election_is_called_with_reconciles_that_still_run(world: Simulation) -> None:
    create(world, "a")
    stubborn, election = StubbornReconcile(), Wrapped(elector(world.client))
    manager, _ = make_managed(world.client, Reconciler(stubborn), leader_election=election, grace_period=1)
    async with manager:
        await asyncio.sleep(100)
    assert election.left_behind == ["tests at default/a"]
    stubborn.gives_in = True
    await asyncio.sleep(2)


@simulate_scenario
async def test_lease_is_given_back_after_abandoned_reconciles_have_ended(world: Simulation) -> None:
    """A reconcile outlived an earlier leadership, and ends during the next one."""
    create(world, "a")
    stubborn, election = StubbornReconcile(), elector(world.client)
    manager, controller = make_managed(world.client, Reconciler(stubborn), leader_election=election)
    async with manager:
        await asyncio.sleep(5)
        world.server.faults.fail(503, times=None, resource="leases")
        await asyncio.sleep(30)
        world.server.faults.clear()
        await world.eventually(lambda: manager.state.leading, every=0.1)
        assert controller.state.stuck
        stubborn.gives_in = True
        await asyncio.sleep(5)
    assert holder(world) == ""


@simulate_scenario
async def test_each_replica_needs_its_own_elector(world: Simulation) -> None:
    election = elector(world.client)
    first, second = (make_managed(world.client, Reconciler(), leader_election=election)[0] for _ in range(2))
    async with first:
        await world.eventually(lambda: first.state.leading)
        assert second.state.leading is False, "it has not even begun"
        with pytest.raises(AlreadyStartedError, match=r"another Manager .* create an elector for each"):
            await second.run()
        assert (second.state.ended, second.state.leading) == (True, False)
        assert 'leader_election_master_status{name="operator"} 0' in second.metrics()
        assert first.state.leading
        assert 'leader_election_master_status{name="operator"} 1' in first.metrics()


@simulate_scenario
async def test_one_of_two_managers_reconciles(world: Simulation) -> None:
    at_work: list[str] = []

    def act(name: str) -> Reconciler:
        async def reconcile(request: Request[KubeObject]) -> None:
            assert not at_work, "one at a time, of both"
            at_work.append(name)
            try:
                await asyncio.sleep(world.random.random())
            finally:
                at_work.remove(name)

        return Reconciler(reconcile)

    clients = [world.client, world.new_client()]
    reconcilers = [act("first"), act("second")]
    managers = [
        make_managed(client, reconciler, leader_election=elector(client))[0]
        for client, reconciler in zip(clients, reconcilers, strict=True)
    ]
    running = [manager.begin() for manager in managers]
    for number in range(40):
        create(world, f"map-{number}")
        await asyncio.sleep(3)
        if number == 20:
            first = next(at for at, manager in enumerate(managers) if manager.state.leading)
            await finish(running[first])
    await asyncio.sleep(60)
    assert all(reconciler.keys for reconciler in reconcilers)
    done = {key for reconciler in reconcilers for key in reconciler.keys}
    assert done == {f"default/map-{number}" for number in range(40)}
    await finish(*running)
