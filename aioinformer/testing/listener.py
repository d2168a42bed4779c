"""The listening socket and the connections: opened, refused, cut and opened again on the same port."""

from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aiohttp import web

from aioinformer.testing.answers import refusal
from aioinformer.testing.errors import StatusError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable

_HOST = "127.0.0.1"
_BACKLOG = 1024


class Listener:
    """A port of the loopback interface.

    Once bound, the port stays this process's until `stop`: while connections are refused a bound socket that
    does not listen keeps it.

    A web page that a browser on this machine shows could reach it, too: by a name of its own that leads here, or by
    a request to another origin. So a request gets 403 if its Host or its Origin names anything but the loopback
    interface.

    Args:
        handler: Answers each request.
        port: The port; 0 for a free one.
        tls: What to speak TLS with, if so.
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
        self._connections: web.Server | None = None
        self._server: asyncio.Server | None = None
        self._reserved: socket.socket | None = None

    async def listen(self) -> None:
        """Take connections; nothing happens if it does so already."""
        if self._server is not None:
            return
        if self._connections is None:
            self._connections = web.Server(
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
        """Cut every connection; says how many there were."""
        found = [] if self._connections is None else self._connections.connections
        transports = [
            each.transport for each in found if each.transport is not None and not each.transport.is_closing()
        ]
        for transport in transports:
            transport.abort()
        return len(transports)

    async def stop(self) -> None:
        """Close the port and cut every connection; when it returns no task of theirs is left."""
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._reserved is not None:
            self._reserved.close()
            self._reserved = None
        self.cut()
        await self.drained()
        self._connections = None

    async def drained(self) -> None:
        """Wait until the tasks of the connections that were cut have ended."""
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
                        f"the embedded API server takes requests for and from the loopback interface alone: "
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


def _is_loopback(url: str) -> bool:
    """Whether the host of a URL is this machine's loopback interface, by whatever resolver."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
