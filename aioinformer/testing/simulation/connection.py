"""Both ends of a connection that carries a single request of a Client and its answer."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from typing import TYPE_CHECKING

from aioinformer.testing.simulation.exchange import answer
from aioinformer.testing.simulation.history import Arrived
from aioinformer.testing.simulation.line import Line, reset_by_peer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextvars import Context

    from aioinformer.testing.simulation.conditions import Conditions
    from aioinformer.testing.simulation.exchange import Answer, ClientRequest
    from aioinformer.testing.simulation.history import History

_CLOSING = b'"k8s.io/initial-events-end":"true"'

_VERSION = re.compile(rb'"resourceVersion":"(\d+)"')

_REPEATABLE = (b'{"type":"ADDED"', b'{"type":"MODIFIED"')

_Head = tuple[int, dict[str, str]]

_Item = bytes | _Head | Exception | None
"""Bytes of the body, status and headers, the error that cuts the body off, or None at its end."""


class Connection:
    """A connection: the server writes its answer to it, the client reads what has arrived.

    Args:
        conditions: Latency, splitting and joining, and the troubles of watches.
        history: Records the traffic.
        name: The connection's name in the history.
        asked: The request.
        handler: The server's handler.
        context: The context that the server runs in.
        on_close: Called when the client closes the connection.

    Attributes:
        task: The server's task, which answers.
    """

    def __init__(
        self,
        conditions: Conditions,
        history: History,
        name: str,
        asked: ClientRequest,
        *,
        handler: Answer,
        context: Context,
        on_close: Callable[[Connection], object],
    ) -> None:
        self._conditions = conditions
        self._history = history
        self._on_close = on_close
        self.name = name
        self.path = asked.path
        self._answer: Line[_Head | Exception | None] = Line(conditions, self._take)
        self._arrived: deque[_Item] = deque()
        self._arrival = asyncio.Event()
        self._dead = False
        self._closing = b""  # the delayed bookmark
        self._newest = 0
        self.task = asyncio.get_running_loop().create_task(
            self._serve(handler, asked), name=f"server of {name}", context=context
        )

    def __repr__(self) -> str:
        return f"<Connection {self.name} {self.path}>"

    # The client's end

    async def head(self) -> _Head:
        """Wait for the answer's status and headers and return them.

        Raises:
            ConnectionError: The connection was cut.
        """
        head = await self._first()
        assert isinstance(head, tuple)
        self._arrived.popleft()
        return head

    async def read(self) -> bytes:
        """Wait for more of the body and return all that has arrived, or `b""` at its end.

        Raises:
            ConnectionError: The connection was cut.
        """
        await self._first()
        chunks: list[bytes] = []
        while self._arrived and isinstance(chunk := self._arrived[0], bytes):
            chunks.append(chunk)
            self._arrived.popleft()
        return b"".join(chunks)

    def close(self) -> None:
        """Close the client's end."""
        self.silence()
        self._on_close(self)

    # The server's end

    def send_head(self, status: int, headers: Mapping[str, str]) -> None:
        self._answer.send((status, dict(headers)))

    def send(self, data: bytes) -> None:
        conditions = self._conditions
        if self._closing:
            self._newest = max([self._newest, *map(int, _VERSION.findall(data))])
        elif conditions.late_closing and _CLOSING in data:
            data = self._hold_closing(data)
        last = data[data.rfind(b"\n", 0, -1) + 1 :]
        if conditions.duplicates and last.startswith(_REPEATABLE) and last.endswith(b"\n"):
            conditions.duplicates -= 1
            data += last
        if data:
            self._answer.send(data)

    async def drain(self) -> None:
        """Wait until the server may write more."""
        if self._conditions.is_slow():
            await asyncio.sleep(self._conditions.delay())

    def send_end(self) -> None:
        self._closing = b""
        self._answer.send(None)

    def hang_up(self) -> None:
        """Break off the answer after the data sent so far."""
        self._closing = b""
        self._answer.send(reset_by_peer())

    # Trouble

    def reset(self) -> None:
        """Reset the connection; data in flight is lost."""
        if not self._dead:
            self.silence()
            self._take(reset_by_peer())

    def silence(self) -> None:
        """Drop the connection without notice to the client."""
        self._dead = True
        self._answer.die()
        self.task.cancel()

    def stall(self, seconds: float) -> None:
        """Delay everything sent from now on by this many seconds."""
        self._answer.stall(seconds)

    # Private

    def _hold_closing(self, data: bytes) -> bytes:
        """Remove the bookmark that ends the initial events and schedule it for later.

        Changes until then come before it, as from a server whose watch cache lags.
        """
        start = data.rfind(b"\n", 0, data.index(_CLOSING)) + 1
        end = data.index(b"\n", start) + 1
        self._closing = data[start:end]
        self._newest = int(_VERSION.findall(self._closing)[0])
        asyncio.get_running_loop().call_later(self._conditions.late_closing, self._send_closing)
        self._conditions.late_closing = 0.0
        return data[:start] + data[end:]

    def _send_closing(self) -> None:
        if self._closing:
            self._answer.send(_VERSION.sub(b'"resourceVersion":"%d"' % self._newest, self._closing))
            self._closing = b""

    async def _serve(self, handler: Answer, asked: ClientRequest) -> None:
        await asyncio.sleep(self._conditions.delay())
        await answer(handler, self, asked)

    def _take(self, item: _Item) -> None:
        self._history.add(self.name, Arrived(item))
        self._arrived.append(item)
        self._arrival.set()

    async def _first(self) -> bytes | _Head | None:
        while not self._arrived:
            self._arrival.clear()
            await self._arrival.wait()
        arrived = self._arrived[0]
        if isinstance(arrived, Exception):
            raise arrived
        return arrived
