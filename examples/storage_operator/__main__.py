"""`python -m examples.storage_operator`: a demonstration on an API server inside this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from aioinformer import Client
from aioinformer.operator.definitions import install
from aioinformer.testing import APIServer

from . import operator
from .model import API_VERSION

WHERE = {"server": "10.0.0.7", "volume": "deep"}


async def main() -> None:
    """Delete a Cave that a Backend still mounts."""
    async with APIServer() as server, Client.from_url(server.url) as client:
        await install(client, operator)
        async with operator.running(client):
            server.create(API_VERSION, "caves", {"metadata": {"name": "deep"}, "spec": WHERE})
            web = {
                "metadata": {"name": "web"},
                "spec": {**WHERE, "image": "example.com/web:1", "replicas": 2},
            }
            server.create(API_VERSION, "backends", web)
            await cave_is(server, lambda cave: cave.get("status") == {"phase": "Protected", "pods": 2})
            print("kubectl delete cave deep")
            server.delete(API_VERSION, "caves", "deep")
            await cave_is(server, lambda cave: cave["status"]["phase"] == "Releasing")
            print("kubectl delete backend web")
            server.delete(API_VERSION, "backends", "web")
            await cave_is(server, lambda cave: False)
        for event in server.list("events.k8s.io/v1", "events"):
            print(f"{event['regarding']['kind']} {event['reason']}: {event['note']}")


async def cave_is(server: APIServer, condition: Callable[[dict[str, Any]], object]) -> None:
    """Wait until the Cave is in the wanted state, or gone, and print it."""
    while caves := server.list(API_VERSION, "caves"):
        if condition(caves[0]):
            status = caves[0]["status"]
            print(f"cave deep: {status['phase']}, mounted by {status['pods']} pods")
            return
        await asyncio.sleep(0.01)
    print("cave deep: gone")


if __name__ == "__main__":
    asyncio.run(main())
