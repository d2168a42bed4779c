"""The real kube-apiserver is killed and comes back, under five informers.

Informers are often back before the test is, so that nothing happens behind their backs. Where it has to, a gate keeps
them off until it has happened; for them the server is ready when the gate opens.

    pytest tests/e2e/test_restart.py --outage 75 -s

lets it stay away until every informer waits for as long as it ever does between two tries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from aioinformer import KubeObject, ListWatch, SharedIndexInformer
from tests.samples import configmap

from .api import CONFIGMAPS, NAMESPACES, PODS, Object, Resource
from .clusters import KubernetesCluster, pod_manifest
from .conftest import REAL
from .definitions import CAVE_DEFINITION, CAVES, cave
from .gate import ClosableProxy
from .witness import Witness, versions, versions_in_cache

pytestmark = [*REAL, pytest.mark.timeout(300)]

SECRETS = Resource("v1", "secrets")
WITHIN = 35.0
"""Seconds in which all caches have to be equal to the server again."""

MAKE: dict[Resource, Callable[[str], Object]] = {
    CONFIGMAPS: configmap,
    PODS: pod_manifest,
    CAVES: cave,
    SECRETS: lambda name: {"metadata": {"name": name}},
}


async def test_after_a_kill_all_caches_are_equal_again(
    real: KubernetesCluster, outage: float, record_property: Any
) -> None:
    times = await outlive_a_kill(real, outage, kept_off=False)
    said = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in times.items())
    print(f"after an outage of {outage:g} s equal again: {said}")  # noqa: T201
    record_property("recovery", times)
    assert max(times.values()) < WITHIN


@pytest.mark.usefixtures("soon_again")
async def test_deletions_during_downtime_reach_handlers(real: KubernetesCluster) -> None:
    await outlive_a_kill(real, 0, kept_off=True)


async def outlive_a_kill(real: KubernetesCluster, outage: float, *, kept_off: bool) -> dict[str, float]:
    """Kill the server under five informers; the seconds from its being ready until each was equal to it."""
    await real.define(CAVE_DEFINITION)
    other = await real.new_namespace()
    for resource, make in MAKE.items():
        for name in ("kept", "changed", "gone"):
            await real.create(resource, make(name))
    await real.create(CONFIGMAPS, configmap("gone"), other)

    async with (
        ClosableProxy(real.api.url) as gate,
        real.client_through(gate.url) as client,
        AsyncExitStack() as stack,
    ):
        watched: dict[str, tuple[SharedIndexInformer[KubeObject], Witness]] = {}
        list_watches: dict[str, ListWatch | dict[str, ListWatch]] = {
            "configmaps of two namespaces": {
                namespace: real.list_watch(client, CONFIGMAPS, namespace)
                for namespace in (real.namespace, other)
            },
            **{resource.plural: real.list_watch(client, resource) for resource in (PODS, SECRETS, CAVES)},
            "namespaces": real.list_watch(client, NAMESPACES),
        }
        for name, list_watch in list_watches.items():
            informer, witness = SharedIndexInformer(list_watch, KubeObject), Witness()
            informer.add_event_handler(witness)
            informer.set_watch_error_handler(witness.on_error)
            watched[name] = await stack.enter_async_context(informer), witness
        for informer, _ in watched.values():
            await informer.wait_synced(30)
        await real.create(
            CONFIGMAPS, configmap(f"past-{real.namespace}"), "default"
        )  # past what they have read
        before = {name: versions_in_cache(informer) for name, (informer, _) in watched.items()}

        real.control_plane.kill()
        if kept_off:
            await gate.shut()
        await asyncio.sleep(outage)
        assert {name: versions_in_cache(informer) for name, (informer, _) in watched.items()} == before
        await real.control_plane.restart()
        loop = asyncio.get_running_loop()
        ready = loop.time()
        for resource in MAKE:
            await real.delete(resource, "gone")
            await real.patch(resource, "changed", {"metadata": {"labels": {"changed": "yes"}}})
        await real.delete(CONFIGMAPS, "gone", other)
        added = await real.new_namespace()
        if kept_off:
            await until_known(real, other)
            await gate.open()
            ready = loop.time()

        times: dict[str, float] = {}

        async def recover(name: str) -> None:
            await watched[name][1].until_shadow(await server_side(real, name, other), WITHIN)
            times[name] = loop.time() - ready

        async with asyncio.TaskGroup() as waiting:
            for name in watched:
                waiting.create_task(recover(name))
        for name, (informer, witness) in watched.items():
            assert versions_in_cache(informer) == witness.shadow, name
            assert not witness.illegal
            gone = [key for key in before[name] if key.endswith("/gone")]
            ends = {witness.kinds(key)[-1] for key in gone}
            assert ends <= ({"missed"} if kept_off else {"missed", "delete"})
            assert gone or added in witness.shadow
        return times


async def until_known(real: KubernetesCluster, other: str) -> None:
    """Wait until the server's watch cache knows of the deletions: a list may be older, and they come as events."""
    for resource, namespace in [*((resource, None) for resource in MAKE), (CONFIGMAPS, other)]:
        async with asyncio.timeout(WITHIN):
            while any(  # noqa: ASYNC110 - another process
                key.endswith("/gone") for key in await real.list(resource, namespace, resourceVersion="0")
            ):
                await asyncio.sleep(0.02)


async def server_side(real: KubernetesCluster, name: str, other: str) -> dict[str, str]:
    """Return the server's objects of an informer's collection."""
    if name == "namespaces":
        return versions(await real.list(NAMESPACES))
    if name.startswith("configmaps"):
        both: dict[str, Object] = await real.list(CONFIGMAPS) | await real.list(CONFIGMAPS, other)
        return versions(both)
    (resource,) = (candidate for candidate in MAKE if candidate.plural == name)
    return versions(await real.list(resource))
