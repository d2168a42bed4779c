"""Clean-up by declaration: a bucket elsewhere for each ConfigMap, which is emptied before the ConfigMap goes.

The finalizer is added before the first reconcile. `cleanup` is called once the object is to be deleted; as long as it
asks to be called again the object stays, and the finalizer is removed after it has succeeded.

    python examples/operator_cleanup.py
"""

from __future__ import annotations

import asyncio

from aioinformer import Client, KubeObject
from aioinformer.operator import Controller, Manager, Reconciler, Request, Result, WrittenResource
from aioinformer.testing import APIServer, eventually


class Buckets(Reconciler[KubeObject]):
    """Keeps a bucket for each object. (Here, a number of files in a dict.)"""

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
            return Result(requeue_after=0.1)  # in real life 20 s
        self.files.pop(request.key, None)
        print("removed the bucket of", request.key)
        return None


def controller(buckets: Buckets, maps: WrittenResource[KubeObject]) -> Controller[KubeObject]:
    """Needs a collection that can be written to, for the finalizer: a CachedResource."""
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
            server.delete("v1", "configmaps", "photos")  # what a user does, some day
            print("still there:", "default/photos" in server.snapshot("v1", "configmaps"))
            await eventually(lambda: "default/photos" not in server.snapshot("v1", "configmaps"))
            print("gone")


if __name__ == "__main__":
    asyncio.run(main())
