"""A gate between a client and its server; closed, it disconnects this client only."""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from tests.kubernetes.process import free_ports

CHUNK = 256 * 1024


class ClosableProxy:
    """Forwards bytes to a server, including TLS. An async context manager.

    Args:
        url: The server.
    """

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        (self._port,) = free_ports(1)
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        """The URL for the client."""
        return f"{self._parts.scheme}://127.0.0.1:{self._port}"

    async def open(self) -> None:
        """Accept connections."""
        self._server = await asyncio.start_server(self._enter, "127.0.0.1", self._port)

    async def shut(self) -> None:
        """Reset every connection and refuse new ones."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in self._writers:
            writer.transport.abort()
        if self._connections:  # not cancelled: what asyncio has begun for a connection must not end so
            await asyncio.wait(self._connections)

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.shut()

    async def _enter(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        writers = {writer}
        self._writers |= writers
        try:
            there, back = await asyncio.open_connection(self._parts.hostname, self._parts.port)
            writers.add(back)
            self._writers.add(back)
            if self._server is not None:  # it may have been shut meanwhile
                await asyncio.gather(_pass(reader, back), _pass(there, writer))
        except OSError:
            pass
        finally:
            for open_writer in writers:
                open_writer.transport.abort()
            for open_writer in writers:
                with contextlib.suppress(OSError, asyncio.CancelledError):  # cut once more
                    await open_writer.wait_closed()
            self._writers -= writers
            self._connections.discard(task)


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(CHUNK):
        writer.write(chunk)
        await writer.drain()
    raise ConnectionResetError("one side has hung up")
