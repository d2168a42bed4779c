"""A Kubernetes worker of Prefect, which observes pods and jobs. What it knows, Prefect's server says."""

from __future__ import annotations

import asyncio
import os
import signal

os.environ["PREFECT_INTEGRATIONS_KUBERNETES_OBSERVER_NAMESPACES"] = os.environ["NAMESPACE"]

from prefect_kubernetes.worker import KubernetesWorker

POOL = "kubernetes"


async def main() -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with KubernetesWorker(work_pool_name=POOL):
        await stopped.wait()
