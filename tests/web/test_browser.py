"""A browser's EventSource that loses its connection a hundred times sees every final state: ``make browser``."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse
from starlette.routing import Route

from aioinformer import Client
from aioinformer.testing import APIServer
from aioinformer.web import ChangeStream, WebInformers

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
LOSSES = 100

PAGE = """<!doctype html>
<script>
const objects = new Map();
let resets = 0, connections = 0, events = 0;
const source = new EventSource("/events?fieldSelector=data.team%3Dred");
source.onopen = () => connections++;
source.onmessage = (message) => {
  const event = JSON.parse(message.data);
  if (event.type === "RESET") { objects.clear(); resets++; }
  else if (event.type === "DELETED") objects.delete(event.key);
  else if (event.type !== "SYNCED") objects.set(event.key, event.object);
  events++;
  report();
};
function report() {
  const body = JSON.stringify({events, resets, connections, objects: Object.fromEntries(objects)});
  fetch("/seen", {method: "POST", body}).catch(() => setTimeout(report, 20));  // its connection is cut, too
}
</script>
"""


class Seen(msgspec.Struct):
    """What the page has."""

    events: int
    resets: int
    connections: int
    objects: dict[str, str]


class Page:
    """The service, and what the browser reported last."""

    def __init__(self, server: APIServer) -> None:
        informers = WebInformers(lambda: Client.from_url(server.url))
        maps = informers.for_resource("v1", "configmaps", history=1000)
        self.app = FastAPI(lifespan=informers.lifespan)
        self.seen = Seen(0, 0, 0, {})
        self.changed = asyncio.Event()
        stream = ChangeStream(maps, render=lambda obj: obj.resource_version, keep_alive=1, retry=0.02)
        self.app.router.routes.append(Route("/events", stream))

        @self.app.get("/")
        async def page() -> HTMLResponse:
            return HTMLResponse(PAGE)

        @self.app.post("/seen")
        async def report(request: Request) -> None:
            seen = msgspec.json.decode(await request.body(), type=Seen)
            if seen.events >= self.seen.events:  # reports overtake each other
                self.seen = seen
            self.changed.set()

    async def wait_for(self, objects: dict[str, str]) -> None:
        """Wait until the browser has exactly these objects."""
        try:
            async with asyncio.timeout(60):
                while self.seen.objects != objects:
                    self.changed.clear()
                    await self.changed.wait()
        except TimeoutError:
            raise AssertionError(f"the browser has {self.seen}, not {objects}") from None


class Proxy:
    """A TCP proxy whose connections can be cut."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._writers: set[asyncio.StreamWriter] = set()

    def cut(self) -> None:
        """Reset all connections."""
        for writer in self._writers:
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self.port)
            both = {writer, there_writer}
            self._writers |= both
            await asyncio.gather(self._pipe(reader, there_writer), self._pipe(there_reader, writer))
            self._writers -= both

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(2**16):
                writer.write(data)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def served(app: FastAPI) -> AsyncIterator[int]:
    """Serve an application; its port."""
    listening = socket.create_server(("127.0.0.1", 0))
    service = uvicorn.Server(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1))
    task = asyncio.create_task(service.serve([listening]))
    try:
        yield listening.getsockname()[1]
    finally:
        service.should_exit = True
        await task


@asynccontextmanager
async def chromium(url: str, profile: Path) -> AsyncIterator[None]:
    """Show a page in a browser without a window."""
    assert CHROMIUM is not None
    options = ["--headless=new", "--disable-gpu", "--no-first-run", f"--user-data-dir={profile}"]
    if os.getuid() == 0:
        options.append("--no-sandbox")
    program = await asyncio.create_subprocess_exec(
        CHROMIUM, *options, url, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        yield
    finally:
        program.terminate()
        await program.wait()


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: apt-get install chromium, then make browser")
@pytest.mark.timeout(600)
async def test_browser_that_loses_its_connection_a_hundred_times_sees_every_final_state(
    tmp_path: Path,
) -> None:
    random = Random(1)
    async with APIServer() as server:
        server.create("v1", "configmaps", {"metadata": {"name": "round"}, "data": {"team": "red"}})
        page = Page(server)
        async with AsyncExitStack() as stack:
            proxy = Proxy(await stack.enter_async_context(served(page.app)))
            listening = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
            address = listening.sockets[0].getsockname()[1]
            await stack.enter_async_context(listening)
            await stack.enter_async_context(chromium(f"http://127.0.0.1:{address}/", tmp_path))
            await page.wait_for(red_objects(server))
            for number in range(LOSSES):
                proxy.cut()
                change(server, random, number)
                await page.wait_for(red_objects(server))
            assert page.seen.connections > LOSSES
            assert page.seen.resets == 1, "every reconnect resumed"
            another = Page(server)  # as after a restart, or on another replica
            proxy.port = await stack.enter_async_context(served(another.app))
            proxy.cut()
            change(server, random, LOSSES)
            await another.wait_for(red_objects(server))
            assert another.seen.resets == 2
            proxy.cut()


def change(server: APIServer, random: Random, number: int) -> None:
    """Change some objects: some appear, some disappear, some move to the other team. One tells the round."""
    for _ in range(random.randrange(1, 20)):
        name = f"map-{random.randrange(30)}"
        data = {"data": {"team": random.choice(("red", "blue")), "number": str(number)}}
        if name not in {obj["metadata"]["name"] for obj in server.list("v1", "configmaps")}:
            server.create("v1", "configmaps", {"metadata": {"name": name}, **data})
        elif random.random() < 0.3:
            server.delete("v1", "configmaps", name)
        else:
            server.patch("v1", "configmaps", name, data)
    server.patch("v1", "configmaps", "round", {"data": {"number": str(number)}})


def red_objects(server: APIServer) -> dict[str, str]:
    objects: list[Any] = server.list("v1", "configmaps")
    return {
        f"default/{obj['metadata']['name']}": obj["metadata"]["resourceVersion"]
        for obj in objects
        if obj["data"]["team"] == "red"
    }
