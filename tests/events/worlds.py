"""Event recorders on a simulated API server."""

from __future__ import annotations

import asyncio
from typing import Any

from aioinformer import EventRecorder, KubeObject
from aioinformer.testing import Simulation

CONTROLLER = "example.com/cave-controller"


def recorder(world: Simulation, **options: Any) -> EventRecorder:
    options = {"wall": lambda: 1_750_000_000.0 + world.now, "random": world.random, **options}
    return EventRecorder(world.client, CONTROLLER, "one", **options)


def about(name: str = "a", version: str = "7", **fields: Any) -> KubeObject:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": version}
    return KubeObject.from_dict(
        {"apiVersion": "example.com/v1", "kind": "Cave", "metadata": metadata, **fields}
    )


def events(world: Simulation) -> list[dict[str, Any]]:
    return world.server.list("events.k8s.io/v1", "events")


def verbs(world: Simulation) -> list[str]:
    return [request.verb for request in world.server.requests if request.resource == "events"]


async def idle(subject: EventRecorder) -> None:
    """Wait until the queue is empty."""
    while subject.state.queued:  # noqa: ASYNC110 - nothing tells
        await asyncio.sleep(0.01)
