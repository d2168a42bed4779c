"""Cancel every coroutine of an operator at every step: nothing keeps running, and no key is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from itertools import count
from typing import Any

import pytest

from aioinformer import KubeObject
from aioinformer.leaderelection import LeaderElector
from aioinformer.operator import Controller, Manager, Reconciler, Request, Result
from aioinformer.testing import Simulation, simulate

from .worlds import create, feed_queue

MOST = 400
"""Steps after which everything has started, worked and is waiting."""

Act = Callable[[Manager], Coroutine[Any, Any, None]]


class Caretaker(Reconciler[KubeObject]):
    finalizer = "example.com/ours"

    async def reconcile(self, request: Request[KubeObject]) -> Result | None:
        await asyncio.sleep(0.5)
        return Result(requeue_after=5)

    async def cleanup(self, request: Request[KubeObject]) -> Result | None:
        await asyncio.sleep(0.5)
        return None


async def run(manager: Manager) -> None:
    await manager.run()


async def enter(manager: Manager) -> None:
    async with manager:
        await asyncio.sleep(20)


@pytest.mark.parametrize("act", [run, enter], ids=lambda act: act.__name__)
def test_cancelled_manager_leaves_nothing_running_and_loses_no_key(act: Act) -> None:
    """A manager with a controller, its writes and the lease: all of it ends."""

    async def scenario(world: Simulation, steps: int) -> bool:
        create(world, "a")
        create(world, "b", metadata={"finalizers": [Caretaker.finalizer]})
        world.server.delete("v1", "configmaps", "b")
        election = LeaderElector(world.client, "operator", "default")
        manager = Manager(world.client, grace_period=0.1, leader_election=election)
        maps = manager.resource("v1", "configmaps")
        controller = manager.add(Controller("tests", Caretaker(), maps, owns=[maps], concurrency=2))
        loop = world._loop
        task = asyncio.create_task(act(manager))
        reached, end = False, loop.steps + steps + 1

        def cancel_in_time() -> None:
            nonlocal reached
            if loop.steps == end:
                reached = task.cancel()

        loop.after_step = cancel_in_time
        await asyncio.wait({task}, timeout=30)
        loop.after_step = None
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
        assert task.cancelled() or not reached or act is enter
        if not task.cancelled():
            task.result()
        assert not manager.healthy()
        assert controller.state.running == ()
        assert not election.is_leader
        return reached

    for steps in count(step=1 if act is run else 3):  # both run the same code, and each step takes 20 ms
        outcome: list[bool] = []

        async def play(world: Simulation, steps: int = steps, outcome: list[bool] = outcome) -> None:
            outcome.append(await scenario(world, steps))

        simulate(play, shuffle=False, shrink=False)
        if not outcome[0] or steps > MOST:
            break


def test_cancelled_work_can_run_again_and_loses_no_key() -> None:
    """As when a lease is lost and regained: interrupted reconciles are queued again."""

    async def scenario(world: Simulation, steps: int) -> None:
        ended: set[str] = set()
        at_work: set[str] = set()

        async def reconcile(request: Request[KubeObject]) -> None:
            assert request.key not in at_work
            at_work.add(request.key)
            try:
                await asyncio.sleep(0.1)
                ended.add(request.key)
            finally:
                at_work.remove(request.key)

        manager = Manager(world.client)
        maps = manager.for_resource("v1", "configmaps")
        controller = Controller("tests", reconcile, maps, concurrency=2)
        keys = {f"default/{name}" for name in "abcd"}
        async with maps, feed_queue(controller):
            for key in keys:
                controller.queue.add(key)
            working = asyncio.create_task(controller.work())
            for _ in range(steps):
                await asyncio.sleep(0)
            working.cancel()
            await asyncio.wait({working})
            assert working.cancelled()
            assert controller.state.queue.processing == 0
            assert len(controller.queue) + len(ended) == len(keys)
            working = asyncio.create_task(controller.work())
            await world.eventually(lambda: ended == keys, every=0.1)
            await controller.stop(1.0)
            await working

    for steps in range(30):
        simulate(lambda world, steps=steps: scenario(world, steps), shrink=False)  # type: ignore[misc]
