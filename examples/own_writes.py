"""Reading your own writes: a CachedResource reads from a cache that has at least its own writes.

Ten workers count up the same objects, each reading from the cache what it, or another one, wrote a moment before.

    python examples/own_writes.py
"""

from __future__ import annotations

import asyncio

from aioinformer import CachedResource, Client, ConflictError, KubeObject, Resource, SharedInformerFactory
from aioinformer.testing import APIServer

WORKERS, ROUNDS = 10, 20


async def count_up(counters: CachedResource[KubeObject], key: str) -> None:
    """Read, add one, write; retry after a conflict."""
    while True:
        counter = (await counters.get(key)).to_dict()
        counter["data"]["count"] = str(int(counter["data"]["count"]) + 1)
        try:
            await counters.update(counter)
        except ConflictError:
            continue  # another worker wrote first: the next read has that
        return


async def main() -> None:
    """Run on an API server inside this process."""
    async with (
        APIServer() as server,
        Client.from_url(server.url) as client,
        SharedInformerFactory(client) as factory,
    ):
        informer = factory.for_resource("v1", "configmaps")
        counters = CachedResource(Resource(client, "v1", "configmaps"), informer)
        for number in range(2):
            await counters.create(
                {"metadata": {"name": f"counter-{number}", "namespace": "default"}, "data": {"count": "0"}}
            )
        async with asyncio.TaskGroup() as group:
            for number in range(WORKERS):
                for _ in range(ROUNDS // 2):
                    group.create_task(count_up(counters, f"default/counter-{number % 2}"))
        for obj in await counters.list("default", lambda obj: obj.name.startswith("counter")):
            print(obj.key, obj["data"]["count"])
        gets = server.count("get", "configmaps")
        print("read at the server:", gets)


if __name__ == "__main__":
    asyncio.run(main())
