"""What ``aioinformer bench`` watches: objects that change at a rate. A process of its own, off the informer's loop.

Run as ``python -m aioinformer.cli.load TARGET NAMESPACE OBJECTS``, where TARGET is a Target as JSON, or null for an
embedded server. It makes the objects, says at which URL they are, and on a line ``RATE SECONDS`` changes them and says
how many changes it made. With the end of its input, and when told to end, it stops at once and removes them.
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

import msgspec

from .._core.tasks import run_until_first
from ..errors import AioInformerError, NotFoundError
from ..resources import Resource
from ..testing import APIServer
from .target import Target

LABELS = {"app.kubernetes.io/managed-by": "aioinformer-bench"}
SELECTOR = ",".join(f"{name}={value}" for name, value in LABELS.items())
SENT = "aioinformer-bench-sent"
"""The annotation that says when a change was made, or asked for, by the clock of ``time.monotonic_ns``."""

_AT_ONCE = 20
_LATENESS = 1.0
"""Seconds after the end in which changes that are late are still made."""

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
async def at(target: Target, namespace: str, names: list[str]) -> AsyncIterator[tuple[str, Change]]:
    """A server elsewhere, asked by requests. What was made there is removed, by an earlier run that was killed, too."""
    async with target.client() as client:
        configmaps = Resource(client, "v1", "configmaps")

        async def remove(name: str) -> None:
            with suppress(NotFoundError):
                await configmaps.delete(f"{namespace}/{name}")

        async def remove_all() -> None:
            made = await configmaps.list(namespace, label_selector=SELECTOR)
            await _some_at_once(remove, [obj.name for obj in made])

        await remove_all()
        try:
            await _some_at_once(lambda name: configmaps.create(configmap(name, namespace)), names)
            yield client.server, lambda name, patch: configmaps.patch(f"{namespace}/{name}", patch)
        finally:
            await remove_all()


async def _some_at_once(work: Callable[[str], Coroutine[Any, Any, object]], names: list[str]) -> None:
    for start in range(0, len(names), _AT_ONCE):
        async with asyncio.TaskGroup() as tasks:
            for name in names[start : start + _AT_ONCE]:
                tasks.create_task(work(name))


async def change_at(rate: float, seconds: float, names: list[str], change: Change) -> int:
    """Change objects in turn, so many a second, evenly, or as many as can be; how many changes there were."""
    turns = asyncio.Semaphore(_AT_ONCE)  # what waits for its turn has not been sent

    async def make(name: str) -> None:
        try:
            await change(name, {"metadata": {"annotations": {SENT: str(time.monotonic_ns())}}})
        finally:
            turns.release()

    begin = time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        for number in count():
            due, now = begin + number / rate, time.monotonic()
            if due >= begin + seconds or now >= begin + seconds + _LATENESS:
                return number
            await asyncio.sleep(due - now)  # others have their turn even when it is late
            await turns.acquire()
            tasks.create_task(make(names[number % len(names)]))
    raise AssertionError("counting ends")


async def main(target: Target | None, namespace: str, objects: int) -> None:
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, lines.feed_eof)  # however often it is told, it is cancelled once
    orders: asyncio.Queue[bytes] = asyncio.Queue()

    async def read() -> None:
        while line := await lines.readline():
            orders.put_nowait(line)

    async def obey() -> None:
        names = [f"aioinformer-bench-{number}" for number in range(objects)]
        place = embedded(namespace, names) if target is None else at(target, namespace, names)
        async with place as (url, change):
            print(url, flush=True)  # noqa: T201
            while True:
                rate, seconds = map(float, (await orders.get()).split())
                print(await change_at(rate, seconds, names, change), flush=True)  # noqa: T201

    await run_until_first(read, obey)


if __name__ == "__main__":
    try:
        asyncio.run(main(msgspec.json.decode(sys.argv[1], type=Target | None), sys.argv[2], int(sys.argv[3])))
    except* AioInformerError as errors:
        error: BaseException = errors
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        sys.exit(str(error))
