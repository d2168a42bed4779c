"""The API server of the soak, in its own process, with a steady rate of writes and occasional faults.

Run as ``python -m benchmarks.soak_server RATE OBJECTS TROUBLE_EVERY SEED``; it prints its URL. A line on standard
input stops writes and faults, and it answers with a line. It ends when standard input is closed.
"""

from __future__ import annotations

import asyncio
import sys
from random import Random

from aioinformer._core.tasks import finish
from aioinformer.testing import APIServer
from aioinformer.testing.workload import Troubles

PAUSE = 0.05
RESOURCES = (("v1", "pods"), ("v1", "configmaps"))


class Writes:
    """Creates, changes and deletes objects, and keeps their number about constant.

    Args:
        server: The server to write to.
        objects: The number of objects of each resource.
        random: The source of its choices.
    """

    def __init__(self, server: APIServer, objects: int, random: Random) -> None:
        self._server = server
        self._objects = objects
        self._random = random
        self._names: dict[tuple[str, str], list[str]] = {resource: [] for resource in RESOURCES}
        self._count = 0

    def step(self) -> None:
        """Make one write."""
        self._count += 1
        resource = RESOURCES[self._count % len(RESOURCES)]
        names = self._names[resource]
        if len(names) < self._objects:
            name = f"object-{self._count}"
            labels = {"app": f"app-{self._count % 5}"}
            data = {"count": str(self._count), "text": "x" * 500}
            self._server.create(
                *resource,
                {
                    "metadata": {"name": name, "namespace": f"ns-{self._count % 3}", "labels": labels},
                    "data": data,
                },
            )
            names.append(f"ns-{self._count % 3}/{name}")
            return
        chosen = self._random.randrange(len(names))
        namespace, name = names[chosen].split("/")
        if self._random.random() < 0.2:
            names[chosen] = names[-1]
            names.pop()
            self._server.delete(*resource, name, namespace=namespace)
        else:
            self._server.patch(*resource, name, {"data": {"count": str(self._count)}}, namespace=namespace)

    async def run(self, per_second: float) -> None:
        """Write at a rate until cancelled."""
        loop = asyncio.get_running_loop()
        started, written = loop.time(), 0
        while True:
            await asyncio.sleep(PAUSE)
            due = int((loop.time() - started) * per_second)
            for _ in range(min(due - written, 1000)):
                self.step()
            written = due


async def main(rate: float, objects: int, trouble_every: float, seed: int) -> None:
    """Serve until standard input ends."""
    loop = asyncio.get_running_loop()
    commands = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    async with APIServer(seed=seed, bookmark_interval=5.0, history=2000) as server:
        writes = Writes(server, objects, Random(seed))
        for _ in range(objects * len(RESOURCES)):
            writes.step()
        troubles = Troubles(server, seed)
        tasks = [
            asyncio.create_task(writes.run(rate)),
            asyncio.create_task(troubles.run(trouble_every)),
        ]
        print(server.url, flush=True)
        try:
            await commands.readline()
        finally:
            await finish(*tasks)
        server.faults.clear()
        print(", ".join(f"{count} {what}" for what, count in troubles.done.items()) or "none", flush=True)
        await commands.read()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])))
