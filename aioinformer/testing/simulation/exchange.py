"""One request as the embedded server's handler sees it: aiohttp's request and response, over no socket."""

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


class Wire(Protocol):
    """Where an answer goes."""

    def send_head(self, status: int, headers: Mapping[str, str]) -> None: ...

    def send(self, data: bytes) -> None: ...

    async def drain(self) -> None: ...

    def send_end(self) -> None: ...

    def hang_up(self) -> None:
        """End the connection after what was sent, but without an end of the body."""

    def reset(self) -> None:
        """End the connection at once."""


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


async def answer(handler: Answer, wire: Wire, asked: Asked) -> None:
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
    protocol, body = cast("Any", _Protocol(wire)), cast("Any", _Body(asked.body))
    http = web.BaseRequest(message, body, protocol, _Writer(wire), task, asyncio.get_running_loop())
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

    def __init__(self, wire: Wire) -> None:
        self.transport = _Transport(wire)


class _Transport:
    """What the handler uses of a connection's transport."""

    def __init__(self, wire: Wire) -> None:
        self.close = wire.hang_up
        self.abort = wire.reset


class _Writer(AbstractStreamWriter):
    """Takes an answer and puts it on the wire. Length and chunking are not its business: nothing is framed."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def write_headers(self, status_line: str, headers: CIMultiDict[str]) -> None:
        self._wire.send_head(int(status_line.split(" ", 2)[1]), headers)
        await self._wire.drain()

    async def write(self, chunk: bytes | bytearray | memoryview) -> None:
        self._wire.send(bytes(chunk))
        await self._wire.drain()

    async def write_eof(self, chunk: bytes = b"") -> None:
        if chunk:
            self._wire.send(chunk)
        self._wire.send_end()

    async def drain(self) -> None:
        """Nothing is buffered here."""

    def enable_compression(self, encoding: str = "deflate", strategy: int | None = None) -> None:
        raise NotImplementedError("the embedded server does not compress")

    def enable_chunking(self) -> None:
        """Chunks need no frame here."""
