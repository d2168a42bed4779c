"""The connections of an aiohttp connector, which says less than it knows of those that are of no use any more."""

from __future__ import annotations

import asyncio
import select
from functools import partial
from typing import TYPE_CHECKING, Any

from aiohttp import TCPConnector
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_exceptions import HttpProcessingError

from .chunks import Chunks

if TYPE_CHECKING:
    from aiohttp.http_parser import RawResponseMessage
    from aiohttp.streams import StreamReader


class Connector(TCPConnector):
    """Makes its connections of the class below: for that aiohttp has no public way."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        connection: type[ResponseHandler] = _Connection
        self._factory = partial(connection, asyncio.get_running_loop())


class _Connection(ResponseHandler):
    """A connection to the server.

    An API server writes a chunk for each event of a watch, and two for each item of a list, for each of which aiohttp's
    parser calls three functions of Python's. Plain chunks are taken apart here, all of a read at once; the parser has
    the header, the end, and whatever is not plain.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._awaits_header = False
        self._is_chunked = False
        self._chunks: Chunks | None = None

    def set_response_params(self, **params: Any) -> None:
        """A request is being sent."""
        self._awaits_header, self._is_chunked, self._chunks = True, False, None
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        """Something has come; nothing, where the parser is to go on after a pause."""
        if self._awaits_header and data:
            self._awaits_header = False
            end = data.find(b"\r\n\r\n") + 4
            if end >= 4 and data.count(b"\n", 0, end) == data.count(b"\r\n", 0, end):
                super().data_received(data[:end])
                if self._is_chunked and self._payload is not None:
                    self._payload.begin_http_chunk_receiving()
                    self._chunks = Chunks()
                data = data[end:]
                if not data or self.exception() is not None:
                    return
        if self._chunks is not None and data:
            if self._payload is None:  # closed, and read no more
                return
            self.start_timeout()
            ready, rest = self._chunks.feed(bytes(data))
            self._payload.feed_data(ready)
            if rest is None:
                return
            self._chunks, data = None, rest
        super().data_received(data)

    def resume_reading(self, *args: Any, **options: Any) -> None:
        """Its buffer has room: at each read, paused or not. The parser, which goes on then, has nothing of chunks."""
        if self._chunks is None or self._reading_paused:
            super().resume_reading(*args, **options)

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        """The header has been read."""
        message, body = data
        self._is_chunked = message.chunked and not message.compression and not body.is_eof()
        super().feed_data(data, size)

    def set_exception(self, exc: BaseException, *cause: Any, **named: Any) -> None:
        """It has failed. aiohttp closes it where its parser gives up within a body, and lets the reader wait."""
        super().set_exception(exc, *cause, **named)
        body = self._payload
        is_damaged = isinstance(exc, HttpProcessingError)  # and no request's body that could not be written
        if is_damaged and body is not None and not body.is_eof() and body.exception() is None:
            body.set_exception(exc, *cause, **named)

    def is_connected(self) -> bool:
        """Whether the pool may reuse it: not after bytes that no request asked for, read or unread, as by net/http."""
        return super().is_connected() and not self.should_close and not _is_readable(self.transport)


def _is_readable(transport: asyncio.BaseTransport | None) -> bool:
    """Whether the socket has unread bytes, or has ended: while it is blocked, the event loop does not see that."""
    sock = None if transport is None else transport.get_extra_info("socket")
    if sock is None:
        return False
    if not hasattr(select, "poll"):  # Windows
        return bool(select.select([sock], [], [], 0)[0])
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))
