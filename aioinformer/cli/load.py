"""The load of ``aioinformer bench``: a separate process that changes objects at a given rate.

Run as ``python -m aioinformer.cli.load TARGET NAMESPACE OBJECTS``, where TARGET is a Target as JSON, or null for an
embedded server. The process creates the objects and prints the server's URL. For each input line ``RATE SECONDS`` it
changes the objects and prints how many changes it made. At the end of its input, or on SIGINT or SIGTERM, it stops and
deletes the objects.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any

import anyio
import msgspec

from .._core.tasks import run_until_first
from ..errors import AioInformerError, NotFoundError
from ..resources import Resource
from ..testing import APIServer
from .target import Target

LABELS = {"app.kubernetes.io/managed-by": "aioinformer-bench"}
SELECTOR = ",".join(f"{name}={value}" for name, value in LABELS.items())
SENT = "aioinformer-bench-sent"
"""The annotation with the ``time.monotonic_ns`` of a change, or of the request for it."""

_CONCURRENT = 20
_LATENESS = 1.0
"""Seconds after the end until which late changes are still made."""

Change = Callable[[str, dict[str, Any]], Awaitable[object]]


def configmap(name: str, namespace: str) -> dict[str, Any]:
    """Return an object of some kilobytes."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": LABELS, "annotations": {SENT: "0"}},
        "data": {f"setting-{n}": f"{name} {n} " * 8 for n in range(20)},
    }


@asynccontextmanager
async def embedded(namespace: str, names: list[str]) -> AsyncIterator[tuple[str, Change]]:
    """Run an embedded server and change its objects directly, without requests."""
    async with APIServer() as server:
        for name in names:
            server.create("v1", "configmaps", configmap(name, namespace))

        async def change(name: str, patch: dict[str, Any]) -> None:
            server.patch("v1", "configmaps", name, patch, namespace=namespace)

        yield server.url, change


@asynccontextmanager
async def at(target: Target, namespace: str, names: list[str]) -> AsyncIterator[tuple[str, Change]]:
    """Use another server through requests; delete the objects afterwards, and those of earlier killed runs first."""
    async with target.client() as client:
        configmaps = Resource(client, "v1", "configmaps")

        async def remove(name: str) -> None:
            with suppress(NotFoundError):
                await configmaps.delete(f"{namespace}/{name}")

        async def remove_all() -> None:
            made = await configmaps.list(namespace, label_selector=SELECTOR)
            await _run_concurrently(remove, [obj.name for obj in made])

        await remove_all()
        try:
            await _run_concurrently(lambda name: configmaps.create(configmap(name, namespace)), names)
            yield client.server, lambda name, patch: configmaps.patch(f"{namespace}/{name}", patch)
        finally:
            with anyio.CancelScope(shield=True):  # the scope around this is cancelled at the end
                await remove_all()


async def _run_concurrently(work: Callable[[str], Coroutine[Any, Any, object]], names: list[str]) -> None:
    for start in range(0, len(names), _CONCURRENT):
        async with asyncio.TaskGroup() as tasks:
            for name in names[start : start + _CONCURRENT]:
                tasks.create_task(work(name))


async def change_at(rate: float, seconds: float, names: list[str], change: Change) -> int:
    """Change objects in turn at an even rate, or as fast as possible; return how many changes were made."""
    slots = asyncio.Semaphore(_CONCURRENT)  # a change gets its time stamp when it has a slot

    async def make(name: str) -> None:
        try:
            await change(name, {"metadata": {"annotations": {SENT: str(time.monotonic_ns())}}})
        finally:
            slots.release()

    begin = time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        for number in count():
            due, now = begin + number / rate, time.monotonic()
            if due >= begin + seconds or now >= begin + seconds + _LATENESS:
                return number
            await asyncio.sleep(due - now)  # also yields when the change is late
            await slots.acquire()
            tasks.create_task(make(names[number % len(names)]))
    raise AssertionError("unreachable")


async def main(target: Target | None, namespace: str, objects: int) -> None:
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, lines.feed_eof)  # repeated signals have no further effect
    commands: asyncio.Queue[bytes] = asyncio.Queue()

    async def read() -> None:
        while line := await lines.readline():
            commands.put_nowait(line)

    async def serve() -> None:
        names = [f"aioinformer-bench-{number}" for number in range(objects)]
        place = embedded(namespace, names) if target is None else at(target, namespace, names)
        async with place as (url, change):
            print(url, flush=True)  # noqa: T201
            while True:
                rate, seconds = map(float, (await commands.get()).split())
                print(await change_at(rate, seconds, names, change), flush=True)  # noqa: T201

    await run_until_first(read, serve)


if __name__ == "__main__":
    try:
        asyncio.run(main(msgspec.json.decode(sys.argv[1], type=Target | None), sys.argv[2], int(sys.argv[3])))
    except* AioInformerError as errors:
        error: BaseException = errors
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        sys.exit(str(error))
