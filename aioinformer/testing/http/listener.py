"""The listening socket and its connections: listen, refuse, reset, and listen again on the same port."""

from __future__ import annotations

import asyncio
import socket
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aiohttp import web

from aioinformer._core.http_server import HTTPServer
from aioinformer.testing.errors import StatusError
from aioinformer.testing.http.answers import refusal

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable

_HOST = "127.0.0.1"
_BACKLOG = 1024


class Listener:
    """A port of the loopback interface.

    Once bound, the process keeps the port until `stop`: while it refuses connections, a bound socket that does not
    listen reserves the port.

    Web pages in a browser on this machine could reach the port, through their own host name or a cross-origin
    request. So a request gets 403 if its Host or Origin is not the loopback interface.

    Args:
        handler: Answers each request.
        port: The port; 0 for a free one.
        tls: The TLS context, if any.
    """

    def __init__(
        self,
        handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        port: int,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._handler = handler
        self.port = port
        self._tls = tls
        self._connections: HTTPServer | None = None
        self._server: asyncio.Server | None = None
        self._reserved: socket.socket | None = None

    async def listen(self) -> None:
        """Accept connections; further calls do nothing."""
        if self._server is not None:
            return
        if self._connections is None:
            self._connections = HTTPServer(
                self._answer, handler_cancellation=True, access_log=None, auto_decompress=False
            )
        sock = self._reserved or self._bind()
        self._reserved = None
        sock.listen(_BACKLOG)
        self._server = await asyncio.get_running_loop().create_server(
            self._connections, sock=sock, ssl=self._tls, backlog=_BACKLOG
        )

    def refuse(self) -> None:
        """Refuse new connections and keep the port."""
        if self._server is None:
            return
        self._server.close()
        self._server = None
        self._reserved = self._bind()

    def cut(self) -> int:
        """Reset every connection and return how many there were."""
        connections = [] if self._connections is None else self._connections.connections
        transports = [
            connection.transport
            for connection in connections
            if connection.transport is not None and not connection.transport.is_closing()
        ]
        for transport in transports:
            transport.abort()
        return len(transports)

    async def stop(self) -> None:
        """Close the port, reset every connection and wait until their tasks have ended."""
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._reserved is not None:
            self._reserved.close()
            self._reserved = None
        if self._connections is not None:
            self._connections.has_ended = True
        self.cut()
        await self.drain()
        self._connections = None

    async def drain(self) -> None:
        """Wait until the tasks of reset connections have ended."""
        connections = self._connections
        while connections is not None and connections.connections:
            self.cut()
            await asyncio.sleep(0)

    async def _answer(self, http: web.BaseRequest) -> web.StreamResponse:
        for header, of in (("Host", "//{}"), ("Origin", "{}")):
            value = http.headers.get(header)
            if value is not None and not _is_loopback(of.format(value)):
                return refusal(
                    http,
                    StatusError(
                        403,
                        "Forbidden",
                        f"the embedded API server only accepts requests for and from the loopback interface: "
                        f"{header} is {value!r}, not localhost, 127.0.0.1 or [::1]",
                    ),
                )
        return await self._handler(http)

    def _bind(self) -> socket.socket:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.setblocking(False)
            sock.bind((_HOST, self.port))
        except BaseException:
            sock.close()
            raise
        self.port = sock.getsockname()[1]
        return sock


@lru_cache(maxsize=64)
def _is_loopback(url: str) -> bool:
    """Return whether the host of a URL is the loopback interface, without resolving names."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
