"""informer/probes.py: a factory's health and readiness. Those of a manager are tested in tests/operator."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer import Client, ConfigError, Health, SharedInformerFactory
from aioinformer.testing import Simulation
from tests.virtual_time import simulate_scenario

from ..narrow import Narrow


@simulate_scenario
async def test_probes_before_start_and_after_shutdown(world: Simulation) -> None:
    factory = SharedInformerFactory(world.client)
    factory.for_resource("v1", "pods")
    assert str(factory.healthy()) == "the factory has not started"
    async with factory:
        assert factory.healthy() == Health(True)
        assert str(factory.ready()).startswith("pods has not synced: not synced, 0 objects, 0 queued; ")
        await factory.wait_for_cache_sync(timeout=60)
        assert (str(factory.healthy()), str(factory.ready())) == ("ok", "ok")
    assert factory.healthy().reasons == ("the factory has been shut down",)
    assert not factory.ready()


@simulate_scenario
async def test_stalled_watch_is_not_healthy(world: Simulation) -> None:
    async with SharedInformerFactory(world.client, stalled_after=120.0, max_silence=600) as factory:
        factory.for_resource("v1", "pods")
        await world.eventually(factory.ready)
        world.network.silence()
        world.server.faults.lose_bookmarks()
        await asyncio.sleep(110)
        assert factory.healthy()
        await asyncio.sleep(20)
        assert "pods is stalled: watching, nothing arrived for" in str(factory.healthy())
        assert not factory.ready()
        world.network.cut()
        await world.eventually(factory.healthy, every=1)


@simulate_scenario
async def test_unavailable_server_makes_it_unready_but_healthy(world: Simulation) -> None:
    async with SharedInformerFactory(world.client, stalled_after=120.0) as factory:
        factory.for_resource("v1", "pods")
        await world.eventually(factory.ready)
        world.server.faults.refuse(cut=True)
        await asyncio.sleep(100)
        assert factory.ready()
        await asyncio.sleep(30)
        assert "pods is out of date: " in str(factory.ready())
        assert factory.healthy()
        await world.server.faults.accept()
        await world.eventually(factory.ready)


@simulate_scenario
async def test_ended_informer_is_not_healthy(world: Simulation) -> None:
    factory = SharedInformerFactory(world.client)
    factory.for_resource("v1", "pods")
    factory.start()
    await world.client.close()
    await world.eventually(lambda: "pods has stopped: ClientClosedError" in str(factory.healthy()))
    with pytest.raises(ConfigError, match="closed"):
        await factory.shutdown()


@simulate_scenario
async def test_undecodable_objects_are_warnings_and_leave_it_ready(world: Simulation) -> None:
    world.server.create("v1", "configmaps", {"metadata": {"name": "a"}, "data": {"node": "n1"}})
    async with SharedInformerFactory(world.client) as factory:
        maps = factory.for_resource("v1", "configmaps", Narrow, namespaced=True)
        await world.eventually(factory.ready)
        warning = "configmaps: 1 undecodable objects, of which only the metadata can be used: default/a"
        assert factory.ready() == Health(True, (), (warning,))
        assert str(factory.ready()) == f"ok; warning: {warning}"
        assert 'aioinformer_undecodable_objects{informer="configmaps"} 1' in factory.metrics()
        world.server.delete("v1", "configmaps", "a", "default")
        await world.eventually(lambda: not maps.state.undecodable)
        assert factory.ready() == Health(True)


def test_default_of_stalled_after() -> None:
    client = Client.from_url("http://127.0.0.1:1")
    assert SharedInformerFactory(client).stalled_after == 660
    assert SharedInformerFactory(client, min_watch_timeout=600).stalled_after == 1260
    assert SharedInformerFactory(client, min_watch_timeout=600, stalled_after=5).stalled_after == 5
    for wrong in (-1, 0):
        with pytest.raises(ConfigError, match="stalled_after"):
            SharedInformerFactory(client, stalled_after=wrong)


@simulate_scenario
async def test_forbidden_watch_is_not_ready_with_reason(world: Simulation) -> None:
    rule = world.server.forbid("watch", "pods")
    async with SharedInformerFactory(world.client) as factory:
        pods = factory.for_resource("v1", "pods")
        await factory.wait_for_cache_sync(timeout=60)
        await world.eventually(lambda: pods.state.polling)
        assert "pods cannot watch: polling by list: " in str(factory.ready())
        assert "cannot watch: polling by list" in str(pods.state)
        assert (
            'failed_watches_total{informer="pods",reason="Forbidden",reflector="pods"}' in factory.metrics()
        )
        assert factory.healthy()
        rule.remove()
        await world.eventually(factory.ready)
        assert "polling" not in str(pods.state)


@simulate_scenario
async def test_resource_without_watch_support_is_ready(world: Simulation) -> None:
    world.server.faults.fail(405, times=None, verb="watch", resource="pods")
    async with SharedInformerFactory(world.client) as factory:
        pods = factory.for_resource("v1", "pods")
        await factory.wait_for_cache_sync(timeout=60, fail_fast=True)
        await world.eventually(lambda: pods.state.polling)
        assert factory.ready()
        assert "cannot watch: polling by list" in str(pods.state)
        world.server.create("v1", "pods", {"metadata": {"name": "web"}, "spec": {"containers": []}})
        await world.eventually(pods.lister.list)
