"""The clients that are compared: each reads a watch of EVENTS pods and prints its CPU seconds.

Run as ``python -m benchmarks.peers NAME URL EVENTS``.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable

import aiohttp
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


async def aioinformer_kube_object(url: str, events: int, begin: Clock) -> None:
    """The whole pipeline: list, watch, queue, indexer, a handler that reads metadata."""
    done = asyncio.Event()
    seen = 0

    def count(obj: KubeObject) -> None:
        nonlocal seen
        _ = obj.metadata.name
        seen += 1
        if seen == events:
            done.set()

    handler: ResourceEventHandlerFuncs[KubeObject] = ResourceEventHandlerFuncs(
        on_add=lambda obj, initial: count(obj), on_update=lambda old, new: count(new)
    )
    async with Client.from_url(url) as client:
        await client.get_json("/version")
        informer = SharedIndexInformer(
            ListWatch.for_resource(client, "v1", "pods"), KubeObject, use_watch_list=False
        )
        informer.add_event_handler(handler)
        begin()
        async with informer:
            await done.wait()


PEERS: dict[str, Callable[[str, int, Clock], Awaitable[None]]] = {
    "bare-orjson": bare_orjson,
    "aioinformer": aioinformer_kube_object,
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
