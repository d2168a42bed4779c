"""The sockets beneath a client's connections: their peer's death is noticed, and none outlives the client."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Any
from weakref import WeakSet

_KEEPALIVE = (
    *(("TCP_KEEPIDLE", 20), ("TCP_KEEPALIVE", 20), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 4)),
    ("TCP_USER_TIMEOUT", 35_000),
)
"""Seconds of silence before the first probe (Linux, macOS), seconds between two, how many are not answered; and Linux'
milliseconds for which what was sent may stay unacknowledged. Within 40 s a machine that is gone is noticed."""

_TURNS = 20
"""Turns of the event loop within which a connection that was shut down is gone; three are usual."""


class Sockets:
    """Makes the sockets of an aiohttp connector.

    A TLS connection whose request was cancelled is closed politely: it is open for as long as the server does not
    answer its goodbye, up to half a minute, and aiohttp does not know of it any more. asyncio forgives a loop that is
    closed meanwhile; uvloop warns of an unclosed transport, or cannot close the loop ("Device or resource busy").
    """

    def __init__(self) -> None:
        self._made: WeakSet[socket.socket] = WeakSet()

    def __call__(self, address: Any) -> socket.socket:
        """A socket for this address, as ``aiohttp.TCPConnector`` asks its ``socket_factory``."""
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
        """End the connections that are still open; to be called once the connectors are closed."""
        ended = [each for each in self._made if _shut_down(each)]
        for _ in range(_TURNS):
            if all(each.fileno() == -1 for each in ended):
                return
            await asyncio.sleep(0)


def _shut_down(made: socket.socket) -> bool:
    """End a connection, so that its transport finds it ended and closes; whether there was one."""
    if made.fileno() != -1:
        with suppress(OSError):  # not connected yet: its transport is not made, and will not be
            made.shutdown(socket.SHUT_RDWR)
            return True
    return False
