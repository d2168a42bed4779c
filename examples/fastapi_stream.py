"""An event stream of a FastAPI app that ends when uvicorn is asked to stop.

    python examples/fastapi_stream.py
    python examples/fastapi_stream.py http://127.0.0.1:8001 8080

uvicorn waits for its responses to end, and tells none of them. So the app stops its informers at the signal: then their
events end, and with them the streams. The first command plays the API server, a browser and the signal.
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import FrameType
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse

from aioinformer import Client, InformerEvents, SharedInformerFactory
from aioinformer.testing import APIServer

MOST_UNREAD = 1000
"""Events that a browser may leave unread before its stream ends. It connects again, and gets the cached objects."""


@contextmanager
def calling_at_stop(call: Callable[[], object]) -> Iterator[None]:
    """Call a function in the event loop when a signal asks the process to stop, before uvicorn's handler."""
    if threading.current_thread() is not threading.main_thread():  # as in tests, which get no signals
        yield
        return
    loop = asyncio.get_running_loop()
    before: dict[int, Any] = {}

    def stop(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(call)
        if callable(before[number]):
            before[number](number, frame)

    for stop_signal in (signal.SIGINT, signal.SIGTERM):
        before[stop_signal] = signal.signal(stop_signal, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def create_app(url: str) -> FastAPI:
    """Return the app for a cluster."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        stopping: list[asyncio.Task[None]] = []
        async with Client.from_url(url) as client, SharedInformerFactory(client) as factory:
            app.state.configmaps = factory.for_resource("v1", "configmaps")
            with calling_at_stop(lambda: stopping.append(asyncio.create_task(factory.shutdown()))):
                yield
            await asyncio.gather(*stopping)

    app = FastAPI(lifespan=lifespan)

    async def lines() -> AsyncIterator[str]:
        async with InformerEvents(app.state.configmaps) as events:
            async for event in events:
                yield json.dumps({"type": event.type, "key": event.object.key}) + "\n"
                if len(events) > MOST_UNREAD:
                    return

    @app.get("/configmaps")
    async def stream() -> StreamingResponse:
        return StreamingResponse(lines(), media_type="application/jsonl")

    return app


async def main() -> None:
    """Read a stream, and stop uvicorn meanwhile."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with APIServer() as server:
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        program = await asyncio.create_subprocess_exec(
            sys.executable, __file__, server.url, str(port), stderr=asyncio.subprocess.PIPE
        )
        transport = httpx.AsyncHTTPTransport(retries=10)  # until uvicorn listens
        async with (
            httpx.AsyncClient(transport=transport, timeout=60) as http,
            http.stream("GET", f"http://127.0.0.1:{port}/configmaps") as answer,
        ):
            async for line in answer.aiter_lines():
                print(line)
                program.send_signal(signal.SIGTERM)
        print("the stream has ended")
        _, log = await program.communicate()
        print("uvicorn has ended", "with an error" if b"Traceback" in log else "without an error")


if __name__ == "__main__":
    if sys.argv[1:]:
        uvicorn.run(create_app(sys.argv[1]), port=int(sys.argv[2]))
    else:
        asyncio.run(main())
