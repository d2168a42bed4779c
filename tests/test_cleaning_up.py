"""Cleanup after a cancellation is awaited and not cancelled again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from aioinformer import Client, EventRecorder, ListWatch, Resource, RetryWatcher, SharedInformerFactory, until
from aioinformer.leaderelection import LeaderElector
from aioinformer.testing import APIServer

CleanUp = Callable[[Client], Awaitable[Any]]


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with APIServer() as server, Client.from_url(server.url) as client:
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        yield client


async def write(client: Client) -> None:
    resource = Resource(client, "v1", "configmaps")
    listed = await resource.list("default")
    assert [obj.key for obj in listed] == ["default/a"]
    await resource.patch("default/a", {"data": {"done": "yes"}})
    await resource.delete(await resource.get("default/a"))


async def wait(client: Client) -> None:
    configmaps = ListWatch.for_resource(client, "v1", "configmaps", "default")
    resource = Resource(client, "v1", "configmaps")
    before = await resource.get("default/a")
    await resource.delete("default/a")
    await until(configmaps, before.resource_version, lambda event: event.type == "DELETED", timeout=30)
    async with asyncio.timeout(30):
        async for event in RetryWatcher(configmaps, before.resource_version):
            assert event.type == "DELETED"
            break


async def read(client: Client) -> None:
    async with SharedInformerFactory(client) as factory:
        configmaps = factory.for_resource("v1", "configmaps")
        await factory.wait_for_cache_sync(timeout=30)
        assert configmaps.store.list_keys() == ["default/a"]
        written = await Resource(client, "v1", "configmaps").patch("default/a", {"data": {"done": "yes"}})
        assert await configmaps.wait_for(written, timeout=30) == written


async def lead(client: Client) -> None:
    async with LeaderElector(client, "cleaner", "default"), EventRecorder(client, "cleaner") as recorder:
        recorder.event(await Resource(client, "v1", "configmaps").get("default/a"), "Normal", "Left", "bye")
    (event,) = await Resource(client, "events.k8s.io/v1", "events").list("default")
    assert event["reason"] == "Left"


@pytest.mark.parametrize("clean_up", [write, wait, read, lead])
async def test_cleanup_is_not_cancelled_again(client: Client, clean_up: CleanUp) -> None:
    cleaned_up = False
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            try:
                await asyncio.sleep(60)
            finally:
                await clean_up(client)
                cleaned_up = True
    assert cleaned_up
