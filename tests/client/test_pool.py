"""Calls that hang keep no other call from being sent, unless the configuration limits the connections."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from aioinformer import Client, LeaderElector, TransportError
from aioinformer.testing import APIServer
from aioinformer.testing.faults import Fault

from ..steps import run_during, until

HANGING = "/api/v1/namespaces/default/configmaps"


@asynccontextmanager
async def hanging_calls(server: APIServer, client: Client, count: int) -> AsyncIterator[Fault]:
    """So many calls that the server has and does not answer."""
    frozen = server.faults.freeze(resource="configmaps")
    async with AsyncExitStack() as stack:
        for _ in range(count):
            await stack.enter_async_context(run_during(client.get(HANGING, timeout=60)))
        async with asyncio.timeout(30):
            await until(lambda: sum(request.resource == "configmaps" for request in server.requests) == count)
        try:
            yield frozen
        finally:
            frozen.remove()


def make_api_client(url: str, library: str, pool_size: int | None = None) -> Any:
    """An ApiClient; of the default pool size where that is None."""
    package = importlib.import_module(f"{library}.client")
    configuration = package.Configuration(host=url)
    if pool_size is not None:
        configuration.connection_pool_maxsize = pool_size
    return package.ApiClient(configuration)


@pytest.mark.parametrize("wraps", [False, True])
async def test_hanging_calls_do_not_keep_a_lease_from_being_renewed(library: str, wraps: bool) -> None:
    async with APIServer() as server, AsyncExitStack() as stack:
        if wraps:
            client = Client.wrap(await stack.enter_async_context(make_api_client(server.url, library)))
        else:
            client = Client.from_url(server.url, library=library)
        elector = LeaderElector(
            client, "operator", "default", lease_duration=3, renew_deadline=2, retry_period=0.2
        )

        async def renewed_twice() -> None:
            await until(lambda: sum(request.verb == "update" for request in server.requests) == 2)

        async with client, hanging_calls(server, client, 120), asyncio.timeout(20):
            await elector.run(renewed_twice)


async def test_error_says_that_a_call_waited_for_a_free_connection(library: str) -> None:
    async with (
        APIServer() as server,
        make_api_client(server.url, library, 2) as api_client,
        Client.wrap(api_client) as client,
    ):
        says = r"no free connection \(connection_pool_maxsize allows 2, .*\) within 0\.2 seconds"
        async with hanging_calls(server, client, 2):
            with pytest.raises(TransportError, match=says):
                await client.get("/version", timeout=0.2)
        assert b"gitVersion" in await client.get("/version")


async def test_a_call_that_waited_for_its_connection_then_waits_for_its_answer(library: str) -> None:
    async with (
        APIServer() as server,
        make_api_client(server.url, library, 1) as api_client,
        Client.wrap(api_client) as client,
    ):
        server.faults.freeze(resource="secrets")
        async with hanging_calls(server, client, 1) as frozen:
            asked = asyncio.create_task(client.get("/api/v1/namespaces/default/secrets", timeout=2))
            await asyncio.sleep(0.1)
            frozen.remove()
            with pytest.raises(TransportError, match=r"no answer within 2 seconds"):
                await asked
        server.faults.thaw()
