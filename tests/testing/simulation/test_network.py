from __future__ import annotations

import asyncio

import pytest

from aioinformer import ApiError, ListOptions, ListWatch, TransportError
from aioinformer.client.transport import ByteStream
from aioinformer.errors import ClientClosedError, IdleTimeoutError
from aioinformer.testing import Simulation, simulate
from tests.virtual_time import simulate_scenario

MAPS = "/api/v1/configmaps"


async def open_watch(world: Simulation, **query: str) -> ByteStream:
    return await world.client.stream(MAPS, [("watch", "true"), *query.items()])


def create(world: Simulation, *names: str) -> None:
    for name in names:
        world.server.create("v1", "configmaps", {"metadata": {"name": name}, "data": {"long": "x" * 100}})


async def read_lines(stream: ByteStream, count: int) -> list[bytes]:
    data = b""
    while data.count(b"\n") < count:
        data += await anext(stream)
    return data.splitlines()


@simulate_scenario
async def test_list_is_complete_despite_split_chunks(world: Simulation) -> None:
    create(world, *"abcdefgh")
    world.network.torn = 1.0
    page = await ListWatch.for_resource(world.client, "v1", "configmaps").list(ListOptions(limit=3))
    assert len(page.items) == 3
    assert page.continue_token


@simulate_scenario
async def test_data_on_a_connection_arrives_in_order(world: Simulation) -> None:
    world.network.latency = (0.001, 10.0)
    stream = await open_watch(world)
    names = [f"n{number:02}" for number in range(50)]
    for name in names:
        create(world, name)
        await asyncio.sleep(0.001)
    lines = await read_lines(stream, 50)
    assert [name for name, line in zip(names, lines, strict=True) if name.encode() in line] == names
    await stream.aclose()


@simulate_scenario
async def test_refused_request_is_an_api_error(world: Simulation) -> None:
    with pytest.raises(ApiError, match="404"):
        await world.client.get("/api/v1/nothings")
    world.server.faults.fail(429, retry_after=7)
    with pytest.raises(ApiError) as raised:
        await world.client.get(MAPS)
    assert raised.value.retry_after == 7


@simulate_scenario
async def test_a_refused_connection_is_a_transport_error(world: Simulation) -> None:
    world.server.faults.refuse()
    with pytest.raises(TransportError, match="refused"):
        await world.client.get(MAPS)
    await world.server.faults.accept()
    assert b"items" in await world.client.get(MAPS)


@simulate_scenario
async def test_a_cut_connection_ends_its_stream_with_an_error(world: Simulation) -> None:
    stream = await open_watch(world)
    assert world.server.faults.cut_connections() == 1
    with pytest.raises(TransportError, match="broke off"):
        await anext(stream)
    await stream.aclose()


@simulate_scenario
async def test_clean_end_is_no_error(world: Simulation) -> None:
    stream = await open_watch(world)
    world.server.faults.drop_watches()
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


@simulate_scenario
async def test_cut_in_mid_line_raises_after_half_a_line(world: Simulation) -> None:
    stream = await open_watch(world)
    create(world, "a")
    world.server.faults.drop_watches(mid_line=True)
    data = b""
    with pytest.raises(TransportError):
        while True:
            data += await anext(stream)
    assert data
    assert not data.endswith(b"\n")
    await stream.aclose()


@simulate_scenario
async def test_silent_connection_never_ends(world: Simulation) -> None:
    stream = await open_watch(world)
    assert world.network.silence() == 1
    create(world, "a")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(86_000):
            await anext(stream)
    await stream.aclose()


@simulate_scenario
async def test_idle_timeout_detects_silence(world: Simulation) -> None:
    stream = await world.client.stream(MAPS, [("watch", "true")], idle_timeout=30)
    began = world.now
    world.network.silence()
    with pytest.raises(IdleTimeoutError):
        await anext(stream)
    assert world.now - began == pytest.approx(30, abs=1)
    await stream.aclose()


@simulate_scenario
async def test_missing_answer_times_out(world: Simulation) -> None:
    world.server.faults.freeze()
    with pytest.raises(TransportError, match="timed out"):
        await world.client.get(MAPS)
    world.server.faults.thaw()


@simulate_scenario
async def test_a_stall_delays_and_loses_nothing(world: Simulation) -> None:
    stream = await open_watch(world)
    began = world.now
    world.network.stall(20)
    create(world, "a", "b")
    assert len(await read_lines(stream, 2)) == 2
    assert world.now - began >= 20
    await stream.aclose()


@simulate_scenario
async def test_late_closing_bookmark_comes_after_meanwhile_changes(world: Simulation) -> None:
    create(world, "a", "b")
    world.network.late_closing = 8.0
    stream = await open_watch(
        world, sendInitialEvents="true", resourceVersionMatch="NotOlderThan", allowWatchBookmarks="true"
    )
    await read_lines(stream, 2)
    began = world.now
    world.server.delete("v1", "configmaps", "a")
    (deletion,) = await read_lines(stream, 1)
    assert deletion.startswith(b'{"type":"DELETED"')
    assert world.now - began < 1
    (bookmark,) = await read_lines(stream, 1)
    assert b"initial-events-end" in bookmark
    assert f'"resourceVersion":"{world.server.resource_version}"'.encode() in bookmark
    assert world.now - began >= 7
    await stream.aclose()


@simulate_scenario
async def test_a_duplicate_is_the_same_line_again(world: Simulation) -> None:
    world.network.duplicates = 1
    stream = await open_watch(world)
    create(world, "a")
    first, second = await read_lines(stream, 2)
    assert first == second
    await stream.aclose()


@simulate_scenario
async def test_a_cancelled_read_loses_nothing(world: Simulation) -> None:
    stream = await open_watch(world)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await anext(stream)
    create(world, "a")
    assert len(await read_lines(stream, 1)) == 1
    await stream.aclose()


@simulate_scenario
async def test_closing_the_client_ends_its_streams(world: Simulation) -> None:
    stream = await open_watch(world)
    await world.client.close()
    with pytest.raises((TransportError, StopAsyncIteration)):
        await anext(stream)
    with pytest.raises(ClientClosedError):
        await world.client.get(MAPS)
    assert world.server.open_watches == 0 or world.network.unclosed == []


@simulate_scenario
async def test_a_restart_keeps_the_objects_and_cuts_connections(world: Simulation) -> None:
    create(world, "a")
    stream = await open_watch(world, resourceVersion=str(world.server.resource_version))
    await world.server.restart()
    with pytest.raises(TransportError):
        await anext(stream)
    await stream.aclose()
    assert b'"a"' in await world.client.get(MAPS)


def test_client_sends_the_token() -> None:
    async def scenario(world: Simulation) -> None:
        assert b"items" in await world.client.get(MAPS)
        world.server.tokens.clear()
        with pytest.raises(ApiError, match="401"):
            await world.client.get(MAPS)

    simulate(scenario, token="secret")
