"""One replica: an operator on pods that reconciles its share.

``python -m benchmarks.replicas.replica NAME SERVER ENCODING`` obeys lines on standard input: ``run`` takes part,
``state`` and ``settle`` are answered by a line of JSON. SIGTERM stops it as it stops an operator.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from typing import Any

import uvloop
from kubernetes_asyncio.client import ApiClient, Configuration

from aioinformer import Client, KubeObject
from aioinformer.operator import Controller, Manager, Request
from aioinformer.sharding import Sharding

from ..clients.driver import say, settle

SHARDING, NAMESPACE, SLOTS = "pods", "default", 64
LEASE_DURATION = 15.0
"""The default."""


class Replica:
    """A manager with one controller.

    Args:
        name: Its User-Agent, by which the server counts bytes.
        server: The server's URL.
        encoding: ``"json"`` or ``"protobuf"``.
    """

    def __init__(self, name: str, server: str, encoding: str) -> None:
        self._api = ApiClient(Configuration(host=server))
        self._api.user_agent = name
        self.client = Client.wrap(self._api)
        self._sharding = Sharding(
            self.client, SHARDING, NAMESPACE, slots=SLOTS, lease_duration=LEASE_DURATION
        )
        self.manager = Manager(self.client, sharding=self._sharding)
        self._informer = self.manager.for_resource("v1", "pods", protobuf=encoding == "protobuf")
        self.manager.add(Controller("pods", self._reconcile, self._informer))
        self._reconciles = self._reconciled_at = self._seen = 0

    async def _reconcile(self, request: Request[KubeObject]) -> None:
        if (pod := request.object) is not None:
            self._seen += len(pod.metadata.name) + len(pod.metadata.labels)
            self._reconciles += 1
            self._reconciled_at = time.monotonic_ns()

    def describe(self) -> dict[str, Any]:
        """Return what the harness wants to know."""
        state = self._sharding.state
        return {
            "cpu": time.process_time(),
            "owned": [slot for slot in state.owned if slot not in state.leaving],
            "objects": len(self._informer.indexer),
            "reconciles": self._reconciles,
            "reconciled_at": self._reconciled_at,
            "server_selects": all(state.is_filtered_by_server.values()),
        }

    async def close(self) -> None:
        await self.client.close()
        await self._api.close()


async def obey(replica: Replica) -> None:
    """Run the commands of standard input, until it ends or a signal stops the manager."""
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    settle()
    say("ready")
    async with asyncio.TaskGroup() as group:
        work: asyncio.Task[None] | None = None
        while line := await lines.readline():
            match line.decode().strip():
                case "run":
                    work = group.create_task(replica.manager.run_until_signal())
                    work.add_done_callback(lambda _: lines.feed_eof())
                case "state":
                    say("state", **replica.describe())
                case "settle":
                    settle()
                    say("settled")
                case other:
                    raise SystemExit(f"no such command: {other}")
        if work is not None:
            work.cancel()


async def main(name: str, server: str, encoding: str) -> None:
    logging.basicConfig(level=logging.WARNING)
    replica = Replica(name, server, encoding)
    try:
        await replica.client.get_json("/version")
        await obey(replica)
    finally:
        await replica.close()


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:4]))
