"""Permanent errors end an informer instead of being retried for ever."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer import Client, KubeObject, ListWatch, SharedIndexInformer, StoppedError
from aioinformer.cache import Phase
from aioinformer.errors import ClientClosedError, WrongEventLoopError
from aioinformer.testing import APIServer

from ..steps import until


async def test_closed_client_ends_the_informer() -> None:
    async with APIServer() as server:
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        client = Client.from_url(server.url)
        informer = SharedIndexInformer(ListWatch.for_resource(client, "v1", "configmaps"), KubeObject)
        with pytest.raises(ClientClosedError):
            async with informer:
                await informer.wait_synced()
                await client.close()
                await until(lambda: informer.is_stopped)
                assert informer.state.phase is Phase.STOPPED
                assert isinstance(informer.state.last_error, ClientClosedError)
        assert len(informer.store) == 1, "the cache stays readable"


async def test_closed_client_ends_waits_with_the_reason() -> None:
    async with APIServer() as server:
        client = Client.from_url(server.url)
        await client.close()
        informer = SharedIndexInformer(ListWatch.for_resource(client, "v1", "configmaps"), KubeObject)
        with pytest.raises(ClientClosedError):
            async with informer:
                with pytest.raises(StoppedError, match="the client is closed"):
                    await informer.wait_synced()


async def test_client_of_another_event_loop_ends_the_informer() -> None:
    async with APIServer() as server, Client.from_url(server.url) as client:

        async def inform() -> None:
            informer = SharedIndexInformer(ListWatch.for_resource(client, "v1", "configmaps"), KubeObject)
            async with informer:
                await informer.wait_synced()

        with pytest.raises(WrongEventLoopError, match=f"the client of {server.url} was opened in another"):
            await asyncio.to_thread(lambda: asyncio.run(inform()))
        assert await client.get("/api/v1/configmaps")
