"""operator/probes.py: the truth for those who probe."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from aioinformer import ConfigError, KubeObject, ListWatch, Phase, SharedIndexInformer, StoppedError
from aioinformer.operator import Controller, Manager, Request
from aioinformer.testing import Simulation

from .test_manager import warnings_of
from .worlds import Reconciler, Stubborn, create, managed, quiet, run_until_a_worker_dies, simulated


@simulated
async def test_before_and_after(world: Simulation) -> None:
    manager, _ = managed(world.client, Reconciler())
    assert str(manager.healthy()) == "the manager has not started"
    async with manager:
        assert manager.healthy().reasons == ()
        assert "has not synced" in str(manager.ready())
        await asyncio.sleep(1)
        assert (str(manager.healthy()), str(manager.ready())) == ("ok", "ok")
    assert str(manager.healthy()) == "the manager has ended"


@simulated
async def test_left_before_it_began_it_has_ended(world: Simulation) -> None:
    manager, _ = managed(world.client, Reconciler())
    async with manager:
        pass
    assert str(manager.healthy()) == "the manager has ended"


@simulated
async def test_a_stalled_watch_is_not_live(world: Simulation) -> None:
    manager, _ = managed(world.client, Reconciler(), stalled_after=120.0, max_silence=600)
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
    manager, controller = managed(world.client, Reconciler(), **options)
    async with manager:
        for _ in range(1000):
            await asyncio.sleep(10)
            assert manager.healthy()
            assert manager.ready()
        assert controller.informer.state.phase is Phase.WATCHING


@simulated
async def test_a_quiet_collection_is_live(world: Simulation) -> None:
    await stays_live(world)


@simulated
async def test_so_is_one_whose_watches_are_long(world: Simulation) -> None:
    await stays_live(world, min_watch_timeout=600.0)


@simulated
async def test_a_server_that_is_away_is_no_reason_to_restart_but_the_cache_is_old(
    world: Simulation,
) -> None:
    manager, _ = managed(world.client, Reconciler(), stalled_after=120.0)
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


@simulated
async def test_a_reconcile_that_ignores_its_end_is_not_live(world: Simulation) -> None:
    create(world, "a")
    stubborn = Stubborn()
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


@simulated
async def test_one_that_is_stuck_has_no_grace(world: Simulation) -> None:
    create(world, "a")
    stubborn = Stubborn()
    manager = Manager(world.client, grace_period=1000)
    manager.add(Controller("tests", stubborn, manager.for_resource("v1", "configmaps"), timeout=60))
    async with manager:
        await asyncio.sleep(75)
        left = world.now
    assert world.now - left < 20
    stubborn.gives_in = True
    await asyncio.sleep(10)


@simulated
async def test_a_failing_reconciler_is_live(world: Simulation) -> None:
    create(world, "a")

    def act(request: Request[KubeObject]) -> None:
        raise ValueError

    manager, controller = managed(world.client, Reconciler(act))
    async with manager:
        await asyncio.sleep(60)
        assert manager.healthy()
        assert manager.ready()
        assert controller.state.failing == 1


@simulated
async def test_a_worker_that_has_died_is_not_live(world: Simulation) -> None:
    async def act(request: Request[KubeObject]) -> None:
        while not died:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(1)

    died = False
    create(world, "a")
    manager, _ = managed(world.client, Reconciler(act), grace_period=0.0)
    idle = Controller("idle", Reconciler(), manager.for_resource("v1", "secrets"))
    manager.add(idle)
    running = await run_until_a_worker_dies(manager, idle)
    assert not running.done(), "the other one's reconcile takes its time to end"
    assert "idle: a worker or source failed: StoppedError" in str(manager.healthy())
    died = True
    with pytest.raises(StoppedError):
        await running
    assert "has ended: StoppedError" in str(manager.healthy())


@simulated
async def test_an_informer_of_ones_own_that_has_stopped_is_not_live(world: Simulation) -> None:
    manager = Manager(world.client)
    pods = SharedIndexInformer(ListWatch.for_resource(world.client, "v1", "pods"), KubeObject)
    manager.add(Controller("tests", Reconciler(), pods))
    assert manager.informers == [pods]
    async with manager:
        async with pods:
            await asyncio.sleep(5)
            assert manager.ready()
        assert str(manager.healthy()) == "pods has stopped"


@simulated
async def test_what_has_gone_for_good_is_removed_and_not_waited_for(world: Simulation) -> None:
    create(world, "a")
    reconciler = Reconciler()
    manager, controller = managed(world.client, reconciler)
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


@simulated
async def test_one_that_no_controller_was_given_to_says_so(world: Simulation) -> None:
    manager = Manager(world.client)
    Controller("tests", Reconciler(), manager.for_resource("v1", "configmaps"))
    async with manager:
        await asyncio.sleep(1)
        (warning,) = warnings_of(world)
        assert (
            "<Manager of nothing> has no controllers and only runs informers: call add() with a Controller"
            in warning
        )
