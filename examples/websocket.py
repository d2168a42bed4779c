"""A handler for each browser: it follows a WebSocket, bounds the backlog of a slow reader, and is removed with it.

    python examples/websocket.py

It plays a browser that connects, reads the cached objects, and goes.
"""

from __future__ import annotations

import asyncio

from fastapi import WebSocket, WebSocketDisconnect
from starlette.types import Message

from aioinformer import (
    Client,
    DeletedFinalStateUnknown,
    KubeObject,
    ResourceEventHandlerFuncs,
    SharedIndexInformer,
    SharedInformerFactory,
)
from aioinformer.testing import APIServer


async def follow(websocket: WebSocket, informer: SharedIndexInformer[KubeObject]) -> None:
    """Send every change to a browser until it disconnects."""
    changes: asyncio.Queue[dict[str, str]] = asyncio.Queue(maxsize=1)

    async def report(kind: str, obj: KubeObject | DeletedFinalStateUnknown[KubeObject]) -> None:
        await changes.put({"type": kind, "key": obj.key})

    async def send() -> None:
        while True:
            await websocket.send_json(await changes.get())

    handler: ResourceEventHandlerFuncs[KubeObject] = ResourceEventHandlerFuncs(
        on_add=lambda obj, is_in_initial_list: report("ADDED", obj),
        on_update=lambda old, new: report("MODIFIED", new),
        on_delete=lambda obj: report("DELETED", obj),
    )
    await websocket.accept()
    registration = informer.add_event_handler(handler, backlog="coalesce")
    try:
        async with asyncio.TaskGroup() as group:
            sending = group.create_task(send())
            while (await websocket.receive())["type"] != "websocket.disconnect":
                pass  # without a pending receive, a disconnect is only noticed at the next send
            sending.cancel()
    except* WebSocketDisconnect:
        pass  # it disconnected during a send
    finally:
        await informer.shut_down_event_handler(registration, cancel=True)


async def main() -> None:
    """Let a browser connect, read three objects, and go."""
    browser: asyncio.Queue[Message] = asyncio.Queue()  # what the browser sends
    received: list[str] = []

    async def sent(message: Message) -> None:
        if text := message.get("text"):
            print(text)
            received.append(text)
            if len(received) == 3:
                browser.put_nowait({"type": "websocket.disconnect", "code": 1001})

    async with APIServer() as server, Client.from_url(server.url) as client:
        for name in ("a", "b", "c"):
            server.create("v1", "configmaps", {"metadata": {"name": name}})
        async with SharedInformerFactory(client) as factory:
            configmaps = factory.for_resource("v1", "configmaps", namespace="default")
            await factory.wait_for_cache_sync(timeout=30)
            browser.put_nowait({"type": "websocket.connect"})
            await follow(WebSocket({"type": "websocket"}, browser.get, sent), configmaps)
            print("handlers:", len(configmaps.state.handlers))


if __name__ == "__main__":
    asyncio.run(main())
