"""Waiting for one object without a cache, on either server."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from aioinformer import Client, ConfigError, ForbiddenError, NotFoundError, Resource, TransportError
from aioinformer.errors import UntilTimeout
from tests.samples import configmap

from .api import CONFIGMAPS, PODS
from .clusters import Cluster, EmbeddedCluster, pod_manifest
from .witness import PATIENCE


async def test_object_that_is_created_later(cluster: Cluster, client: Client) -> None:
    maps = Resource(client, "v1", "configmaps")
    waiting = asyncio.create_task(maps.wait_for(cluster.key("a"), "jsonpath={.data.k}=2", PATIENCE))
    await cluster.create(CONFIGMAPS, configmap("b", k="2"))
    await cluster.create(CONFIGMAPS, configmap("a", k="1"))
    await cluster.patch(CONFIGMAPS, "a", {"data": {"k": "2"}})
    assert (await waiting).key == cluster.key("a")


async def test_condition_of_a_pod(cluster: Cluster, client: Client) -> None:
    await cluster.create(PODS, pod_manifest("a"))
    pods = Resource(client, "pods")
    waiting = asyncio.create_task(pods.wait_for(cluster.key("a"), "condition=Ready", PATIENCE))
    ready = {"type": "Ready", "status": "True"}
    await cluster.patch(PODS, "a", {"status": {"conditions": [ready]}}, subresource="/status")
    assert (await waiting)["status"]["conditions"][0]["status"] == "True"


async def test_met_at_once(cluster: Cluster, client: Client) -> None:
    await cluster.create(CONFIGMAPS, configmap("a", k="1"))
    maps = Resource(client, "configmaps", dict)
    met = await maps.wait_for(cluster.key("a"), lambda obj: obj["data"]["k"] == "1", PATIENCE)
    assert met["metadata"]["name"] == "a"
    assert (await Resource(client, "namespaces").wait_for("default", "create", PATIENCE)).name == "default"


async def test_deletion(cluster: Cluster, client: Client) -> None:
    maps = Resource(client, "configmaps")
    await maps.wait_for(cluster.key("a"), "delete", PATIENCE)  # does not exist
    await cluster.create(CONFIGMAPS, configmap("a"))
    waiting = asyncio.create_task(maps.wait_for(cluster.key("a"), "delete", PATIENCE))
    await asyncio.sleep(0.1)
    await cluster.delete(CONFIGMAPS, "a")
    await waiting


async def test_object_created_again_during_an_outage_was_deleted(embedded: EmbeddedCluster) -> None:
    async with embedded.client() as client:
        await embedded.create(CONFIGMAPS, configmap("a"))
        maps = Resource(client, "configmaps")
        waiting = asyncio.create_task(maps.wait_for(embedded.key("a"), "delete", PATIENCE))
        while not embedded.server.open_watches:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)
        fault = embedded.server.faults.fail(503, times=2, verb="list")
        frozen = embedded.server.faults.freeze(verb="watch")
        await embedded.delete(CONFIGMAPS, "a")
        await embedded.create(CONFIGMAPS, configmap("a"))
        embedded.server.faults.expire_history()
        embedded.server.faults.drop_watches()
        frozen.remove()
        await waiting
    assert fault.hits == 2


async def test_timeout_says_the_last_state(cluster: Cluster, client: Client) -> None:
    maps = Resource(client, "configmaps")
    with pytest.raises(
        UntilTimeout, match=r"configmaps .*/a: after 0.2 s 'create' is not met; the object does not"
    ):
        await maps.wait_for(cluster.key("a"), "create", 0.2)
    created = await cluster.create(CONFIGMAPS, configmap("a"))
    version = created["metadata"]["resourceVersion"]
    with pytest.raises(UntilTimeout, match=rf"'delete' is not met; its last resourceVersion is {version}"):
        await maps.wait_for(cluster.key("a"), "delete", 0.2)


async def test_state_that_does_not_fit_is_waited_out(cluster: Cluster, client: Client) -> None:
    class Map(msgspec.Struct):
        metadata: dict[str, Any]
        data: dict[str, str]

    await cluster.create(CONFIGMAPS, configmap("a"))
    maps = Resource(client, "v1", "configmaps", Map)
    with pytest.raises(UntilTimeout, match="data"):
        await maps.wait_for(cluster.key("a"), "create", 0.2)
    waiting = asyncio.create_task(maps.wait_for(cluster.key("a"), lambda obj: obj.data["k"] == "1", PATIENCE))
    await cluster.patch(CONFIGMAPS, "a", {"data": {"k": "1"}})
    assert (await waiting).data == {"k": "1"}


async def test_refusals_are_raised_at_once(cluster: Cluster, client: Client) -> None:
    async with await cluster.forbid() as powerless:
        with pytest.raises(ForbiddenError, match="list configmaps"):
            await Resource(powerless, "configmaps").wait_for(cluster.key("a"), "create")
    with pytest.raises(NotFoundError):
        await Resource(client, "example.com/v1", "unknowns").wait_for("default/a", "create")
    async with Client.from_url("http://127.0.0.1:1") as nowhere:
        with pytest.raises(TransportError):
            await Resource(nowhere, "configmaps").wait_for("default/a", "create")


async def test_bad_arguments(client: Client) -> None:
    with pytest.raises(ConfigError, match="has no namespace"):
        await Resource(client, "configmaps").wait_for("a", "create")
    with pytest.raises(ConfigError, match="timeout"):
        await Resource(client, "configmaps").wait_for("default/a", "create", timeout="soon")  # type: ignore[call-overload]
    with pytest.raises(ConfigError, match="a condition to wait for is"):
        await Resource(client, "configmaps").wait_for("default/a", "Ready")


async def test_function_that_fails_ends_the_wait_and_the_watch(embedded: EmbeddedCluster) -> None:
    await embedded.create(CONFIGMAPS, configmap("a"))

    def fail(_: object) -> bool:
        raise ZeroDivisionError

    async with embedded.client() as client:
        with pytest.raises(ZeroDivisionError):
            await Resource(client, "configmaps").wait_for(embedded.key("a"), fail)
