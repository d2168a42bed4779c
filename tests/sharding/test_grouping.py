"""Which replica works on an object: by its owner, by its namespace, by a function, and by a text that changes."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from aioinformer import Client, ConfigError, KubeObject, ListWatch
from aioinformer.operator import Context, Manager, Operator, Request, owner_reference
from aioinformer.sharding import Sharding
from aioinformer.testing import APIServer
from aioinformer.testing.waiting import eventually

from .test_operator import FAST, SLOTS, client, create, server

__all__ = ["client", "server"]

Key = Callable[[KubeObject], str]


def text_of(obj: KubeObject) -> str:
    """Group by a label."""
    return str(obj.metadata.labels["group"])


def prefix_of(obj: KubeObject) -> str:
    """Group by the first part of the name, which owned objects do not share with their owners."""
    return obj.name.partition("-")[0]


@asynccontextmanager
async def two_replicas(client: Client, operator: Operator, key: Any = "uid") -> AsyncIterator[list[Manager]]:
    """Run two replicas, each with half of the slots."""
    managers = []
    async with AsyncExitStack() as stack:
        for _ in range(2):
            sharding = Sharding(client, "demo", "default", slots=SLOTS, key=key, **FAST)
            manager = operator.manager(client, namespace="default", sharding=sharding)
            managers.append(await stack.enter_async_context(manager))
        await eventually(
            lambda: (
                {len(manager.sharding.share.slots) for manager in managers if manager.sharding}
                == {SLOTS // 2}
            )
        )
        yield managers


class Restoring:
    """An operator whose ConfigMaps own a Secret each. It counts its reconciles."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.operator = Operator("restoring", events=False)
        self.operator.controller("configmaps", owns=["secrets"])(self.reconcile)

    async def reconcile(self, request: Request[KubeObject], context: Context) -> None:
        self.counts[request.name] += 1
        if request.object is not None:
            secret = {"metadata": {"name": f"of-{request.name}"}}
            await context.apply_owned(request.object, "secrets", secret, adopt=True)

    async def until_quiet(self) -> None:
        """Wait until reconciles no longer follow each other."""
        before = -1
        while before != self.counts.total():
            before = self.counts.total()
            await asyncio.sleep(0.3)


def owners_of_secrets(server: APIServer) -> dict[str, str]:
    return {
        secret["metadata"]["name"]: references[0]["name"]
        for secret in server.list("v1", "secrets", "default")
        if (references := secret["metadata"].get("ownerReferences"))
    }


@pytest.mark.parametrize("key", ["uid", "namespace", prefix_of], ids=["uid", "namespace", "function"])
async def test_owner_restores_what_others_deleted_or_took(
    server: APIServer, client: Client, key: str | Key
) -> None:
    names = [f"c{number}-x" for number in range(12)]
    for name in names:
        create(server, name)
    wanted = {f"of-{name}": name for name in names}
    restoring = Restoring()
    async with two_replicas(client, restoring.operator, key):
        await eventually(lambda: owners_of_secrets(server) == wanted)
        await restoring.until_quiet()
        for name in wanted:
            server.patch("v1", "secrets", name, {"metadata": {"ownerReferences": None}})
        await eventually(lambda: owners_of_secrets(server) == wanted)
        await restoring.until_quiet()
        for name in wanted:
            server.delete("v1", "secrets", name, "default")
        await eventually(lambda: owners_of_secrets(server) == wanted)


async def test_former_and_new_owner_are_reconciled(server: APIServer, client: Client) -> None:
    owners = [create(server, f"c{number}") for number in range(12)]
    restoring = Restoring()
    async with two_replicas(client, restoring.operator):
        await eventually(lambda: len(owners_of_secrets(server)) == 12)
        await restoring.until_quiet()
        restoring.counts.clear()
        for former, new in zip(owners[:6], owners[6:], strict=True):
            references = [owner_reference(new)]
            server.patch("v1", "secrets", f"of-{former.name}", {"metadata": {"ownerReferences": references}})
        await eventually(lambda: restoring.counts.keys() == {owner.name for owner in owners})


async def test_work_ends_when_the_text_of_its_object_changes(
    server: APIServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    operator = Operator("working", events=False)
    running: Counter[str] = Counter()
    cleaned: list[str] = []

    @operator.task("configmaps")
    async def work(request: Request[KubeObject]) -> None:
        running[request.name] += 1
        try:
            await asyncio.sleep(3600)
        finally:
            running[request.name] -= 1

    @operator.controller("configmaps", name="gone")
    async def reconcile(request: Request[KubeObject]) -> None:
        if request.object is None:
            cleaned.append(request.name)

    def label(name: str, text: str) -> None:
        server.patch("v1", "configmaps", name, {"metadata": {"labels": {"group": text}}})

    names = [f"c{number}" for number in range(12)]
    for name in names:
        metadata = {"name": name, "namespace": "default", "labels": {"group": name}}
        server.create("v1", "configmaps", {"metadata": metadata})
    async with two_replicas(client, operator, text_of) as managers:

        def is_each_in_one_place() -> bool:
            keys = [obj.name for manager in managers for obj in manager.informers[0].store.list()]
            return sorted(keys) == sorted(running) == sorted(names) and set(running.values()) == {1}

        await eventually(is_each_in_one_place)
        for name in names:
            label(name, f"moved-{name}")
        moved = {obj.key: obj for obj in managers[0].informers[0].store.list()}
        await eventually(
            lambda: (
                {obj.key for obj in managers[0].informers[0].store.list()} != moved.keys()
                and is_each_in_one_place()
            )
        )
        assert cleaned == []
        server.delete("v1", "configmaps", "c0", "default")
        await eventually(lambda: running["c0"] == 0 and cleaned == ["c0"])
    warnings = [record.message for record in caplog.records if "has changed" in record.message]
    assert 1 <= len(warnings) <= 4  # once for each informer


async def test_cluster_scoped_objects_are_not_shared_by_namespace(client: Client) -> None:
    sharding = Sharding(client, "demo", "default", slots=SLOTS, key="namespace")
    manager = Manager(client, sharding=sharding)
    with pytest.raises(ConfigError, match=r"nodes are in none: use key='uid'"):
        manager.for_resource("v1", "nodes")
    manager.for_resource("v1", "nodes", shard_by="")
    with pytest.raises(ConfigError, match=r"caves\.example\.com are in none"):
        manager.resource("example.com/v1", "caves", namespaced=False)
    with pytest.raises(ConfigError, match="are in none"):
        sharding.read(ListWatch.for_resource(client, "v1", "nodes"), namespaced=False)


async def test_work_in_the_background_is_refused_visibly(
    server: APIServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    operator = Operator("sweeping", events=False)

    async def once() -> AsyncIterator[Request[KubeObject]]:
        yield Request("default", "sweep")
        yield Request("default", "sweep-again")
        await asyncio.sleep(3600)

    @operator.controller("configmaps", sources=[once])
    async def reconcile(request: Request[KubeObject]) -> None: ...

    with caplog.at_level(logging.INFO):
        async with two_replicas(client, operator):
            await eventually(lambda: "no object of this replica is called" in caplog.text)
    lines = [record.message for record in caplog.records if "no object of this replica" in record.message]
    assert 1 <= len(lines) <= 2
