"""One request as the embedded server's handler sees it: aiohttp's request and response, over no socket."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol, cast

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import HttpVersion11, RawRequestMessage
from aiohttp.streams import EMPTY_PAYLOAD
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

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


async def answer(
    handler: Answer, wire: Wire, path: str, query: Sequence[tuple[str, str]], headers: Mapping[str, str]
) -> None:
    """Let the server answer a GET."""
    given = CIMultiDictProxy(CIMultiDict(headers))
    message = RawRequestMessage(
        method="GET",
        path=path,
        version=HttpVersion11,
        headers=given,
        raw_headers=(),
        should_close=False,
        compression=None,
        upgrade=False,
        chunked=False,
        url=URL.build(path=path, query=list(query)),
    )
    task = asyncio.current_task()
    assert task is not None
    protocol = cast("Any", _Protocol(wire))
    http = web.BaseRequest(message, EMPTY_PAYLOAD, protocol, _Writer(wire), task, asyncio.get_running_loop())
    response = await handler(http)
    await response.prepare(http)
    await response.write_eof()


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
