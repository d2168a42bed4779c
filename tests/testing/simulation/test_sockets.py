from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import httpx
import kubernetes_asyncio.client as kubernetes
import pytest

from aioinformer import (
    Client,
    KubeObject,
    ListWatch,
    SharedIndexInformer,
    SharedInformerFactory,
    TransportError,
)
from aioinformer.testing import Simulation, SimulationError, simulate
from aioinformer.testing.simulation import LeakError
from tests.virtual_time import simulate_scenario

MAPS = "/api/v1/configmaps"


@asynccontextmanager
async def api_of(world: Simulation) -> AsyncIterator[Any]:
    async with kubernetes.ApiClient(kubernetes.Configuration(host=world.server.url)) as api_client:
        yield api_client


def config_map(name: str, **data: str) -> Any:
    return kubernetes.V1ConfigMap(metadata=kubernetes.V1ObjectMeta(name=name), data=data)


@simulate_scenario
async def test_kubernetes_asyncio_reads_and_writes(world: Simulation) -> None:
    async with api_of(world) as api_client:
        core = kubernetes.CoreV1Api(api_client)
        await core.create_namespaced_config_map("default", config_map("a", value="1"))
        await core.patch_namespaced_config_map("a", "default", {"data": {"value": "2"}})
        assert (await core.read_namespaced_config_map("a", "default")).data == {"value": "2"}
        assert world.server.get("v1", "configmaps", "a")["data"] == {"value": "2"}
        await core.delete_namespaced_config_map("a", "default")
        assert (await core.list_namespaced_config_map("default")).items == []


@simulate_scenario
async def test_httpx_reads(world: Simulation) -> None:
    async with httpx.AsyncClient() as client:
        assert (await client.get(world.server.url + MAPS)).json()["items"] == []


@simulate_scenario
async def test_client_from_url_uses_the_simulated_sockets(world: Simulation) -> None:
    world.server.create("v1", "configmaps", {"metadata": {"name": "a"}})
    async with Client.from_url(world.server.url) as client, SharedInformerFactory(client) as factory:
        maps = factory.for_resource("v1", "configmaps")
        factory.start()
        await maps.wait_synced()
        assert [obj.key for obj in maps.store.list()] == ["default/a"]
        world.server.create("v1", "configmaps", {"metadata": {"name": "b"}})
        await world.eventually(lambda: len(maps.store) == 2, within=1)


@simulate_scenario
async def test_refused(world: Simulation) -> None:
    world.server.faults.refuse()
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get(world.server.url + MAPS)


@simulate_scenario
async def test_a_cut_connection_ends_its_answer(world: Simulation) -> None:
    async with Client.from_url(world.server.url) as client:
        stream = await client.stream(MAPS, [("watch", "true")])
        world.network.cut()
        with pytest.raises(TransportError, match="broke off"):
            await anext(stream)
        await stream.aclose()


@simulate_scenario
async def test_an_answer_cut_off_in_the_middle_is_an_error(world: Simulation) -> None:
    for name in "abcdef":
        world.server.create("v1", "configmaps", {"metadata": {"name": name}})
    world.server.faults.truncate()
    async with Client.from_url(world.server.url) as client:
        with pytest.raises(TransportError):
            await client.get(MAPS)
        assert (await client.get_json(MAPS))["items"]


@simulate_scenario
async def test_silent_connection_never_ends(world: Simulation) -> None:
    patience = aiohttp.ClientTimeout(total=None, sock_read=100)
    async with (
        aiohttp.ClientSession(timeout=patience) as session,
        session.get(world.server.url + MAPS, params={"watch": "true"}) as answer,
    ):
        began = world.now
        world.network.silence()
        world.server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        with pytest.raises(TimeoutError):
            await answer.content.readany()
        assert world.now - began == pytest.approx(100, abs=2)


@simulate_scenario
async def test_a_stall_delays_and_loses_nothing(world: Simulation) -> None:
    async with Client.from_url(world.server.url) as client:
        stream = await client.stream(MAPS, [("watch", "true")])
        began = world.now
        world.network.stall(20)
        world.server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        assert b'"a"' in await anext(stream) + await asyncio.wait_for(_rest(stream), 1)
        assert world.now - began >= 20
        await stream.aclose()


