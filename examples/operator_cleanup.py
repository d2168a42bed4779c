"""Declared clean-up: an external bucket for each ConfigMap is emptied before the ConfigMap is removed.

The controller adds the finalizer before the first reconcile. It calls `cleanup` once the object is marked for
deletion. The object stays while `cleanup` asks to be called again; after its success the finalizer is removed.

    python examples/operator_cleanup.py
"""

from __future__ import annotations

import asyncio

from aioinformer import Client, KubeObject
from aioinformer.operator import Controller, Manager, Reconciler, Request, Result, WrittenResource
from aioinformer.testing import APIServer, eventually


class Buckets(Reconciler[KubeObject]):
    """A reconciler that keeps a bucket for each object. (Here, a number of files in a dict.)"""

    finalizer = "example.com/bucket"

    def __init__(self) -> None:
        self.files: dict[str, int] = {}

    async def reconcile(self, request: Request[KubeObject]) -> Result | None:
        if request.key not in self.files:
            self.files[request.key] = 2
            print("made the bucket of", request.key)
        return None

    async def cleanup(self, request: Request[KubeObject]) -> Result | None:
        if left := self.files.get(request.key, 0):
            print(f"deletes a file of {request.key}, of {left}")
            self.files[request.key] -= 1
            return Result(requeue_after=0.1)  # in production 20 s
        self.files.pop(request.key, None)
        print("removed the bucket of", request.key)
        return None


def controller(buckets: Buckets, maps: WrittenResource[KubeObject]) -> Controller[KubeObject]:
    """Add the controller. Its finalizer needs a writable collection: a CachedResource."""
    return Controller("buckets", buckets, maps)


async def main() -> None:
    """Run on an API server inside this process."""
    async with APIServer() as server, Client.from_url(server.url) as client:
        buckets = Buckets()
        manager = Manager(client)
        manager.add(controller(buckets, manager.resource("v1", "configmaps")))
        server.create("v1", "configmaps", {"metadata": {"name": "photos"}})
        async with manager:
            await eventually(lambda: buckets.files)
            server.delete("v1", "configmaps", "photos")  # what a user does later
            print("still there:", "default/photos" in server.snapshot("v1", "configmaps"))
            await eventually(lambda: "default/photos" not in server.snapshot("v1", "configmaps"))
            print("gone")


if __name__ == "__main__":
    asyncio.run(main())
