"""One replica as a process: an operator on ConfigMaps that writes down when each reconcile begins and ends.

python -m tests.sharding.replica KUBECONFIG NAMESPACE FILE
"""

from __future__ import annotations

import asyncio
import os
import sys
from time import monotonic

from aioinformer import Client, KubeObject
from aioinformer.operator import Controller, Manager, Request
from aioinformer.sharding import Sharding

SLOTS = 32
LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD = 6.0, 4.0, 1.0


async def run(kubeconfig: str, namespace: str, file: str) -> None:
    """Reconcile this replica's share until SIGTERM."""
    log = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def write(what: str, request: Request[KubeObject], data: str) -> None:
        # One clock for all processes of a machine; a killed process loses nothing that it wrote.
        os.write(log, f"{what} {request.name} {data} {monotonic():.6f}\n".encode())

    async def reconcile(request: Request[KubeObject]) -> None:
        data = "gone" if request.object is None else request.object["data"]["round"]
        write("begin", request, data)
        try:
            await asyncio.sleep(0.005)
        finally:
            write("end", request, data)

    async with Client.from_kubeconfig(path=kubeconfig) as client:
        sharding = Sharding(
            client, "replicas", namespace, slots=SLOTS, move_grace=1.0,
            lease_duration=LEASE_DURATION, renew_deadline=RENEW_DEADLINE, retry_period=RETRY_PERIOD,
        )  # fmt: skip
        manager = Manager(client, namespace=namespace, sharding=sharding)
        informer = manager.for_resource("v1", "configmaps", label_selector="round=yes")
        manager.add(Controller("configmaps", reconcile, informer, concurrency=8))
        await manager.run_until_signal()


if __name__ == "__main__":
    asyncio.run(run(*sys.argv[1:4]))
