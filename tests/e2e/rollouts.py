"""Pods of an operator that are replaced one by one, behind a Service."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

from aioinformer.testing import eventually
from tests.kubernetes.process import free_ports

from ..operator.webhooks.certificates import Certificates
from .pods import copy, is_ready
from .processes import Running, started_program

LIFETIME = 300.0
"""Seconds that a pod may run."""

ROOT = Path(__file__).parents[2]


class Pod(NamedTuple):
    program: Running
    hooks: int
    probes: int


class Deployment:
    """A pod that runs a release, and the port of its Service. During a rollout there are two.

    Attributes:
        port: Leads to the webhooks of a pod that is ready.
        ended: The exit codes and logs of pods that have ended.
    """

    def __init__(self, kubeconfig: Path, namespace: str, files: Certificates) -> None:
        self._kubeconfig = kubeconfig
        self._namespace = namespace
        self._files = files
        self._pods: list[Pod] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._random = Random(1)
        self.port = 0
        self.ended: list[tuple[int, str]] = []

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Run the Service; at the end, end all pods."""
        server = await asyncio.start_server(self._forward, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
            self._end(len(self._pods))
            await asyncio.gather(*self._tasks)
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks)

    async def roll_out(self, module: str) -> None:
        """Replace the pod by that of a release: the new one is ready before the old one ends."""
        replaced = len(self._pods)
        await self._start(module)
        self._end(replaced)

    async def _start(self, module: str) -> None:
        hooks, probes = free_ports(2)
        task = asyncio.create_task(self._run(module, hooks, probes))
        self._tasks.append(task)

        async def is_up() -> bool:
            assert not task.done(), self.ended
            return await is_ready(probes)

        await eventually(is_up, within=60)

    async def _run(self, module: str, hooks: int, probes: int) -> None:
        environment = {
            "NO_COLOR": "1",
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",  # as in a pod, its end waits until the Service knows
            "HOSTNAME": f"sites-{hooks}",
        }
        async with started_program(
            sys.executable, "-m", "aioinformer", "run", module,
            "--kubeconfig", str(self._kubeconfig), "--leader-elect", "--lease-namespace", self._namespace,
            "--host", "127.0.0.1", "--webhook-port", str(hooks), "--metrics-port", "0",
            "--probe-port", str(probes), "--tls-cert", str(self._files.cert), "--tls-key", str(self._files.key),
            environment=environment,
        ) as program:  # fmt: skip
            self._pods.append(Pod(program, hooks, probes))
            code, _, errors = await program.end(within=LIFETIME)
            self.ended.append((code, errors))

    def _end(self, count: int) -> None:
        """Stop sending requests to the oldest pods, and let them end."""
        ending, self._pods = self._pods[:count], self._pods[count:]
        for pod in ending:
            pod.program.signal(signal.SIGTERM)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect to any pod that is ready, also of a release that has no webhooks and refuses it."""
        ready = [pod for pod in self._pods if await is_ready(pod.probes)]
        try:
            target_reader, target = await asyncio.open_connection(
                "127.0.0.1", self._random.choice(ready).hooks
            )
        except (OSError, IndexError):
            writer.transport.abort()
            return
        await asyncio.gather(copy(reader, target), copy(target_reader, writer))
