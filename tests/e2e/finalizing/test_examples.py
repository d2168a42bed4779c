"""The examples about finalizers, on either server."""

from __future__ import annotations

import asyncio

from aioinformer import Client
from examples import claim_backup, namespace_finalizer, volume_wipe
from tests.samples import configmap

from ..api import CONFIGMAPS, NAMESPACES, PODS
from ..clusters import Cluster
from .test_protection import bound_volume, claim, end, release, until_protection_is_idle, user
from .waiting import CLAIMS, VOLUMES, delete, finalizers, find, until_gone, until_object


async def test_an_account_is_closed_once_its_namespace_is_empty(cluster: Cluster, client: Client) -> None:
    said: asyncio.Queue[str] = asyncio.Queue()
    name = cluster.namespace
    async with namespace_finalizer.operator(client, said.put_nowait, f"example.com/{name}"):
        await cluster.patch(NAMESPACES, name, {"metadata": {"labels": {f"example.com/{name}": ""}}})
        await cluster.create(CONFIGMAPS, configmap("inside"))
        assert await said.get() == f"opened an account for {name}"
        held = await find(cluster, NAMESPACES, name)
        assert held is not None
        assert held["spec"]["finalizers"] == ["kubernetes", namespace_finalizer.FINALIZER]
        await delete(cluster, NAMESPACES, name)
        assert await said.get() == f"{name} is empty: closed its account"
        assert await cluster.list(CONFIGMAPS) == {}
        await until_gone(cluster, NAMESPACES, name)
    assert said.empty()


async def test_a_claim_goes_after_its_last_backup(cluster: Cluster, client: Client) -> None:
    said: list[str] = []
    async with claim_backup.operator(client, said.append, cluster.namespace):
        await cluster.create(CLAIMS, claim("photos"))
        await cluster.create(PODS, user("web", "photos", node="n"))
        await until_object(cluster, CLAIMS, "photos", lambda obj: claim_backup.FINALIZER in finalizers(obj))
        left = await delete(cluster, CLAIMS, "photos")
        assert finalizers(left) == [claim_backup.PROTECTION, claim_backup.FINALIZER]
        await end(cluster, "web")
        await until_gone(cluster, CLAIMS, "photos")
    assert said.count("took a backup of photos") == 1
    assert said[-1] == "took a backup of photos"


async def test_a_volume_is_wiped_once_it_is_released(cluster: Cluster, client: Client) -> None:
    said: list[str] = []
    label = f"example.com/{cluster.namespace}"
    async with volume_wipe.operator(client, said.append, label):
        volume = await bound_volume(cluster, {label: ""})
        await until_object(cluster, VOLUMES, volume, lambda obj: volume_wipe.FINALIZER in finalizers(obj))
        left = await delete(cluster, VOLUMES, volume)
        assert finalizers(left) == [volume_wipe.PROTECTION, volume_wipe.FINALIZER]
        await until_protection_is_idle(cluster)
        assert await find(cluster, VOLUMES, volume) is not None
        assert set(said) <= {f"{volume} is bound"}
        await release(cluster, volume)
        await until_gone(cluster, VOLUMES, volume)
    assert said.count(f"wiped /deep of {volume}") == 1
    assert said[-1] == f"wiped /deep of {volume}"
