"""A request as the embedded server's handler sees it: aiohttp's request and response without a socket."""

from __future__ import annotations

import asyncio
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import HttpVersion11, RawRequestMessage
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class ClientRequest(NamedTuple):
    """A client's HTTP request.

    Args:
        path: The path, from the server's root.
        query: Names and values of the query.
        headers: Names and values of the headers.
        method: The HTTP method.
        body: The body.
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


class ServerEnd(Protocol):
    """The server's end of a connection, to which an answer is written."""

    def send_head(self, status: int, headers: Mapping[str, str]) -> None:
        """Send status and headers."""

    def send(self, data: bytes) -> None:
        """Send a part of the body."""

    def send_end(self) -> None:
        """Send the end of the body."""

    async def drain(self) -> None:
        """Wait until the server may write more."""

    def hang_up(self) -> None:
        """Break off the answer after the data sent so far."""

    def reset(self) -> None:
        """Reset the connection; data in flight is lost."""


async def answer(handler: Answer, connection: ServerEnd, asked: ClientRequest) -> None:
    """Call the server's handler with a request and send its answer."""
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
    """The part of a request's body that the handler uses; all of it is present."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    async def iter_any(self) -> AsyncIterator[bytes]:
        yield self._body


class _Protocol:
    """The part of the connection's protocol that a request uses."""

    ssl_context = None
    peername = ("127.0.0.1", 0)
    sockname = ("127.0.0.1", 0)

    def __init__(self, connection: ServerEnd) -> None:
        self.transport = _Transport(connection)


class _Transport:
    """The part of a connection's transport that the handler uses."""

    def __init__(self, connection: ServerEnd) -> None:
        self.close = connection.hang_up
        self.abort = connection.reset


class _Writer(AbstractStreamWriter):
    """Writes an answer to the connection, without framing: no length and no chunks."""

    def __init__(self, connection: ServerEnd) -> None:
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
        """Do nothing: there is no buffer."""

    def enable_compression(self, encoding: str = "deflate", strategy: int | None = None) -> None:
        raise NotImplementedError("the embedded server does not compress")

    def enable_chunking(self) -> None:
        """Do nothing: chunks are not framed."""
