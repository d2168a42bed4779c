"""An HTTP server for strangers: limits of connections, of time, and of bytes."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, Self

import anyio
from aiohttp import StreamReader, web

from .failure_log import FailureLog
from .http_server import HTTPServer
from .listening import bind, most_connections
from .request_log import RequestLog
from .tasks import finish

logger = logging.getLogger(__name__)

HANDSHAKE = 10.0
"""Seconds for a TLS handshake."""
HEADERS = 10.0
"""Seconds until a new connection has sent the headers of a request."""
BODY = 30.0
"""Seconds for the body of a request, and for the client to read an answer."""
IDLE = 120.0
"""Seconds that a connection may wait for its next request; Go's clients close it after 90."""

Body = AsyncIterator[bytes]
Handle = Callable[[web.BaseRequest, Body], Awaitable[web.Response]]


class _Connection:
    """A connection, from its acceptance to its end.

    Attributes:
        sock: Its socket.
        transport: Its transport, after the TLS handshake.
        deadline: When it is closed, unless its client does what it waits for.
        timer: Looks at the deadline.
        held: Bytes of its request and its answer.
    """

    __slots__ = ("deadline", "held", "sock", "timer", "transport")

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.transport: asyncio.Transport | None = None
        self.deadline = 0.0
        self.timer: asyncio.TimerHandle | None = None
        self.held = 0

    def abort(self) -> None:
        """Close it now."""
        if self.transport is not None:
            self.transport.abort()
        else:
            with suppress(OSError):  # the other end may be gone
                self.sock.shutdown(socket.SHUT_RDWR)  # the handshake fails


