"""operator/probes.py: liveness and readiness."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from aioinformer import ConfigError, KubeObject, ListWatch, SharedIndexInformer, StoppedError
from aioinformer.cache import Phase
from aioinformer.operator import Controller, Manager, Request
from aioinformer.testing import Simulation
from tests.virtual_time import simulate_scenario

from .test_manager import warnings_of
from .worlds import Reconciler, StubbornReconcile, create, make_managed, quiet, run_until_a_worker_dies


@simulate_scenario
async def test_probes_before_and_after_a_run(world: Simulation) -> None:
    manager, _ = make_managed(world.client, Reconciler())
    assert str(manager.healthy()) == "the manager has not started"
    async with manager:
        assert manager.healthy().reasons == ()
        assert "has not synced" in str(manager.ready())
        await asyncio.sleep(1)
        assert (str(manager.healthy()), str(manager.ready())) == ("ok", "ok")
    assert str(manager.healthy()) == "the manager has ended"


@simulate_scenario
async def test_manager_left_before_its_first_step_has_ended(world: Simulation) -> None:
    manager, _ = make_managed(world.client, Reconciler())
    async with manager:
        pass
    assert str(manager.healthy()) == "the manager has ended"


@simulate_scenario
async def test_stalled_watch_is_not_live(world: Simulation) -> None:
    manager, _ = make_managed(world.client, Reconciler(), stalled_after=120.0, max_silence=600)
    async with manager:
        await asyncio.sleep(1)
        world.network.silence()
        world.server.faults.lose_bookmarks()
        await asyncio.sleep(110)
        assert manager.healthy()
        await asyncio.sleep(20)
        assert "is stalled: watching, nothing arrived for" in str(manager.healthy())
        assert not manager.ready()
        world.network.cut()
        await world.eventually(manager.healthy, every=1)


async def stays_live(world: Simulation, **options: Any) -> None:
    world.server.faults.lose_bookmarks()
    manager, controller = make_managed(world.client, Reconciler(), **options)
    async with manager:
        for _ in range(1000):
            await asyncio.sleep(10)
            assert manager.healthy()
            assert manager.ready()
        assert controller.informer.state.phase is Phase.WATCHING


@simulate_scenario
async def test_quiet_collection_is_live(world: Simulation) -> None:
    await stays_live(world)


@simulate_scenario
async def test_long_watches_of_a_quiet_collection_are_live(world: Simulation) -> None:
    await stays_live(world, min_watch_timeout=600.0)


@simulate_scenario
async def test_unreachable_server_keeps_liveness_but_not_readiness(
    world: Simulation,
) -> None:
    manager, _ = make_managed(world.client, Reconciler(), stalled_after=120.0)
    async with manager:
        await asyncio.sleep(1)
        world.server.faults.fail(503, times=None)
        world.server.faults.drop_watches()
        await asyncio.sleep(60)
        assert manager.ready()
        await asyncio.sleep(600)
        assert manager.healthy()
        assert "is out of date" in str(manager.ready())
        world.server.faults.clear()
        await world.eventually(manager.ready)


@simulate_scenario
async def test_reconcile_that_ignores_cancellation_is_not_live(world: Simulation) -> None:
    create(world, "a")
    stubborn = StubbornReconcile()
    manager = Manager(world.client)
    manager.add(
        Controller("tests", Reconciler(stubborn), manager.for_resource("v1", "configmaps"), timeout=60)
    )
    async with manager:
        await asyncio.sleep(65)
        assert manager.healthy()
        await asyncio.sleep(10)
        assert "tests is stuck at default/a" in str(manager.healthy())
        stubborn.gives_in = True
        await asyncio.sleep(10)
        assert manager.healthy()


@simulate_scenario
async def test_stuck_reconcile_gets_no_grace_period(world: Simulation) -> None:
    create(world, "a")
    stubborn = StubbornReconcile()
    manager = Manager(world.client, grace_period=1000)
    manager.add(Controller("tests", stubborn, manager.for_resource("v1", "configmaps"), timeout=60))
    async with manager:
        await asyncio.sleep(75)
        left = world.now
    assert world.now - left < 20
    stubborn.gives_in = True
    await asyncio.sleep(10)


@simulate_scenario
async def test_failing_reconciler_is_live(world: Simulation) -> None:
    create(world, "a")

    def act(request: Request[KubeObject]) -> None:
        raise ValueError

    manager, controller = make_managed(world.client, Reconciler(act))
    async with manager:
        await asyncio.sleep(60)
        assert manager.healthy()
        assert manager.ready()
        assert controller.state.failing == 1


@simulate_scenario
async def test_failed_worker_is_not_live(world: Simulation) -> None:
    async def act(request: Request[KubeObject]) -> None:
        while not died:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(1)

    died = False
    create(world, "a")
    manager, _ = make_managed(world.client, Reconciler(act), grace_period=0.0)
    idle = Controller("idle", Reconciler(), manager.for_resource("v1", "secrets"))
    manager.add(idle)
    running = await run_until_a_worker_dies(manager, idle)
    assert not running.done(), "the other one's reconcile takes its time to end"
    assert "idle: a worker or source failed: StoppedError" in str(manager.healthy())
    died = True
    with pytest.raises(StoppedError):
        await running
    assert "has ended: StoppedError" in str(manager.healthy())


@simulate_scenario
async def test_stopped_unmanaged_informer_is_not_live(world: Simulation) -> None:
    manager = Manager(world.client)
    pods = SharedIndexInformer(ListWatch.for_resource(world.client, "v1", "pods"), KubeObject)
    manager.add(Controller("tests", Reconciler(), pods))
    assert manager.informers == [pods]
    async with manager:
        async with pods:
            await asyncio.sleep(5)
            assert manager.ready()
        assert str(manager.healthy()) == "pods has stopped"


@simulate_scenario
async def test_removed_informer_is_not_waited_for(world: Simulation) -> None:
    create(world, "a")
    reconciler = Reconciler()
    manager, controller = make_managed(world.client, reconciler)
    caves = manager.for_resource("example.com/v1", "caves")
    async with manager:
        await asyncio.sleep(5)
        assert (reconciler.keys, bool(manager.ready())) == ([], False)
        await manager.remove(caves)
        await quiet(controller)
        assert (reconciler.keys, bool(manager.ready())) == (["default/a"], True)
        holes = manager.for_resource("example.com/v1", "holes")
        await asyncio.sleep(5)
        assert not manager.ready()
        await manager.remove(holes)
        assert manager.ready()
        with pytest.raises(ConfigError, match=r"^configmaps was not removed: the controller tests needs it"):
            await manager.remove(controller.informer)


@simulate_scenario
async def test_manager_without_controllers_logs_a_warning(world: Simulation) -> None:
    manager = Manager(world.client)
    Controller("tests", Reconciler(), manager.for_resource("v1", "configmaps"))
    async with manager:
        await asyncio.sleep(1)
        (warning,) = warnings_of(world)
        assert (
            "<Manager of nothing> has no controllers and only runs informers: call add() with a Controller"
            in warning
        )
