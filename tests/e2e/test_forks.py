"""A process that is forked beside running informers: the child knows that nothing runs there, the parent goes on."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from aioinformer import (
    Client,
    EventRecorder,
    InformerEvents,
    KubeObject,
    LeaderElector,
    Resource,
    SharedInformerFactory,
    WorkQueue,
    until_with_sync,
)
from aioinformer._core.forks import FORKED
from aioinformer.operator import Controller, Manager, Request
from aioinformer.testing import APIServer, eventually

from ..forking import in_child

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

MAP = {"metadata": {"name": "a", "namespace": "default"}}


async def test_an_informer_is_not_ready_in_the_child_and_goes_on_in_the_parent() -> None:
    async with (
        APIServer() as server,
        Client.from_url(server.url) as client,
        SharedInformerFactory(client) as factory,
    ):
        server.create("v1", "configmaps", MAP)
        maps = factory.for_resource("v1", "configmaps")
        registration = maps.add_event_handler(on_add=lambda obj, is_in_initial_list: None)
        await registration.wait_synced()
        lister, namespace = maps.lister, maps.lister.namespace("default")

        for probe in (factory.ready, factory.healthy):
            assert await in_child(probe) == f"the factory {FORKED}"
        assert FORKED in await in_child(lambda: maps.state)
        assert await in_child(lambda: maps.state.phase) == "stopped"
        assert await in_child(lambda: maps.state.reflectors[0].phase) == "stopped"
        for synced in (maps.has_synced, registration.has_synced):
            assert await in_child(synced) == "False"
        assert await in_child(lambda: len(maps.store.list())) == "1", "the copy at the fork can be read"

        events = await InformerEvents(maps).__aenter__()
        assert (await anext(events)).object.key == "default/a"
        uses: list[Callable[[], object]] = [
            lister.list,
            partial(lister.get, "default/a"),
            namespace.list,
            partial(namespace.get, "a"),
            factory.start,
            partial(factory.for_resource, "v1", "pods"),
            partial(maps.add_event_handler, on_add=lambda obj, is_in_initial_list: None),
            lambda: asyncio.run(maps.wait_synced()),
            lambda: asyncio.run(registration.wait_synced()),
            lambda: asyncio.run(factory.wait_for_cache_sync()),
            lambda: asyncio.run(factory.wait_ended()),
            lambda: asyncio.run(factory.shutdown()),
            lambda: asyncio.run(maps.wait_for("7")),
            lambda: asyncio.run(client.get("/version")),
            lambda: asyncio.run(Resource(client, "configmaps").get("default/a")),
            lambda: asyncio.run(client.open()),
            lambda: asyncio.run(client.close()),
            lambda: asyncio.run(until_with_sync(maps, lambda event: False)),
            lambda: asyncio.run(_next(events)),
        ]
        for use in uses:
            assert (await in_child(use)).startswith("ForkedError: "), use

        assert factory.ready()
        server.create("v1", "configmaps", {"metadata": {"name": "b", "namespace": "default"}})
        await eventually(lambda: {obj.name for obj in lister.list()} == {"a", "b"})
        assert maps.state.reflectors[0].watches == 1
        assert (await anext(events)).object.key == "default/b"
        await events.__aexit__(None, None, None)


async def _next(events: InformerEvents[KubeObject]) -> object:
    return await anext(events)


async def test_a_child_can_start_informers_of_its_own() -> None:
    async with APIServer() as server, Client.from_url(server.url) as client:
        server.create("v1", "configmaps", MAP)
        await client.get("/version")

        async def read() -> list[str]:
            async with Client.from_url(server.url) as own, SharedInformerFactory(own) as factory:
                maps = factory.for_resource("v1", "configmaps")
                await factory.wait_for_cache_sync()
                return [config_map.key for config_map in maps.lister.list()]

        assert await in_child(lambda: asyncio.run(read())) == "['default/a']"
        changing = await in_child(lambda: server.create("v1", "configmaps", {"metadata": {"name": "b"}}))
        assert changing.startswith("ForkedError: the API server runs in the parent process: "), changing


async def test_a_client_of_an_api_client_works_in_the_child() -> None:
    """It keeps no connections, so there are none of the parent."""
    from kubernetes_asyncio.client import ApiClient, Configuration

    async with APIServer() as server, ApiClient(Configuration(host=server.url)) as api_client:
        client = Client.of(api_client)
        assert b"gitVersion" in await client.get("/version")
        assert "gitVersion" in await in_child(lambda: asyncio.run(client.get("/version")))
        assert b"gitVersion" in await client.get("/version")


async def test_a_leader_does_not_lead_in_the_child_and_keeps_its_lease() -> None:
    async with APIServer() as server, Client.from_url(server.url) as client:

        async def enter(candidate: LeaderElector) -> str:
            async with candidate:
                return candidate.identity

        async with LeaderElector(client, "operator", "default") as elector:
            assert await in_child(lambda: elector.is_leader) == "False"
            assert await in_child(lambda: elector.state.is_leader) == "False"
            assert "in the parent process only" in await in_child(elector.require_leadership)
            assert (await in_child(lambda: asyncio.run(enter(elector)))).startswith("ForkedError: ")
            leaving = elector.__aexit__
            assert (await in_child(lambda: asyncio.run(leaving(None, None, None)))).startswith("ForkedError")
            elector.require_leadership()
            lease = server.get("coordination.k8s.io/v1", "leases", "operator")
            assert lease["spec"]["holderIdentity"] == elector.identity


async def test_processes_do_not_lead_as_one_candidate(tmp_path: Path) -> None:
    async with APIServer() as server:

        async def enter(candidate: LeaderElector) -> str:
            async with candidate:
                return candidate.identity

        elector = LeaderElector(Client.from_url(server.url), "operator", "default")
        first = await in_child(lambda: asyncio.run(enter(elector)))
        second = await in_child(lambda: asyncio.run(enter(elector)))
        assert len({elector.identity, first, second}) == 3
        pod = LeaderElector(Client.from_url(server.url), "operator", "default", "my-pod")
        assert "with an identity of its own" in await in_child(lambda: asyncio.run(enter(pod)))


async def test_a_queue_and_a_recorder_of_the_parent_refuse_work_in_the_child() -> None:
    async with (
        APIServer() as server,
        Client.from_url(server.url) as client,
        EventRecorder(client, "example.com/operator") as recorder,
    ):
        queue: WorkQueue[str] = WorkQueue(name="pods")
        queue.add("before")
        assert await in_child(lambda: asyncio.run(queue.get())) == "before", "no worker has begun"
        assert await queue.get() == "before"
        for use in (
            lambda: queue.add("a"),
            lambda: queue.add_after("a", 0),
            lambda: asyncio.run(queue.get()),
            lambda: asyncio.run(queue.shut_down_with_drain()),
        ):
            answer = await in_child(use)
            assert answer.startswith("ForkedError: work queue 'pods' was started before"), answer
        about = {"apiVersion": "v1", "kind": "ConfigMap", **MAP}
        assert (await in_child(lambda: recorder.event(about, "Normal", "Made", "x"))).startswith(
            "ForkedError"
        )
        queue.add("a")
        recorder.event(about, "Normal", "Made", "x")
        assert recorder.state.recorded == 1


async def test_a_manager_is_not_ready_in_the_child() -> None:
    async def reconcile(request: Request[KubeObject]) -> None:
        pass

    async with APIServer() as server, Client.from_url(server.url) as client:
        manager = Manager(client)
        manager.add(Controller("maps", reconcile, manager.for_resource("v1", "configmaps")))
        async with manager:
            await eventually(manager.ready)
            for probe in (manager.ready, manager.healthy):
                assert (await in_child(probe)).startswith(f"the manager {FORKED}")
            assert await in_child(lambda: manager.state.ended) == "True"
            assert (await in_child(lambda: asyncio.run(manager.run()))).startswith("ForkedError: ")
            assert manager.ready()
