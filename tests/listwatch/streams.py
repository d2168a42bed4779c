"""Byte streams and servers that say what a test wants."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, Self

from aiohttp import web

from aioinformer._core.http_server import HTTPServer

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Chunks:
    """A ByteStream of these chunks; an exception among them is raised."""

    def __init__(self, chunks: Iterable[bytes | Exception]) -> None:
        self._chunks = iter(chunks)
        self.closed = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = next(self._chunks)
        except StopIteration:
            raise StopAsyncIteration from None
        if isinstance(chunk, Exception):
            raise chunk
        return chunk

    async def aclose(self) -> None:
        self.closed += 1


class FakeServer:
    """An HTTP server whose handler is the test's."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.requests: list[web.BaseRequest] = []
        self.url = ""

    async def __call__(self, request: Any) -> web.StreamResponse:
        self.requests.append(request)
        return await self.handler(request)

    @property
    def tokens(self) -> list[str]:
        """What the requests said in Authorization."""
        return [request.headers.get("Authorization", "") for request in self.requests]


@asynccontextmanager
async def serve(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[FakeServer]:
    """A FakeServer on a free port of the loopback interface."""
    fake = FakeServer(handler)
    server = HTTPServer(fake, handler_cancellation=True)
    listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0, ssl=tls, backlog=1000)
    port = listener.sockets[0].getsockname()[1]
    fake.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    try:
        yield fake
    finally:
        listener.close()
        await server.shutdown(0.01)  # 0 would wait without a limit


def json_of(text: str | bytes, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """An answer of JSON."""
    body = text.encode() if isinstance(text, str) else text
    return web.Response(body=body, status=status, headers=headers, content_type="application/json")


async def begin(request: web.Request) -> web.StreamResponse:
    """A streamed answer whose head is sent."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    return response


POD_LIST = (
    '{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},'
    '"items":[{"metadata":{"name":"a","namespace":"default"}}]}'
)
EVENT = b'{"type":"ADDED","object":{"kind":"Pod","metadata":{"name":"a"}}}\n'
