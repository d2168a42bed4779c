"""Operators under random faults: in the end, the world matches the objects."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from aioinformer import AioInformerError, KubeObject, contains_finalizer
from aioinformer._core.tasks import finish
from aioinformer.operator import Controller, Manager, Reconciler, Request, Result
from aioinformer.testing import Simulation, simulate
from aioinformer.testing.errors import StatusError

FINALIZER = "example.com/cloud"
NAMES = [f"map-{number}" for number in range(8)]


class Cloud(Reconciler[KubeObject]):
    """Creates a thing elsewhere for each object, and removes it before the object is deleted.

    Attributes:
        things: The things elsewhere: the value of each object, by uid.
        at_work: Keys that are being reconciled.
    """

    finalizer = FINALIZER

    def __init__(self, world: Simulation) -> None:
        self.world = world
        self.things: dict[str, str] = {}
        self.at_work: set[str] = set()

    async def reconcile(self, request: Request[KubeObject]) -> Result | None:
        obj = await self._work(request)
        assert contains_finalizer(obj, FINALIZER), "before anything is made"
        self.things[obj.uid] = obj["data"]["value"]
        return Result(requeue_after=120) if self.world.random.random() < 0.1 else None

    async def cleanup(self, request: Request[KubeObject]) -> Result | None:
        obj = await self._work(request)
        if self.world.random.random() < 0.3:
            return Result(requeue_after=20)
        self.things.pop(obj.uid, None)
        return None

    async def _work(self, request: Request[KubeObject]) -> KubeObject:
        assert request.key not in self.at_work, "never the same key twice"
        self.at_work.add(request.key)
        try:
            chance = self.world.random.random()
            await asyncio.sleep(chance)
            if chance < 0.05:
                await asyncio.sleep(3600)
            if chance > 0.9:
                raise ValueError("trouble elsewhere")
        finally:
            self.at_work.remove(request.key)
        assert request.object is not None
        return request.object


def current(world: Simulation) -> dict[str, str]:
    """Return what should exist elsewhere."""
    keys = world.server.snapshot("v1", "configmaps")
    objects = (world.server.get("v1", "configmaps", key.split("/")[1]) for key in keys)
    return {obj["metadata"]["uid"]: obj["data"]["value"] for obj in objects}


async def users(world: Simulation) -> None:
    """Create, change and delete objects."""
    for number in range(60):
        await asyncio.sleep(world.random.random() * 10)
        name = world.random.choice(NAMES)
        verb = world.random.choice(["create", "create", "change", "delete"])
        if not world.happens("user", f"{verb} {name} {number}"):
            continue
        with suppress(StatusError):  # it exists already, or does not exist
            if verb == "delete":
                world.server.delete("v1", "configmaps", name)
            elif verb == "create":
                world.server.create(
                    "v1", "configmaps", {"metadata": {"name": name}, "data": {"value": str(number)}}
                )
            else:
                world.server.patch("v1", "configmaps", name, {"data": {"value": str(number)}})


async def weather(world: Simulation) -> None:
    """Users, faults, and an operator that is stopped and restarted."""
    cloud = Cloud(world)
    living = asyncio.gather(users(world), world.storm(300))
    while True:
        manager = Manager(world.client, grace_period=world.random.choice([0.0, 5.0]))
        maps = manager.resource("v1", "configmaps")
        manager.add(Controller("cloud", cloud, maps, concurrency=3, timeout=30.0))
        running = manager.begin()
        await asyncio.wait({living}, timeout=world.random.uniform(0, 120))
        if living.done():
            break
        await finish(running)
    await living

    def well() -> bool:
        return cloud.things == current(world) and not cloud.at_work

    await world.eventually(well, within=3600, what="what is elsewhere is what the objects ask for")
    for name in NAMES:
        with suppress(StatusError):
            world.server.delete("v1", "configmaps", name)
    await world.eventually(lambda: cloud.things == current(world) == {}, within=3600, what="all is gone")
    assert manager.healthy()
    state = manager.state.controllers[0]
    assert state.last_error is None or isinstance(
        state.last_error, (ValueError, TimeoutError, AioInformerError)
    )
    await finish(running)


@pytest.mark.parametrize("seed", range(8))
def test_world_matches_the_objects_after_a_storm(seed: int) -> None:
    simulate(weather, seed=seed, shrink=False)
