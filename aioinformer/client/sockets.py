"""The sockets of a client's connections: they detect a dead peer, and close with the client."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Any
from weakref import WeakSet

import aiohttp

_KEEPALIVE = (
    *(("TCP_KEEPIDLE", 20), ("TCP_KEEPALIVE", 20), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 4)),
    ("TCP_USER_TIMEOUT", 35_000),
)
"""Seconds of silence before the first probe (Linux, macOS), seconds between probes, unanswered probes; and, on Linux,
milliseconds that sent data may stay unacknowledged. Together they detect a dead machine within 40 s."""

_CLOSE_ITERATIONS = 20
"""Event loop iterations within which a connection that was shut down has closed; three are usual."""


class Sockets:
    """Makes the sockets of aiohttp connectors, and closes what the connectors leave open.

    After a request is cancelled, its TLS connection stays open until the server answers the TLS shutdown, up to half a
    minute, and aiohttp no longer tracks it. If the event loop closes meanwhile, uvloop warns of an unclosed transport,
    or fails to close the loop ("Device or resource busy"). So ``close`` ends these connections too.
    """

    def __init__(self) -> None:
        self._made: WeakSet[socket.socket] = WeakSet()

    def connector(self, **options: Any) -> aiohttp.TCPConnector:
        """Return an aiohttp connector that makes its sockets here."""
        return aiohttp.TCPConnector(socket_factory=self, **options)

    def __call__(self, address: Any) -> socket.socket:
        """Return a socket for this address: the ``socket_factory`` of a connector."""
        family, kind, protocol, *_ = address
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE:
            option = getattr(socket, name, None)
            if option is not None:
                made.setsockopt(socket.IPPROTO_TCP, option, value)
        self._made.add(made)
        return made

    async def close(self) -> None:
        """End the connections that are still open. Call it after the connectors have closed."""
        ended = [sock for sock in self._made if _shut_down(sock)]
        for _ in range(_CLOSE_ITERATIONS):
            if all(sock.fileno() == -1 for sock in ended):
                return
            await asyncio.sleep(0)


def _shut_down(made: socket.socket) -> bool:
    """Shut a connection down, so that its transport closes. Return whether there was one."""
    if made.fileno() != -1:
        with suppress(OSError):  # not connected, so it has no transport
            made.shutdown(socket.SHUT_RDWR)
            return True
    return False
