"""Pods that are processes: what kubelet and kube-proxy would do for a Deployment, on this machine."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import sys
from pathlib import Path
from typing import IO, Any

import aiohttp

from tests.kubernetes.controlplane import ControlPlane
from tests.kubernetes.process import free_ports

Object = dict[str, Any]
ROOT = Path(__file__).parents[2]
PATIENCE = 60.0


class Pod:
    """A Pod of a Deployment, and the process that runs in its place.

    Attributes:
        name: The Pod's name.
        folder: The files of its volumes, by file name.
    """

    def __init__(self, plane: ControlPlane, deployment: Object, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self._plane = plane
        self._home: str = deployment["metadata"]["namespace"]
        self._template: Object = deployment["spec"]["template"]
        self._metrics_port, self._probe_port, self.webhook_port = free_ports(3)
        self._process: asyncio.subprocess.Process | None = None
        self._log: IO[bytes] | None = None

    async def start(self, service_port: int, log: Path | None = None) -> None:
        """Create the Pod, start its process, and wait until it is ready.

        Args:
            service_port: The port at which the API server reaches the webhooks' Service.
            log: Where its log goes; None for a file of its folder.
        """
        metadata = {"name": self.name, "namespace": self._home, **self._template["metadata"]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": self._template["spec"]}
        created = json.loads(await self._plane.kubectl("create", "-o=json", "-f", "-", stdin=json.dumps(pod)))
        self.folder.mkdir()
        await self._write_volumes()
        (container,) = self._template["spec"]["containers"]
        environment = {variable["name"]: variable["value"] for variable in container["env"]}
        self._log = (log or self.folder / "log").open("ab")
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "aioinformer", *self._arguments(container, service_port),
            f"--kubeconfig={await self._write_kubeconfig(created)}",
            "--host=127.0.0.1",
            cwd=ROOT,
            env={**os.environ, **environment, "PYTHONPATH": str(ROOT), "KUBERNETES_SERVICE_HOST": "127.0.0.1"},
            stderr=self._log,
        )  # fmt: skip
        async with asyncio.timeout(PATIENCE):
            while await self.get(self._probe_port, "/readyz") is None:
                assert self._process.returncode is None, self.log
                await asyncio.sleep(0.1)

    def signal(self, number: int) -> None:
        """Send a signal to the process."""
        assert self._process is not None
        self._process.send_signal(number)

    async def end(self, number: int = 15) -> int:
        """End the process by a signal, delete the Pod, and return the exit code."""
        assert self._process is not None
        assert self._log is not None
        if self._process.returncode is None:
            self._process.send_signal(number)
        async with asyncio.timeout(PATIENCE):
            code = await self._process.wait()
        self._log.close()
        await self._plane.kubectl(
            "delete",
            "pod",
            self.name,
            f"-n={self._home}",
            "--grace-period=0",
            "--force",
            "--ignore-not-found",
        )
        return code

    @property
    def metrics_url(self) -> str:
        """The URL of its metrics port."""
        return f"http://127.0.0.1:{self._metrics_port}"

    @property
    def log(self) -> str:
        """What the process has logged."""
        path = self.folder / "log"
        return path.read_text() if path.exists() else ""

    async def scrape(self) -> str | None:
        """Return its metrics; None if it does not answer."""
        return await self.get(self._metrics_port, "/metrics")

    async def get(self, port: int, path: str) -> str | None:
        """Return the answer to a request; None without one, or if it is no success."""
        timeout = aiohttp.ClientTimeout(total=1.0)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.get(f"http://127.0.0.1:{port}{path}") as answer,
            ):
                return await answer.text() if answer.status == 200 else None
        except (aiohttp.ClientError, TimeoutError):
            return None

    def _arguments(self, container: Object, service_port: int) -> list[str]:
        ports = {"metrics": self._metrics_port, "probe": self._probe_port, "webhook": self.webhook_port}
        return [
            re.sub(
                r"^(--webhook-service=.*)$",
                rf"\1:{service_port}",
                re.sub(
                    r"=/certs(-ca)?/",
                    f"={self.folder}/",
                    re.sub(r"^--(\w+)-port=\d+$", lambda match: f"--{match[1]}-port={ports[match[1]]}", word),
                ),
            )
            for word in container["args"]
        ]

    async def _write_volumes(self) -> None:
        for volume in self._template["spec"]["volumes"]:
            for kind, name in (
                ("secret", volume.get("secret", {}).get("secretName")),
                ("configmap", volume.get("configMap", {}).get("name")),
            ):
                if name is None:
                    continue
                obj = json.loads(await self._plane.kubectl("get", kind, name, f"-n={self._home}", "-o=json"))
                for file, content in obj["data"].items():
                    data = base64.b64decode(content) if kind == "secret" else content.encode()
                    (self.folder / file).write_bytes(data)

    async def _write_kubeconfig(self, created: Object) -> Path:
        """Write a kubeconfig with a token of the service account that names the Pod, as kubelet mounts."""
        bound = (
            "--bound-object-kind=Pod",
            f"--bound-object-name={self.name}",
            f"--bound-object-uid={created['metadata']['uid']}",
        )
        account = created["spec"]["serviceAccountName"]
        token = (await self._plane.kubectl("create", "token", account, f"-n={self._home}", *bound)).strip()
        config = json.loads(self._plane.kubeconfig.read_text())
        config["users"] = [{"name": "pod", "user": {"token": token}}]
        context = {"cluster": "tests", "user": "pod", "namespace": self._home}
        config["contexts"] = [{"name": "pod", "context": context}]
        config["current-context"] = "pod"
        path = self.folder / "kubeconfig"
        path.write_text(json.dumps(config))
        return path


class Service:
    """A Service: one port that leads to the webhooks of the pods, in turn. An async context manager.

    Attributes:
        port: The port.
        pods: The ready pods.
    """

    def __init__(self) -> None:
        self.port = 0
        self.pods: list[Pod] = []
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Service:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def drop(self) -> None:
        """Close all connections."""
        for task in self._tasks:
            task.cancel()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            if not self.pods:
                return
            self.pods.append(self.pods.pop(0))
            try:
                theirs, to_pod = await asyncio.open_connection("127.0.0.1", self.pods[0].webhook_port)
            except OSError:
                return
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(_copy(reader, to_pod))
                    group.create_task(_copy(theirs, writer))
            finally:
                to_pod.close()
        except* (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()
