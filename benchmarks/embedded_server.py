"""Measure the embedded API server of tests: ``python -m benchmarks.embedded_server [OBJECTS]``.

It prints the CPU time per object, of server and client together, and objects per second. CPU time is steadier on a busy
machine, but caches that other load empties still raise it: compare the best of several runs.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter, process_time
from typing import Any

import aiohttp
from rich.console import Console
from rich.table import Table

from aioinformer import Client, SharedInformerFactory
from aioinformer.testing import APIServer

POSTED = 20
"""One of so many objects is also created by HTTP."""

_IMPORT = (
    "from time import process_time as now; before = now(); import aioinformer.testing; print(now() - before)"
)


def pod(name: str) -> dict[str, Any]:
    """Return a pod as tests create many of."""
    container = {"name": "app", "image": "app:1", "ports": [{"containerPort": 80}]}
    metadata = {"name": name, "labels": {"app": "web", "number": name}}
    return {"metadata": metadata, "spec": {"nodeName": "node-1", "containers": [container]}}


def config_map(name: str) -> dict[str, Any]:
    """Return a ConfigMap."""
    return {"metadata": {"name": name}, "data": {"text": "x" * 100}}


class Report:
    """The figures as a table."""

    def __init__(self) -> None:
        self.table = Table("what", "CPU", "rate")
        for column in self.table.columns[1:]:
            column.justify = "right"

    def add(self, what: str, cpu: float) -> None:
        """Add the CPU time of something that happens once."""
        self.table.add_row(what, f"{cpu * 1e3:.0f} ms", "")

    @contextmanager
    def time_each(self, what: str, count: int) -> Iterator[None]:
        """Measure the body, which handles a number of objects."""
        cpu, wall = process_time(), perf_counter()
        yield
        cpu, wall = process_time() - cpu, perf_counter() - wall
        self.table.add_row(what, f"{cpu / count * 1e6:.1f} µs/object", f"{count / wall:,.0f}/s")


async def main(count: int, imported: float) -> None:
    """Measure everything once, besides the given import time, and print the table."""
    report, names = Report(), [f"object-{number}" for number in range(count)]
    report.add("import aioinformer.testing", imported)
    before = process_time()
    async with APIServer() as server:
        report.add("start", process_time() - before)
        with report.time_each(f"create {count:,} ConfigMaps", count):
            for name in names:
                server.create("v1", "configmaps", config_map(name))
        with report.time_each(f"create {count:,} pods", count):
            for name in names:
                server.create("v1", "pods", pod(name))
        async with aiohttp.ClientSession(server.url) as session:
            path = "/api/v1/namespaces/default/pods"
            with report.time_each(f"list {count:,} pods by HTTP", count):
                async with session.get(path) as answer:
                    await answer.read()
            await _sync(server, report, count)
            posted = names[: count // POSTED]
            with report.time_each(f"create {len(posted):,} pods by HTTP", len(posted)):
                for name in posted:
                    async with session.post(path, json=pod(f"posted-{name}")) as answer:
                        answer.raise_for_status()
    Console().print(report.table)


async def _sync(server: APIServer, report: Report, count: int) -> None:
    async with Client.from_url(server.url) as client:
        factory = SharedInformerFactory(client)
        informer = factory.for_resource("v1", "pods")
        with report.time_each(f"sync an informer of {count:,} pods", count):
            async with factory:
                await factory.wait_for_cache_sync()
                assert len(informer.lister.list()) == count


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure the embedded API server.")
    parser.add_argument("objects", nargs="?", type=int, default=100_000)
    imported = float(subprocess.check_output([sys.executable, "-c", _IMPORT]))
    asyncio.run(main(parser.parse_args().objects, imported))