class BoundedServer(HTTPServer):
    """A server whose clients cannot use up the process.

    A connection waits for its client for a limited time only. At the limit of connections, a new one takes the place of
    the one that has waited longest for its client, so silent clients do not keep others out. At the limit of bytes, the
    largest body that is still being read gives way.

    Args:
        handle: Answers a request. Its body may be read once.
        name: What logs call it.
        connections: How many connections it has at most; half of the process's file descriptors if that is less.
        most_bytes: Bytes of all requests and answers that it holds at most.
    """

    def __init__(self, handle: Handle, *, name: str, connections: int, most_bytes: int) -> None:
        super().__init__(
            self._handle,
            access_log=None,
            auto_decompress=False,
            keepalive_timeout=IDLE,
            lingering_time=1.0,
            logger=RequestLog(name, logger),
        )
        self._answer = handle
        self._connections_limit = connections
        self._most_bytes = most_bytes
        self._held = 0
        self._open: set[_Connection] = set()
        self._waiting: dict[_Connection, None] = {}
        """Connections that wait for their clients; the one that has waited longest first."""
        self._by_handler: dict[web.RequestHandler, _Connection] = {}
        self._sockets: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._log = FailureLog(name, logger)
        self._name = name

    # -- listening -----------------------------------------------------------------------------------------

    async def listen(
        self,
        host: str | None,
        port: int,
        options: str,
        *,
        note: str = "",
        tls: Callable[[], ssl.SSLContext] | None = None,
    ) -> int:
        """Start to listen, and return the port.

        Args:
            host: The address; None for all.
            port: The port; 0 for any free one.
            options: The options that set the port, for the message.
            note: What to add to them, for the message.
            tls: Returns the TLS context of each new connection; None for plain HTTP.

        Raises:
            ConfigError: The port is in use, or the system refuses it.
        """
        self._sockets = await bind(host, port, options, note=note)
        for sock in self._sockets:
            self._start(self._accept(sock, tls))
        port_bound: int = self._sockets[0].getsockname()[1]
        return port_bound

    async def close(self, timeout: float) -> None:
        """Stop to listen, let requests end for a time, and close all connections."""
        self.has_ended = True
        await finish(*self._tasks)
        for sock in self._sockets:
            sock.close()
        for connection in [*self._open]:
            if connection.transport is None:
                connection.sock.close()
                self._forget(connection)
        self.pre_shutdown()
        await self.shutdown(timeout)
        for connection in [*self._open]:
            connection.abort()  # a normal TLS close would wait for the client
        with anyio.move_on_after(1.0):
            while self._open:  # noqa: ASYNC110 -- the loop closes their sockets in the next iterations
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.01)

    def _start(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, listening: socket.socket, tls: Callable[[], ssl.SSLContext] | None) -> None:
        while True:
            try:
                sock = await _accept(listening)
            except OSError as error:  # such as no file descriptors
                self._log.log(error, "%s: a connection cannot be accepted: %s", self._name, error)
                self._make_room()
                await asyncio.sleep(0.05)
                continue
            if len(self._open) >= most_connections(self._connections_limit) and not self._make_room():
                sock.close()
                continue
            sock.setblocking(False)
            connection = _Connection(sock)
            self._open.add(connection)
            self._wait(connection, HANDSHAKE)
            self._start(self._connect(connection, tls() if tls is not None else None))

    async def _connect(self, connection: _Connection, context: ssl.SSLContext | None) -> None:
        limits = {} if context is None else {"ssl_handshake_timeout": HANDSHAKE, "ssl_shutdown_timeout": 1.0}
        try:
            if context is not None:
                await _until_readable(connection.sock)  # a TLS connection takes a third of a megabyte
            await asyncio.get_running_loop().connect_accepted_socket(
                partial(self._handler, connection), connection.sock, ssl=context, **limits
            )
        except OSError as error:  # a handshake that fails or takes too long, among them
            error.__traceback__ = None  # its frames are a cycle that keeps the buffers of TLS
            connection.sock.close()
            self._forget(connection)

    def _make_room(self) -> bool:
        """Close the connection that has waited longest for its client; return whether there is one."""
        connection = next(iter(self._waiting), None)
        if connection is None:
            return False
        self._work(connection)
        connection.abort()
        return True

    # -- connections ---------------------------------------------------------------------------------------

    def _handler(self, connection: _Connection) -> web.RequestHandler:
        handler = self()
        self._by_handler[handler] = connection
        return handler

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        connection = self._by_handler[handler]
        connection.transport = transport
        self._wait(connection, HEADERS)
        super().connection_made(handler, transport)

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        if (connection := self._by_handler.pop(handler, None)) is not None:
            self._forget(connection)
            # The transport closes it now, but uvloop may leave that to the garbage collector when its loop ends.
            asyncio.get_running_loop().call_soon(connection.sock.close)

    def _wait(self, connection: _Connection, seconds: float) -> None:
        """Let a connection wait for its client, for a time."""
        self._waiting.pop(connection, None)
        self._waiting[connection] = None
        loop = asyncio.get_running_loop()
        connection.deadline = loop.time() + seconds
        timer = connection.timer
        if timer is None or timer.when() > connection.deadline:  # an earlier one looks at the deadline
            if timer is not None:
                timer.cancel()
            connection.timer = loop.call_at(connection.deadline, self._close_if_late, connection)

    def _close_if_late(self, connection: _Connection) -> None:
        connection.timer = None
        if connection not in self._waiting:
            return
        loop = asyncio.get_running_loop()
        if loop.time() < connection.deadline:
            connection.timer = loop.call_at(connection.deadline, self._close_if_late, connection)
        else:
            connection.abort()

    def _work(self, connection: _Connection) -> None:
        """Let the server work for a connection, whose client need not do anything."""
        self._waiting.pop(connection, None)

    def _forget(self, connection: _Connection) -> None:
        self._work(connection)
        if connection.timer is not None:
            connection.timer.cancel()
        self._hold(connection, 0)
        self._open.discard(connection)

    def _hold(self, connection: _Connection, held: int) -> None:
        self._held += held - connection.held
        connection.held = held

    # -- requests ------------------------------------------------------------------------------------------

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        connection = self._by_handler.get(request.protocol)
        if connection is None:  # it was lost, and none will read this
            return web.Response(status=400)
        self._wait(connection, BODY)
        if request.headers.get("Content-Encoding", "identity") == "identity":
            response = await self._answer(request, _Body(self, connection, request.content))
        else:
            response = web.Response(status=415, text="a request must not be compressed\n")
        if not request.content.is_eof():
            response.force_close()  # the rest of the body is not read
        self._hold(
            connection, connection.held + len(response.body if isinstance(response.body, bytes) else b"")
        )
        self._wait(connection, BODY)
        with suppress(ConnectionError):  # aiohttp notices it, too
            await response.prepare(request)
            await response.write_eof()
        if connection in self._open:
            self._hold(connection, 0)
            self._wait(connection, IDLE)
        return response

    def read(self, connection: _Connection, chunk: bytes) -> None:
        """Count a part of a body; an empty one ends it.

        Raises:
            ConnectionAbortedError: It is part of the largest body, and the bodies are too large.
        """
        if not chunk:
            self._work(connection)
            return
        self._hold(connection, connection.held + len(chunk))
        if self._held > self._most_bytes and self._shed() is connection:
            raise ConnectionAbortedError

    def _shed(self) -> _Connection | None:
        """Close and return the connection with the largest body that is being read, or answer that is."""
        largest = max(self._waiting, key=lambda connection: connection.held, default=None)
        if largest is not None:
            self._log.log(
                ConnectionAbortedError(),
                "%s: requests and answers of more than %s bytes are under way: the largest is cut off",
                self._name, f"{self._most_bytes:,}", level=logging.WARNING,
            )  # fmt: skip
            largest.abort()
            self._forget(largest)
        return largest


async def _accept(listening: socket.socket) -> socket.socket:
    """Accept a connection. Cancelled, it loses none, as ``loop.sock_accept`` may, which then closes no socket."""
    while True:
        try:
            return listening.accept()[0]
        except BlockingIOError:
            if not await _wait_for_bytes(listening):
                return (await asyncio.get_running_loop().sock_accept(listening))[0]


async def _until_readable(sock: socket.socket) -> None:
    """Wait until a socket has bytes. On an event loop that watches no sockets it returns at once.

    Raises:
        OSError: The connection has ended.
    """
    if await _wait_for_bytes(sock) and not sock.recv(1, socket.MSG_PEEK):
        raise ConnectionResetError


async def _wait_for_bytes(sock: socket.socket) -> bool:
    """Wait until a socket has bytes or a connection; return False at once if the event loop watches no sockets."""
    loop = asyncio.get_running_loop()
    is_readable = asyncio.Event()
    try:
        loop.add_reader(sock.fileno(), is_readable.set)
    except NotImplementedError:
        return False
    try:
        await is_readable.wait()
    finally:
        loop.remove_reader(sock.fileno())
    return True


class _Body:
    """The parts of a body as they come."""

    __slots__ = ("_connection", "_content", "_server")

    def __init__(self, server: BoundedServer, connection: _Connection, content: StreamReader) -> None:
        self._server = server
        self._connection = connection
        self._content = content

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        chunk = await self._content.readany()
        self._server.read(self._connection, chunk)
        if not chunk:
            raise StopAsyncIteration
        return chunk
