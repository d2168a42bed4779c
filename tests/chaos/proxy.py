"""A TCP proxy between a client and its server that loses, delays and corrupts bytes. It does not decrypt TLS."""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from aioinformer._core.tasks import finish
from tests.kubernetes.process import free_ports

CHUNK = 64 * 1024


class Proxy:
    """A proxy that forwards bytes to a server. An async context manager.

    Args:
        url: The server.

    Attributes:
        target: The server of new connections.
        delay: Seconds by which every chunk is delayed.
        connections: Connections that were accepted.
        received: Bytes that were forwarded to clients.
        is_refusing: Whether new connections are reset at once.
    """

    def __init__(self, url: str) -> None:
        self.target = url
        (self._port,) = free_ports(1)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._spoiling: dict[asyncio.Task[None], bool] = {}
        self.delay = 0.0
        self.connections = self.received = 0
        self.is_refusing = False
        self._stuck: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """The URL for the client."""
        return f"{urlsplit(self.target).scheme}://127.0.0.1:{self._port}"

    def freeze(self) -> None:
        """Stop forwarding in both directions, without closing a connection."""
        self._flowing.clear()

    def thaw(self) -> None:
        """Forward what was held back, and everything after it."""
        self._flowing.set()

    def lose(self) -> None:
        """Forward nothing more on the open connections, as if the network had lost them; accept new ones."""
        self._stuck.update(self._tasks)

    async def cut(self) -> None:
        """Reset every connection; accept new ones."""
        await finish(*self._tasks)

    def cut_in_the_middle(self) -> None:
        """Forward half of the server's next chunk on each connection, then close it."""
        self._spoiling.update(dict.fromkeys(self._tasks, False))

    def corrupt(self) -> None:
        """Flip a bit in the server's next chunk on each connection."""
        self._spoiling.update(dict.fromkeys(self._tasks, True))

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._enter, "127.0.0.1", self._port)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        await self.cut()

    async def _enter(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if self.is_refusing:
            writer.transport.abort()
            return
        self._tasks.add(task)
        self.connections += 1
        target = urlsplit(self.target)
        writers = [writer]
        try:
            there, back = await asyncio.open_connection(target.hostname, target.port)
            writers.append(back)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass(reader, back, task, is_answer=False))
                group.create_task(self._pass(there, writer, task, is_answer=True))
        except* (OSError, asyncio.CancelledError):
            pass  # a cancelled connection was cut
        finally:
            self._tasks.discard(task)
            self._stuck.discard(task)
            self._spoiling.pop(task, None)
            for open_writer in writers:
                open_writer.transport.abort()
            for open_writer in writers:
                with contextlib.suppress(OSError, asyncio.CancelledError):
                    await open_writer.wait_closed()

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        connection: asyncio.Task[None],
        *,
        is_answer: bool,
    ) -> None:
        """Forward one direction until its end; corrupt answers on request."""
        while chunk := await reader.read(CHUNK):
            await self._flowing.wait()
            if connection in self._stuck:
                continue
            if self.delay:
                await asyncio.sleep(self.delay)
            if is_answer and connection in self._spoiling:
                if self._spoiling.pop(connection):
                    chunk = _with_a_bit_turned(chunk)
                else:
                    writer.write(chunk[: len(chunk) // 2])
                    await writer.drain()
                    break
            writer.write(chunk)
            self.received += len(chunk) if is_answer else 0
            await writer.drain()
        await self._flowing.wait()
        raise ConnectionResetError("one side has hung up")


def _with_a_bit_turned(chunk: bytes) -> bytes:
    middle = len(chunk) // 2
    return chunk[:middle] + bytes([chunk[middle] ^ 1]) + chunk[middle + 1 :]
