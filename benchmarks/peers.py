"""The clients that are compared: each reads a watch of EVENTS pods and prints its CPU seconds.

Run as ``python -m benchmarks.peers NAME URL EVENTS``.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import msgspec
import orjson
import uvloop

from aioinformer import Client, KubeObject, ListWatch, ResourceEventHandlerFuncs, SharedIndexInformer

Clock = Callable[[], None]
"""Called by a peer once it is set up: its connections' machinery stands, nothing is connected yet."""


async def bare_orjson(url: str, events: int, begin: Clock) -> None:
    """A loop as people write it, at its fastest: aiohttp's lines, orjson's dicts, and nothing around it."""
    seen = 0
    async with aiohttp.ClientSession(read_bufsize=2**21) as session:
        begin()
        async with session.get(
            f"{url}/api/v1/pods", params={"watch": "true", "resourceVersion": "1"}
        ) as response:
            async for line in response.content:
                event = orjson.loads(line)
                _ = event["object"]["metadata"]["name"]
                seen += 1
                if seen == events:
                    return


async def cached_orjson(url: str, events: int, begin: Clock) -> None:
    """The bare loop, keeping the newest dict of each pod: the least that stands in for an informer's cache."""
    seen = 0
    pods: dict[tuple[str, str], Any] = {}
    async with aiohttp.ClientSession(read_bufsize=2**21) as session:
        begin()
        async with session.get(
            f"{url}/api/v1/pods", params={"watch": "true", "resourceVersion": "1"}
        ) as response:
            async for line in response.content:
                event = orjson.loads(line)
                metadata = event["object"]["metadata"]
                if event["type"] == "DELETED":
                    pods.pop((metadata["namespace"], metadata["name"]), None)
                else:
                    pods[metadata["namespace"], metadata["name"]] = event["object"]
                seen += 1
                if seen == events:
                    return


class _Meta(msgspec.Struct):
    name: str
    namespace: str
    resourceVersion: str  # noqa: N815


class _Spec(msgspec.Struct):
    nodeName: str = ""  # noqa: N815


class _Status(msgspec.Struct):
    phase: str = ""


class _Pod(msgspec.Struct):
    metadata: _Meta
    spec: _Spec
    status: _Status


def whole_pipeline(object_type: type[Any]) -> Callable[[str, int, Clock], Awaitable[None]]:
    """List, watch, queue, indexer, and a handler that reads metadata."""

    async def run(url: str, events: int, begin: Clock) -> None:
        done = asyncio.Event()
        seen = 0

        def count(obj: Any) -> None:
            nonlocal seen
            _ = obj.metadata.name
            seen += 1
            if seen == events:
                done.set()

        handler: ResourceEventHandlerFuncs[Any] = ResourceEventHandlerFuncs(
            on_add=lambda obj, initial: count(obj), on_update=lambda old, new: count(new)
        )
        async with Client.from_url(url) as client:
            await client.get_json("/version")
            list_watch = ListWatch.for_resource(client, "v1", "pods")
            informer = SharedIndexInformer(list_watch, object_type, use_watch_list=False)
            informer.add_event_handler(handler)
            begin()
            async with informer:
                await done.wait()

    return run


PEERS: dict[str, Callable[[str, int, Clock], Awaitable[None]]] = {
    "bare-orjson": bare_orjson,
    "orjson-cache": cached_orjson,
    "aioinformer": whole_pipeline(KubeObject),
    "aioinformer-struct": whole_pipeline(_Pod),
}


async def measure(name: str, url: str, events: int) -> None:
    """Run a peer and print its CPU seconds and wall seconds, set-up and imports left out."""
    started: list[float] = []
    await PEERS[name](url, events, lambda: started.extend((time.process_time(), time.perf_counter())))
    cpu, wall = started
    print(time.process_time() - cpu, time.perf_counter() - wall, flush=True)


if __name__ == "__main__":
    peer, server, count_text, loop = sys.argv[1:5]
    run = uvloop.run if loop == "uvloop" else asyncio.run
    run(measure(peer, server, int(count_text)))
