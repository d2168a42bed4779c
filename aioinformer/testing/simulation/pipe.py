"""An in-memory connection of two asyncio transports: the client's protocol at one end, the server's at the other.

It serves libraries that open sockets through the event loop: aiohttp, and so kubernetes_asyncio, or httpx.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from typing import TYPE_CHECKING, Any

from aioinformer.testing.simulation.history import Arrived, Sent
from aioinformer.testing.simulation.line import Line, reset_by_peer

if TYPE_CHECKING:
    from contextvars import Context

    from aioinformer.testing.simulation.conditions import Conditions
    from aioinformer.testing.simulation.history import History

_ADDRESS = ("127.0.0.1", 0)

_Item = bytes | Exception | None
"""Bytes, the error that cuts them off, or None at their end."""


class Pipe:
    """A connection.

    Args:
        conditions: Latency, splitting and joining.
        history: Records the traffic.
        name: The connection's name in the history.
        client: The client's protocol.
        server: The server's protocol.
        context: The context that the server runs in.
    """

    def __init__(
        self,
        conditions: Conditions,
        history: History,
        name: str,
        client: Any,
        server: Any,
        context: Context,
    ) -> None:
        self._history = history
        self.name = name
        self.client = End(client, Line(conditions, self._to_server, context), context=None)
        self.server = End(server, Line(conditions, self._to_client), context=context)
        asyncio.get_running_loop().call_soon(server.connection_made, self.server, context=context)

    def __repr__(self) -> str:
        return f"<Pipe {self.name}>"

    @property
    def is_over(self) -> bool:
        """True if both ends are closed."""
        return self.client.is_closing() and self.server.is_closing()

    def reset(self) -> None:
        """Reset the connection; data in flight is lost."""
        self.silence()
        self._to_client(reset_by_peer())

    def silence(self) -> None:
        """Drop the connection without notice to the client; the server sees a reset."""
        self.client.line.die()
        self.server.line.die()
        self.server.lose(reset_by_peer())

    def stall(self, seconds: float) -> None:
        """Delay everything that the server sends from now on by this many seconds."""
        self.server.line.stall(seconds)

    def _to_server(self, item: _Item) -> None:
        if isinstance(item, bytes):
            self._history.add(self.name, Sent(item))
        self.server.receive(item)

    def _to_client(self, item: _Item) -> None:
        if not self.client.is_closing():
            self._history.add(self.name, Arrived(item))
        self.client.receive(item)


class _Socket:
    """The part of a transport's socket that libraries use."""

    family = socket.AF_INET

    def fileno(self) -> int:
        return -1

    def getpeername(self) -> tuple[str, int]:
        return _ADDRESS

    def getsockname(self) -> tuple[str, int]:
        return _ADDRESS

    def setsockopt(self, *option: object) -> None:
        """Do nothing: there is no real socket."""


class End(asyncio.Transport):
    """One end of a pipe.

    Args:
        protocol: The protocol at this end.
        line: Carries the data written here.
        context: The context that the protocol is called in.
    """

    def __init__(self, protocol: Any, line: Line[Exception | None], context: Context | None) -> None:
        super().__init__({"sockname": _ADDRESS, "peername": _ADDRESS, "socket": _Socket()})
        self.line = line
        self._protocol: Any = protocol
        self._context = context
        self._closing = False
        self._lost = False
        self._reading = True
        self._held: deque[_Item] = deque()

    # Called by the protocol

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not self._closing:
            self.line.send(bytes(data))

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.line.send(None)

    def close(self) -> None:
        """Close after the written data is sent."""
        self._close(None)

    def abort(self) -> None:
        """Close immediately; the other end is reset."""
        self._close(reset_by_peer())

    def is_closing(self) -> bool:
        return self._closing

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        while self._held and self._reading:
            self._handle(self._held.popleft())

    def is_reading(self) -> bool:
        return self._reading

    def get_protocol(self) -> asyncio.BaseProtocol:
        protocol: asyncio.BaseProtocol = self._protocol
        return protocol

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing: writes never wait."""

    def get_write_buffer_size(self) -> int:
        return 0

    # Called by the pipe

    def receive(self, item: _Item) -> None:
        """Handle an arrival, or keep it while reading is paused."""
        if self._reading or isinstance(item, Exception):
            self._handle(item)
        else:
            self._held.append(item)

    def lose(self, error: Exception | None) -> None:
        """Close, and report the lost connection to the protocol."""
        self._closing = True
        if not self._lost:
            self._lost = True
            asyncio.get_running_loop().call_soon(self._protocol.connection_lost, error, context=self._context)

    def _close(self, last: Exception | None) -> None:
        if not self._closing:
            self.line.send(last)
            self.lose(None)

    def _handle(self, item: _Item) -> None:
        if self._closing:
            return
        if isinstance(item, bytes):
            self._protocol.data_received(item)
        elif item is not None:
            self.lose(item)
        elif not self._protocol.eof_received():
            self.close()
