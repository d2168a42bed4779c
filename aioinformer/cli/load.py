"""What ``aioinformer bench`` watches: objects that change at a rate. A process of its own, off the informer's loop.

Run as ``python -m aioinformer.cli.load SERVER NAMESPACE OBJECTS``, where SERVER is a URL or ``embedded``. It makes the
objects, says where they are, and on a line ``RATE SECONDS`` changes them and says how many changes it made. With the
end of its input it removes them.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from itertools import count
from typing import Any

from ..errors import AioInformerError
from ..listwatch import Client
from ..resources import Resource
from ..testing import APIServer

EMBEDDED = "embedded"
LABELS = {"app.kubernetes.io/managed-by": "aioinformer-bench"}
SENT = "aioinformer.dev/sent"
"""The annotation that says when a change was made, by the clock of ``time.monotonic_ns``."""

_AT_ONCE = 20

Change = Callable[[str, dict[str, Any]], Awaitable[object]]


def configmap(name: str, namespace: str) -> dict[str, Any]:
    """An object of some kilobytes."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": LABELS, "annotations": {SENT: "0"}},
        "data": {f"setting-{n}": f"{name} {n} " * 8 for n in range(20)},
    }


@asynccontextmanager
async def embedded(namespace: str, names: list[str]) -> AsyncIterator[tuple[str, Change]]:
    """A server in this process, whose objects are changed without a request."""
    async with APIServer() as server:
        for name in names:
            server.create("v1", "configmaps", configmap(name, namespace))

        async def change(name: str, patch: dict[str, Any]) -> None:
            server.patch("v1", "configmaps", name, patch, namespace=namespace)

        yield server.url, change


@asynccontextmanager
async def at(url: str, namespace: str, names: list[str]) -> AsyncIterator[tuple[str, Change]]:
    """A server elsewhere, asked by requests. What was made there is removed."""
    async with Client.from_url(url) as client:
        configmaps = Resource(client, "v1", "configmaps")
        made: list[str] = []

        async def make(name: str) -> None:
            await configmaps.create(configmap(name, namespace))
            made.append(name)

        try:
            await _some_at_once(make, names)
            yield url, lambda name, patch: configmaps.patch(f"{namespace}/{name}", patch)
        finally:
            await _some_at_once(lambda name: configmaps.delete(f"{namespace}/{name}"), made)


async def _some_at_once(work: Callable[[str], Coroutine[Any, Any, object]], names: list[str]) -> None:
    for start in range(0, len(names), _AT_ONCE):
        async with asyncio.TaskGroup() as tasks:
            for name in names[start : start + _AT_ONCE]:
                tasks.create_task(work(name))


async def change_at(rate: float, seconds: float, names: list[str], change: Change) -> int:
    """Change objects in turn, so many a second, evenly; how many changes there were."""
    begin = time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        for number in count():
            due = begin + number / rate
            if due >= begin + seconds:
                return number
            if (wait := due - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            tasks.create_task(_change(names[number % len(names)], change))
    raise AssertionError("counting ends")


async def _change(name: str, change: Change) -> None:
    await change(name, {"metadata": {"annotations": {SENT: str(time.monotonic_ns())}}})


async def main(server: str, namespace: str, objects: int) -> None:
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    names = [f"aioinformer-bench-{number}" for number in range(objects)]
    place = embedded(namespace, names) if server == EMBEDDED else at(server, namespace, names)
    async with place as (url, change):
        print(url, flush=True)  # noqa: T201
        while line := await lines.readline():
            rate, seconds = map(float, line.split())
            print(await change_at(rate, seconds, names, change), flush=True)  # noqa: T201


if __name__ == "__main__":
    try:
        asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
    except* AioInformerError as errors:
        sys.exit(str(errors.exceptions[0]))
