"""Lower bounds: the fastest handwritten loop, reading the bytes only, and an idle loop."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson

from .peer import Handler, Options, Peer
from .tally import Tally

HEADER_LINES = 4
TAIL = 5
LINES = 3
"""The lines of one event: its own, and those of its HTTP chunk."""

IDLE = 3.0
"""Seconds for which an idle event loop is measured."""


class Orjson(Peer):
    """aiohttp's lines, decoded by orjson; it keeps the newest dict of each pod."""

    version = f"aiohttp {aiohttp.__version__}, orjson {orjson.__version__}"
    shape = "dict"

    def __init__(self, options: Options, handlers: list[Handler]) -> None:
        super().__init__(options, handlers)
        self.require(encoding="json", initial="list", informers=1)
        self._pods: dict[tuple[str, str], Any] = {}

    async def open(self) -> None:
        context = ssl.create_default_context(cafile=self.options.ca) if self.options.ca else None
        connector = aiohttp.TCPConnector(ssl=context if context is not None else True)
        self._session = aiohttp.ClientSession(read_bufsize=2**21, connector=connector)
        self._url = f"{self.options.server}/api/v1/pods"
        async with self._session.get(f"{self.options.server}/version") as response:
            await response.read()

    async def sync(self) -> None:
        token = ""
        while True:
            params = {"limit": "500", "continue": token} if token else {"limit": "500"}
            async with self._session.get(self._url, params=params) as response:
                page = orjson.loads(await response.read())
            for pod in page["items"]:
                self._keep(pod)
            token = page["metadata"].get("continue", "")
            if not token:
                break
        self.spawn(self._follow(page["metadata"]["resourceVersion"]))

    async def _follow(self, resource_version: str) -> None:
        params = {"watch": "true", "resourceVersion": resource_version}
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._session.get(self._url, params=params, timeout=timeout) as response:
            async for line in response.content:
                event = orjson.loads(line)
                if event["type"] in ("ADDED", "MODIFIED"):
                    self._keep(event["object"])

    def _keep(self, pod: Any) -> None:
        metadata = pod["metadata"]
        self._pods[metadata["namespace"], metadata["name"]] = pod
        self.notify(pod)

    async def close(self) -> None:
        await self._session.close()


class OrjsonDropped(Orjson):
    """The same without a cache: the cost of decoding only."""

    def _keep(self, pod: Any) -> None:
        self.notify(pod)


def lines_in(data: bytes | bytearray, end: int) -> int:
    """Count the lines up to ``end``. It uses find (memchr), as count() is five times slower in some Pythons."""
    lines, at = 0, data.find(b"\n", 0, end)
    while at >= 0:
        lines += 1
        at = data.find(b"\n", at + 1, end)
    return lines


class Floor(asyncio.BufferedProtocol, Peer):
    """Reads the bytes from the socket and scans them once: no client can cost less. Its handlers read nothing."""

    version = "the floor"
    shape = "dict"
    BUFFER = 2**18

    def __init__(self, options: Options, tally: Tally) -> None:
        Peer.__init__(self, options, [])
        self.require(encoding="json", informers=1)
        self._tally = tally
        self._buffer = bytearray(self.BUFFER)
        self._view = memoryview(self._buffer)
        self._lines = 0
        self._ended: asyncio.Future[None] | None = None

    async def open(self) -> None:
        context = ssl.create_default_context(cafile=self.options.ca) if self.options.ca else None
        url = urlsplit(self.options.server)
        assert url.hostname is not None
        assert url.port is not None
        self._transport, _ = await asyncio.get_running_loop().create_connection(
            lambda: self, url.hostname, url.port, ssl=context
        )
        await self._request("/version", b"}")

    async def sync(self) -> None:
        options = self.options
        if options.initial == "list":
            await self._request("/api/v1/pods", b"0\r\n\r\n")
            self._tally.count(options.objects * options.handlers)
            self._watch("?watch=true")
        else:
            self._watch("?watch=true&sendInitialEvents=true&allowWatchBookmarks=true")

    async def _request(self, path: str, end: bytes) -> None:
        """Send a request, and read the response up to these final bytes."""
        self._ended, self._end, self._tail = asyncio.get_running_loop().create_future(), end, b""
        self._transport.write(self._request_bytes(path))
        await self._ended
        self._ended = None

    def _watch(self, query: str) -> None:
        self._lines = -HEADER_LINES - (LINES if "sendInitialEvents" in query else 0)  # the bookmark
        self._transport.write(self._request_bytes(f"/api/v1/pods{query}"))

    def _request_bytes(self, path: str) -> bytes:
        return f"GET {path} HTTP/1.1\r\nHost: kube-apiserver\r\n\r\n".encode()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._view

    def buffer_updated(self, nbytes: int) -> None:
        lines = lines_in(self._buffer, nbytes)
        if self._ended is not None:
            self._tail = (self._tail + self._buffer[max(0, nbytes - TAIL) : nbytes])[-TAIL:]
            if self._tail.endswith(self._end) and not self._ended.done():
                self._ended.set_result(None)
            return
        before = max(0, self._lines // LINES)
        self._lines += lines
        if events := max(0, self._lines // LINES) - before:
            self._tally.count(events * self.options.handlers)


class Idle(Peer):
    """Does nothing: the lag of its event loop is that of the machine."""

    version = "an idle loop"
    shape = "dict"

    def __init__(self, options: Options, tally: Tally) -> None:
        super().__init__(options, [])
        self._tally = tally

    async def open(self) -> None:
        """Do nothing."""

    async def sync(self) -> None:
        await asyncio.sleep(IDLE)
        self._tally.count(self.options.objects * self.options.handlers)
