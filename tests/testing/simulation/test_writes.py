"""Writes of a simulated client."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer import TransportError
from aioinformer.resources import Resource
from aioinformer.testing import Simulation, simulate

MAP = {"metadata": {"name": "a", "namespace": "default"}, "data": {"k": "1"}}


def test_writes_arrive() -> None:
    async def scenario(world: Simulation) -> None:
        maps = Resource(world.client, "v1", "configmaps")
        created = await maps.create(MAP)
        assert world.server.snapshot("v1", "configmaps") == {"default/a": created.resource_version}
        patched = await maps.patch(created, {"data": {"k": "2"}})
        assert patched["data"] == {"k": "2"}
        assert await maps.delete(patched) is None
        assert world.server.snapshot("v1", "configmaps") == {}

    history = simulate(scenario).text()
    assert (
        'PATCH /api/v1/namespaces/default/configmaps/a?fieldManager=aioinformer {"data":{"k":"2"}}' in history
    )


def test_write_times_out() -> None:
    async def scenario(world: Simulation) -> None:
        world.server.faults.freeze()
        began = world.now
        with pytest.raises(TransportError):
            await Resource(world.client, "v1", "configmaps", timeout=5).create(MAP)
        assert world.now - began == pytest.approx(5)

    simulate(scenario)


def test_timed_out_write_may_have_happened() -> None:
    made = set()

    async def scenario(world: Simulation) -> None:
        creating = asyncio.create_task(Resource(world.client, "v1", "configmaps").create(MAP))
        await asyncio.sleep(world.random.uniform(0, 0.03))
        creating.cancel()
        await asyncio.wait({creating})
        made.add(bool(world.server.snapshot("v1", "configmaps")))

    for seed in range(20):
        simulate(scenario, seed=seed)
    assert made == {False, True}
