"""One request of a Client and its answer, on a connection of its own: both ends of it."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from typing import TYPE_CHECKING

from aioinformer.testing.simulation.exchange import answer
from aioinformer.testing.simulation.history import Arrived
from aioinformer.testing.simulation.line import Line, reset_by_peer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.testing.simulation.exchange import Asked
    from aioinformer.testing.simulation.network import Network

_CLOSING = b'"k8s.io/initial-events-end":"true"'

_VERSION = re.compile(rb'"resourceVersion":"(\d+)"')

_REPEATABLE = (b'{"type":"ADDED"', b'{"type":"MODIFIED"')

_Head = tuple[int, dict[str, str]]

_Item = bytes | _Head | Exception | None
"""Bytes of the body, status and headers, what cuts the body off, or None at its end."""


class Connection:
    """A connection: for the server where its answer goes, for the client what has arrived.

    Args:
        network: Whose latencies and troubles it has.
        name: What the history calls it.
        asked: What is asked for.

    Attributes:
        task: The server's, which answers.
    """

    def __init__(self, network: Network, name: str, asked: Asked) -> None:
        self._network = network
        self.name = name
        self.path = asked.path
        self._answer: Line[_Head | Exception | None] = Line(network, self._take)
        self._arrived: deque[_Item] = deque()
        self._news = asyncio.Event()
        self._dead = False
        self._closing = b""  # the bookmark that is held back
        self._newest = 0
        self.task = asyncio.get_running_loop().create_task(
            self._serve(asked), name=f"server of {name}", context=network.servers()
        )

    def __repr__(self) -> str:
        return f"<Connection {self.name} {self.path}>"

    # The client's end

    async def head(self) -> _Head:
        """Wait for the answer's status and headers.

        Raises:
            ConnectionError: The connection was cut.
        """
        found = await self._first()
        assert isinstance(found, tuple)
        self._arrived.popleft()
        return found

    async def read(self) -> bytes:
        """Wait for more of the body: all that is there, or `b""` at its end.

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
        """The client is done with it."""
        self.silence()
        self._network.record_closed(self)

    # The server's end

    def send_head(self, status: int, headers: Mapping[str, str]) -> None:
        self._answer.send((status, dict(headers)))

    def send(self, data: bytes) -> None:
        network = self._network
        if self._closing:
            self._newest = max([self._newest, *map(int, _VERSION.findall(data))])
        elif network.late_closing and _CLOSING in data:
            data = self._hold_closing(data)
        last = data[data.rfind(b"\n", 0, -1) + 1 :]
        if network.duplicates and last.startswith(_REPEATABLE) and last.endswith(b"\n"):
            network.duplicates -= 1
            data += last
        if data:
            self._answer.send(data)

    async def drain(self) -> None:
        """Wait until the server may write on."""
        if self._network.is_slow():
            await asyncio.sleep(self._network.delay())

    def send_end(self) -> None:
        self._closing = b""
        self._answer.send(None)

    def hang_up(self) -> None:
        """End it after what was sent, in the middle of an answer."""
        self._closing = b""
        self._answer.send(reset_by_peer())

    # Trouble

    def reset(self) -> None:
        """Cut it: what is under way is lost."""
        if not self._dead:
            self.silence()
            self._take(reset_by_peer())

    def silence(self) -> None:
        """Let it die without a word."""
        self._dead = True
        self._answer.die()
        self.task.cancel()

    def stall(self, seconds: float) -> None:
        """Hold back for so long whatever is sent from now on."""
        self._answer.stall(seconds)

    # Within

    def _hold_closing(self, data: bytes) -> bytes:
        """Take the bookmark that closes the initial events out, to be sent late: what happens meanwhile comes before
        it, as from a server whose cache lies behind."""
        start = data.rfind(b"\n", 0, data.index(_CLOSING)) + 1
        end = data.index(b"\n", start) + 1
        self._closing = data[start:end]
        self._newest = int(_VERSION.findall(self._closing)[0])
        asyncio.get_running_loop().call_later(self._network.late_closing, self._send_closing)
        self._network.late_closing = 0.0
        return data[:start] + data[end:]

    def _send_closing(self) -> None:
        if self._closing:
            self._answer.send(_VERSION.sub(b'"resourceVersion":"%d"' % self._newest, self._closing))
            self._closing = b""

    async def _serve(self, asked: Asked) -> None:
        await asyncio.sleep(self._network.delay())
        await answer(self._network.handler, self, asked)

    def _take(self, item: _Item) -> None:
        self._network.history.add(self.name, Arrived(item))
        self._arrived.append(item)
        self._news.set()

    async def _first(self) -> bytes | _Head | None:
        while not self._arrived:
            self._news.clear()
            await self._news.wait()
        found = self._arrived[0]
        if isinstance(found, Exception):
            raise found
        return found
