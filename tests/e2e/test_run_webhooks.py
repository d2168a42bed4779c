"""``aioinformer run`` with webhooks, as a pod runs it: what is ready when, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from aioinformer.testing import APIServer, eventually
from aioinformer.typed import crd
from tests.kubernetes.process import free_ports

from ..operator.webhooks.certificates import Certificates
from . import api
from .clusters import Cluster
from .converting_pages import Old, operator
from .definitions import define, undefine
from .pods import copy, is_ready
from .processes import Running, started_program

ROOT = Path(__file__).parents[2]


def pages_definition(url: str | None, ca: bytes) -> api.Object:
    """Return the definition as the first release has it, or the second, with a conversion."""
    if url is None:
        return crd(Old)
    (definition,) = operator.definitions(url=url, ca_bundle=ca)
    return definition


def program(
    kubeconfig: Path, files: Certificates, hooks: int, probes: int, **more: str
) -> AbstractAsyncContextManager[Running]:
    environment = {"NO_COLOR": "1", "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", **more}
    return started_program(
        sys.executable, "-m", "aioinformer", "run", "tests.e2e.converting_pages",
        "--kubeconfig", str(kubeconfig), "--host", "127.0.0.1", "--webhook-port", str(hooks),
        "--tls-cert", str(files.cert), "--tls-key", str(files.key),
        "--metrics-port", "0", "--probe-port", str(probes), environment=environment,
    )  # fmt: skip


@asynccontextmanager
async def service(hooks: int, probes: int) -> AsyncIterator[int]:
    """Forward connections to the webhooks while the pod is ready, as a Service does; yield the port."""

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not await is_ready(probes):
            writer.transport.abort()
            return
        target_reader, target = await asyncio.open_connection("127.0.0.1", hooks)
        await asyncio.gather(copy(reader, target), copy(target_reader, writer))

    server = await asyncio.start_server(forward, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def test_caches_that_need_a_conversion_do_not_keep_a_pod_from_converting(
    cluster: Cluster, tmp_path: Path
) -> None:
    files = Certificates(tmp_path)
    hooks, probes = free_ports(2)
    path = api.Resource("ready.example.com/v1alpha1", "pages").path(cluster.namespace)
    at = api.DEFINITIONS.path(name="pages.ready.example.com")
    await define(cluster.api, pages_definition(None, files.ca))
    try:
        page = {
            "apiVersion": "ready.example.com/v1alpha1",
            "kind": "Page",
            "metadata": {"name": "a"},
            "spec": {"domain": "a.example"},
        }
        await cluster.api.do("POST", path, page)
        async with service(hooks, probes) as port:
            definition = pages_definition(f"https://127.0.0.1:{port}", files.ca)
            await cluster.api.do("PATCH", at, {"spec": definition["spec"]}, content_type=api.MERGE)
            async with program(cluster.kubeconfig, files, hooks, probes) as pod:
                while await pod.output.next() != "reconciled a.example":
                    pass
                pod.signal(signal.SIGTERM)
                await pod.end()
    finally:
        unconverted = {"conversion": {"strategy": "None", "webhook": None}}
        await cluster.api.ask("PATCH", at, {"spec": unconverted}, content_type=api.MERGE)
        await undefine(cluster.api, "pages.ready.example.com")


async def accepts(port: int, context: ssl.SSLContext) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    except OSError:
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True


async def until_serving(pod: Running, probes: int) -> None:
    async with asyncio.timeout(20):
        while "starts its controllers" not in await pod.errors.next():
            pass
    await eventually(lambda: is_ready(probes))


async def test_a_pod_accepts_connections_until_its_end_is_known(tmp_path: Path) -> None:
    files = Certificates(tmp_path)
    hooks, probes = free_ports(2)
    context = files.client_context()
    now = asyncio.get_running_loop().time
    async with APIServer() as server:
        server.create(
            "apiextensions.k8s.io/v1", "customresourcedefinitions", pages_definition("https://a", files.ca)
        )
        kubeconfig = tmp_path / "kubeconfig"
        server.kubeconfig(kubeconfig)
        for in_pod in (True, False):
            more = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"} if in_pod else {}
            async with program(kubeconfig, files, hooks, probes, **more) as pod:
                await until_serving(pod, probes)
                began = now()
                pod.signal(signal.SIGTERM)
                if in_pod:
                    await eventually(lambda: _is_not_ready(probes))
                    assert await accepts(hooks, context)
                    await asyncio.sleep(1)
                    assert await accepts(hooks, context)
                    pod.signal(signal.SIGTERM)  # cuts it short
                assert (await pod.end()).code == 0
                assert now() - began < 4.5
            assert not await accepts(hooks, context)


async def _is_not_ready(probes: int) -> bool:
    return not await is_ready(probes)