async def _rest(stream: Any) -> bytes:
    """Other data that arrives immediately."""
    try:
        async with asyncio.timeout(0.1):
            return bytes(await anext(stream))
    except TimeoutError:
        return b""


@simulate_scenario
async def test_closing_one_end_closes_the_other(world: Simulation) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", world.server.port)
    writer.write(b"GET /api/v1/configmaps HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    body = await reader.read()
    assert body.startswith(b"HTTP/1.1 200 OK")
    assert body.endswith(b'"items":[]}\n')
    writer.close()
    await writer.wait_closed()


@simulate_scenario
async def test_paused_reading_delays_data(world: Simulation) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", world.server.port, limit=100)
    for name in "abcdefgh":
        world.server.create("v1", "configmaps", {"metadata": {"name": name}, "data": {"long": "x" * 300}})
    writer.write(b"GET /api/v1/configmaps HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    await asyncio.sleep(5)
    data = b""
    while piece := await reader.read(50):
        data += piece
    assert data.count(b'"long"') == 8
    writer.close()
    await writer.wait_closed()


def test_other_addresses_are_unreachable() -> None:
    async def scenario(world: Simulation) -> None:
        async with aiohttp.ClientSession() as session:
            await session.get("http://127.0.0.1:1/")

    with pytest.raises(SimulationError, match="only has the network of"):
        simulate(scenario)


def test_a_connection_left_open_is_a_leak() -> None:
    kept: list[Any] = []

    async def scenario(world: Simulation) -> None:
        kept.append(await asyncio.open_connection("127.0.0.1", world.server.port))

    with pytest.raises(LeakError, match="answers open"):
        simulate(scenario, shrink=False)


def test_operator_run_is_reproducible() -> None:
    async def operator(world: Simulation, api_client: Any) -> None:
        """Copy the objects in `source` with kubernetes_asyncio only."""
        core = kubernetes.CoreV1Api(api_client)
        source = SharedIndexInformer(
            ListWatch.for_resource(api_client, "v1", "configmaps", "source"), KubeObject, min_watch_timeout=20
        )
        async with source:
            await source.wait_synced()
            while True:
                try:
                    names = {obj.metadata.name for obj in source.store.list()}
                    there = await core.list_namespaced_config_map("target", _request_timeout=10)
                    for name in sorted(names - {item.metadata.name for item in there.items}):
                        await core.create_namespaced_config_map(
                            "target", config_map(name), _request_timeout=10
                        )
                except (kubernetes.ApiException, aiohttp.ClientError, TimeoutError) as error:
                    world.note("operator", type(error).__name__)
                await asyncio.sleep(5)

    async def scenario(world: Simulation) -> None:
        world.tolerate("Unclosed connection")  # kubernetes_asyncio's, where an answer breaks off
        for namespace in ("source", "target"):
            world.server.create("v1", "namespaces", {"metadata": {"name": namespace}})
        async with api_of(world) as api_client:
            task = asyncio.create_task(operator(world, api_client))
            storm = asyncio.create_task(world.storm(120))
            for number in range(10):
                await asyncio.sleep(10)
                world.server.create("v1", "configmaps", {"metadata": {"name": f"n{number}"}}, "source")
            await storm
            await world.eventually(lambda: len(world.server.list("v1", "configmaps", "target")) == 10)
            task.cancel()
            await asyncio.wait({task})

    for seed in range(5):
        assert simulate(scenario, seed=seed).text() == simulate(scenario, seed=seed).text()


def test_simulation_takes_no_real_time() -> None:
    async def scenario(world: Simulation) -> None:
        async with aiohttp.ClientSession() as session:
            for _ in range(50):
                await asyncio.sleep(3600)
                async with session.get(world.server.url + MAPS) as answer:
                    await answer.read()

    began = time.perf_counter()
    simulate(scenario, until=1e6)
    assert time.perf_counter() - began < 30
