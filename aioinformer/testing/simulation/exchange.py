"""One request as the embedded server's handler sees it: aiohttp's request and response, over no socket."""

from __future__ import annotations

import asyncio
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import HttpVersion11, RawRequestMessage
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from aioinformer.testing.simulation.connection import Connection

    Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Asked(NamedTuple):
    """A request.

    Args:
        path: From the root of the server.
        query: Names and values.
        headers: Likewise.
        method: Of HTTP.
        body: What is sent.
    """

    path: str
    query: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] = MappingProxyType({})
    method: str = "GET"
    body: bytes = b""

    def __str__(self) -> str:
        text = "&".join(f"{key}={value}" for key, value in self.query)
        asked = f"{self.method} {self.path}?{text}" if text else f"{self.method} {self.path}"
        return f"{asked} {self.body.decode(errors='replace')}" if self.body else asked


async def answer(handler: Answer, connection: Connection, asked: Asked) -> None:
    """Let the server answer a request."""
    given = CIMultiDictProxy(CIMultiDict(asked.headers))
    message = RawRequestMessage(
        method=asked.method,
        path=asked.path,
        version=HttpVersion11,
        headers=given,
        raw_headers=(),
        should_close=False,
        compression=None,
        upgrade=False,
        chunked=False,
        url=URL.build(path=asked.path, query=list(asked.query)),
    )
    task = asyncio.current_task()
    assert task is not None
    protocol, body = cast("Any", _Protocol(connection)), cast("Any", _Body(asked.body))
    http = web.BaseRequest(message, body, protocol, _Writer(connection), task, asyncio.get_running_loop())
    response = await handler(http)
    await response.prepare(http)
    await response.write_eof()


class _Body:
    """What the handler uses of a request's body, which is all there."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def iter_any(self) -> AsyncIterator[bytes]:
        yield self._body


class _Protocol:
    """What a request asks about its connection."""

    ssl_context = None
    peername = ("127.0.0.1", 0)
    sockname = ("127.0.0.1", 0)

    def __init__(self, connection: Connection) -> None:
        self.transport = _Transport(connection)


class _Transport:
    """What the handler uses of a connection's transport."""

    def __init__(self, connection: Connection) -> None:
        self.close = connection.hang_up
        self.abort = connection.reset


class _Writer(AbstractStreamWriter):
    """Takes an answer and puts it on the connection. Length and chunking are not its business: nothing is framed."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def write_headers(self, status_line: str, headers: CIMultiDict[str]) -> None:
        self._connection.send_head(int(status_line.split(" ", 2)[1]), headers)
        await self._connection.drain()

    async def write(self, chunk: bytes | bytearray | memoryview) -> None:
        self._connection.send(bytes(chunk))
        await self._connection.drain()

    async def write_eof(self, chunk: bytes = b"") -> None:
        if chunk:
            self._connection.send(chunk)
        self._connection.send_end()

    async def drain(self) -> None:
        """Nothing is buffered here."""

    def enable_compression(self, encoding: str = "deflate", strategy: int | None = None) -> None:
        raise NotImplementedError("the embedded server does not compress")

    def enable_chunking(self) -> None:
        """Chunks need no frame here."""
