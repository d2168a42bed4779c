"""Finalizers by hand, for cases without a declaration: here, only some objects have one.

The patches name what they expect, so concurrent writes lose no finalizer. That an object
is gone already, or another has its name by now, is no error.

    python examples/operator_finalizer.py
"""

from __future__ import annotations

import asyncio

from aioinformer import Client, KubeObject, contains_finalizer
from aioinformer.operator import Controller, Manager, Request
from aioinformer.testing import APIServer, eventually

FINALIZER = "example.com/cleanup"


def operator(client: Client, gone: asyncio.Event) -> Manager:
    """A reconciler for ConfigMaps that name their purpose."""
    manager = Manager(client)
    maps = manager.resource("v1", "configmaps")

    async def reconcile(request: Request[KubeObject]) -> None:
        obj = request.object
        if obj is None:
            gone.set()
        elif obj.metadata.deletion_timestamp is None:
            if "about" in obj.get("data", {}) and not contains_finalizer(obj, FINALIZER):
                print("taking care of", request.key)
                await maps.ensure_finalizer(obj, FINALIZER)
        elif contains_finalizer(obj, FINALIZER):
            print("cleaning up after", request.key)
            await maps.drop_finalizer(obj, FINALIZER)

    manager.add(Controller("maps", reconcile, maps))
    return manager


async def main() -> None:
    """Run on an API server inside this process."""
    async with APIServer() as server, Client.from_url(server.url) as client:
        gone = asyncio.Event()
        server.create("v1", "configmaps", {"metadata": {"name": "settings"}})
        server.create("v1", "configmaps", {"metadata": {"name": "database"}, "data": {"about": "a database"}})
        async with operator(client, gone):
            await eventually(lambda: "finalizers" in server.get("v1", "configmaps", "database")["metadata"])
            server.delete("v1", "configmaps", "database")  # what a user does later
            await gone.wait()
            print("default/database is gone")


if __name__ == "__main__":
    asyncio.run(main())
