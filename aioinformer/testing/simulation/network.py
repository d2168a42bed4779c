"""The network between clients and the simulated API server: latency, and all that goes wrong.

What is sent on a connection arrives in order; between connections there is none. There are two kinds: a Client's
requests have one each (`Connection`), and sockets of the event loop lead here (`Pipe`).
"""

from __future__ import annotations

import asyncio
import errno
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from aiohttp import web

from aioinformer.testing.listener import Listener
from aioinformer.testing.simulation.connection import Connection
from aioinformer.testing.simulation.history import Arrived
from aioinformer.testing.simulation.line import SERVERS
from aioinformer.testing.simulation.loop import is_servers
from aioinformer.testing.simulation.pipe import End, Pipe

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context
    from random import Random

    from aioinformer.testing.simulation.exchange import Answer, Asked
    from aioinformer.testing.simulation.history import History

PORT = 6443


class Network(Listener):
    """All connections to one server, and the server's end of them.

    Args:
        handler: The server: answers each request.
        random: Where latencies, and the places at which chunks are torn, come from.
        history: Told of what goes over the network.

    Attributes:
        latency: Seconds that anything is under way: from, to.
        torn: How often, of once, what a server writes arrives in two pieces.
        joined: How often, of once, it arrives together with what was written before.
        slow: How often, of once, the server has to wait before it can write on.
        late_closing: Seconds by which the next bookmark that ends a WatchList's initial events comes late, and behind
            what happens meanwhile.
        tried: How many connections clients have asked for.
        duplicates: How many creations or changes to come are sent twice, which no API server should.
    """

    def __init__(self, handler: Answer, random: Random, history: History) -> None:
        super().__init__(handler, PORT, None)
        self.handler = handler
        self.history = history
        self.latency = (0.001, 0.01)
        self.torn = 0.1
        self.joined = 0.3
        self.slow = 0.1
        self.late_closing = 0.0
        self.duplicates = 0
        self._random = random
        self._taking = False
        self.tried = 0
        self._asked: dict[Connection, None] = {}
        self._pipes: dict[Pipe, None] = {}
        self._http: web.Server | None = None
        self._servers = copy_context()
        self._servers.run(SERVERS.set, True)

    # What a listener does

    async def listen(self) -> None:
        """Take connections."""
        self.accept()

    def accept(self) -> None:
        """Take connections."""
        self._taking = True

    def refuse(self) -> None:
        """Refuse new connections."""
        self._taking = False

    def cut(self) -> int:
        """Cut every connection; says how many there were."""
        found = self.connections
        for connection in found:
            connection.reset()
        return len(found)

    async def stop(self) -> None:
        """Refuse and cut; when it returns no task of the server's is left."""
        self.refuse()
        self.cut()
        await self.drained()

    async def drained(self) -> None:
        """Wait until the tasks of the connections that were cut have ended."""
        while tasks := [task for task in asyncio.all_tasks() if is_servers(task)]:
            await asyncio.wait(tasks)

    # Trouble

    @property
    def connections(self) -> list[Connection | Pipe]:
        """Those that a server is at the other end of."""
        serving: list[Connection | Pipe] = [each for each in self._asked if not each.task.done()]
        return serving + [each for each in self._pipes if not each.server.is_closing()]

    def silence(self, choose: Callable[[Connection | Pipe], bool] = lambda _: True) -> int:
        """Let open connections die without a word: their clients wait for what never comes.

        Args:
            choose: Which of them; all by default.

        Returns:
            How many there were.
        """
        found = [connection for connection in self.connections if choose(connection)]
        for connection in found:
            connection.silence()
        return len(found)

    def stall(self, seconds: float) -> int:
        """Hold back what is sent on the open connections from now on: it comes so much later, and is not lost.

        Returns:
            How many connections there were.
        """
        found = self.connections
        for connection in found:
            connection.stall(seconds)
        return len(found)

    def clear(self) -> None:
        """End what waits for something to be sent."""
        self.late_closing = 0.0
        self.duplicates = 0

    # The client's side

    @property
    def unclosed(self) -> list[Connection | Pipe]:
        """Those that their clients have not closed."""
        return [*self._asked, *(each for each in self._pipes if not each.client.is_closing())]

    async def ask(self, asked: Asked) -> Connection:
        """Connect and send a request.

        Raises:
            ConnectionRefusedError: The server takes no connections.
        """
        name = f"request {self.tried + 1}"
        self.history.add(name, asked)
        await self.reach(name)
        connection = Connection(self, name, asked)
        self._asked[connection] = None
        return connection

    async def reach(self, name: str = "socket") -> None:
        """Find out whether the server takes connections.

        Raises:
            ConnectionRefusedError: It does not.
        """
        self.tried += 1
        await asyncio.sleep(self.delay())
        if not self._taking:
            self.history.add(name, Arrived("refused"))
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")

    def join(self, protocol: Any) -> End:
        """Connect a client's protocol to the server; the client's transport."""
        if self._http is None:
            self._http = web.Server(self.handler, handler_cancellation=True, access_log=None)
        pipe = Pipe(self, f"socket {self.tried}", protocol, self._http(), self.servers())
        self._pipes = {each: None for each in self._pipes if not each.is_over}
        self._pipes[pipe] = None
        return pipe.client

    def servers(self) -> Context:
        """What the server runs in, by which its tasks can be told from others."""
        return self._servers.copy()

    def record_closed(self, connection: Connection) -> None:
        """A client has closed a connection."""
        self._asked.pop(connection, None)

    def delay(self) -> float:
        """How long something is under way."""
        shortest, longest = self.latency
        return shortest + (longest - shortest) * self._random.random()

    def joins(self) -> bool:
        """Whether what is sent arrives together with what is still under way."""
        return self._random.random() < self.joined

    def is_slow(self) -> bool:
        """Whether a client is slow to take what was written."""
        return self._random.random() < self.slow

    def tear(self, size: int) -> int:
        """How many of so many bytes arrive in the first piece."""
        return self._random.randrange(size + 1) if self._random.random() < self.torn else size
