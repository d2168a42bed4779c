"""Compare ``aioinformer serve`` with the binaries of envtest: ``python -m benchmarks.serve [ROUNDS]``.

Both servers run as processes of their own, one after the other, with the same client. The table has the median of the
rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from typing import Any, NamedTuple

import aiohttp
from rich.console import Console
from rich.table import Table

from tests.kubernetes.controlplane import ControlPlane

AT_ONCE = 8
"""Concurrent requests."""
OBJECTS = 1000
LISTS = 20
PATH = "/api/v1/namespaces/default/configmaps"
TIMEOUT = 120.0


class Server(NamedTuple):
    """A started server."""

    url: str
    token: str
    pids: list[int]


class Figures(NamedTuple):
    """What was measured of a server in a round."""

    start: float
    memory: float
    memory_with_objects: float
    creates: float
    gets: float
    lists: float


@contextmanager
def embedded() -> Iterator[Server]:
    """Run ``aioinformer serve --tls``."""
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        command = [sys.executable, "-m", "aioinformer", "serve", "--tls", "--kubeconfig", str(kubeconfig)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            try:
                while not kubeconfig.exists() and process.poll() is None:
                    sleep(0.005)
                config = json.loads(kubeconfig.read_text())
                cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
                yield Server(cluster["server"], user["token"], [process.pid])
            finally:
                process.terminate()


@contextmanager
def envtest() -> Iterator[Server]:
    """Run etcd and kube-apiserver, as envtest does."""
    with ControlPlane() as plane:
        children = Path("/proc/self/task").glob("*/children")
        yield Server(
            plane.url, plane.token, [int(pid) for file in children for pid in file.read_text().split()]
        )


async def measure(server: Server, started: float) -> Figures:
    """Measure a server that was started at a time of ``perf_counter``."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # a loopback server of this process
    connector = aiohttp.TCPConnector(ssl=context, limit=AT_ONCE)
    headers = {"Authorization": f"Bearer {server.token}"}
    async with aiohttp.ClientSession(server.url, connector=connector, headers=headers) as session:
        await _wait_ready(session)
        start, memory = perf_counter() - started, _memory(server.pids)

        async def create(number: int) -> None:
            body: dict[str, Any] = {"metadata": {"name": f"a-{number}"}, "data": {"text": "x" * 100}}
            async with session.post(PATH, json=body) as answer:
                answer.raise_for_status()

        async def get(number: int) -> None:
            async with session.get(f"{PATH}/a-{number}") as answer:
                answer.raise_for_status()
                await answer.read()

        async def list_all(_: int) -> None:
            async with session.get(PATH) as answer:
                answer.raise_for_status()
                await answer.read()

        creates = await _rate(create, OBJECTS)
        gets = await _rate(get, OBJECTS)
        lists = await _rate(list_all, LISTS) * OBJECTS
        return Figures(start, memory, _memory(server.pids), creates, gets, lists)


async def _wait_ready(session: aiohttp.ClientSession) -> None:
    async with asyncio.timeout(TIMEOUT):
        while True:
            try:
                async with session.get("/api/v1/namespaces/default") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                pass  # not listening yet
            await asyncio.sleep(0.01)


async def _rate(request: Any, count: int) -> float:
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            await request(number)

    before = perf_counter()
    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return count / (perf_counter() - before)


def _memory(pids: list[int]) -> float:
    """Return the resident memory of processes in MiB."""
    pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids]
    return sum(pages) * resource.getpagesize() / 2**20


def main(rounds: int) -> None:
    """Measure both servers and print a table."""
    table = Table("", "aioinformer serve", "etcd and kube-apiserver", title=f"median of {rounds} rounds")
    results: dict[Any, list[Figures]] = {embedded: [], envtest: []}
    for _ in range(rounds):
        for run, figures in results.items():
            started = perf_counter()
            with run() as server:
                figures.append(asyncio.run(measure(server, started)))
    for name, unit in (
        ("start", "s"), ("memory", "MiB"), ("memory_with_objects", "MiB"),
        ("creates", "/s"), ("gets", "/s"), ("lists", "objects/s"),
    ):  # fmt: skip
        values = [median(getattr(figure, name) for figure in figures) for figures in results.values()]
        shown = [f"{value:,.2f} {unit}" if value < 10 else f"{value:,.0f} {unit}" for value in values]
        table.add_row(name.replace("_", " "), *shown)
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Compare the embedded API server with envtest's binaries.")
    parser.add_argument("rounds", nargs="?", type=int, default=3)
    main(parser.parse_args().rounds)
