"""The network between clients and the simulated API server: latency and failures.

Data on a connection arrives in order; connections are independent. There are two kinds: each request of a Client has a
`Connection`, and each socket of the event loop is a `Pipe`.
"""

from __future__ import annotations

import asyncio
import errno
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from aiohttp import web

from aioinformer.testing.http.listener import Listener
from aioinformer.testing.simulation.conditions import Conditions
from aioinformer.testing.simulation.connection import Connection
from aioinformer.testing.simulation.history import Arrived
from aioinformer.testing.simulation.line import SERVERS
from aioinformer.testing.simulation.loop import is_servers
from aioinformer.testing.simulation.pipe import End, Pipe

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import Context
    from random import Random

    from aioinformer.testing.simulation.exchange import Answer, ClientRequest
    from aioinformer.testing.simulation.history import History

PORT = 6443


class Network(Conditions, Listener):
    """All connections to the server, with the server's ends.

    Args:
        handler: The server's handler, which answers each request.
        random: Draws latencies and the places at which chunks are split.
        history: Records the traffic.

    Attributes:
        tried: How many connections clients have tried to open.
    """

    def __init__(self, handler: Answer, random: Random, history: History) -> None:
        Conditions.__init__(self, random)
        Listener.__init__(self, handler, PORT, None)
        self.handler = handler
        self.history = history
        self._accepting = False
        self.tried = 0
        self._asked: dict[Connection, None] = {}
        self._pipes: dict[Pipe, None] = {}
        self._http: web.Server | None = None
        self._context = copy_context()
        self._context.run(SERVERS.set, True)

    # The interface of a listener

    async def listen(self) -> None:
        """Accept connections."""
        self.accept()

    def accept(self) -> None:
        """Accept connections."""
        self._accepting = True

    def refuse(self) -> None:
        """Refuse new connections."""
        self._accepting = False

    def cut(self) -> int:
        """Reset every connection and return how many there were."""
        connections = self.connections
        for connection in connections:
            connection.reset()
        return len(connections)

    async def stop(self) -> None:
        """Refuse new connections, reset the open ones and wait until the server's tasks have ended."""
        self.refuse()
        self.cut()
        await self.drain()

    async def drain(self) -> None:
        """Wait until the tasks of reset connections have ended."""
        while tasks := [task for task in asyncio.all_tasks() if is_servers(task)]:
            await asyncio.wait(tasks)

    # Troubles

    @property
    def connections(self) -> list[Connection | Pipe]:
        """The connections whose server end is open."""
        serving: list[Connection | Pipe] = [request for request in self._asked if not request.task.done()]
        return serving + [pipe for pipe in self._pipes if not pipe.server.is_closing()]

    def silence(self, choose: Callable[[Connection | Pipe], bool] = lambda _: True) -> int:
        """Drop open connections without notice: their clients wait for data that never arrives.

        Args:
            choose: Returns whether to drop a connection; all by default.

        Returns:
            How many connections were dropped.
        """
        connections = [connection for connection in self.connections if choose(connection)]
        for connection in connections:
            connection.silence()
        return len(connections)

    def stall(self, seconds: float) -> int:
        """Delay everything sent on the open connections from now on by this many seconds; nothing is lost.

        Returns:
            How many connections are delayed.
        """
        connections = self.connections
        for connection in connections:
            connection.stall(seconds)
        return len(connections)

    # The client's side

    @property
    def unclosed(self) -> list[Connection | Pipe]:
        """The connections that their clients have not closed."""
        return [*self._asked, *(pipe for pipe in self._pipes if not pipe.client.is_closing())]

    async def ask(self, asked: ClientRequest) -> Connection:
        """Connect and send a request.

        Raises:
            ConnectionRefusedError: The server refuses connections.
        """
        name = f"request {self.tried + 1}"
        self.history.add(name, asked)
        await self.reach(name)
        connection = Connection(
            self,
            self.history,
            name,
            asked,
            handler=self.handler,
            context=self._server_context(),
            on_close=self._remove_connection,
        )
        self._asked[connection] = None
        return connection

    async def reach(self, name: str = "socket") -> None:
        """Wait for one latency, then check that the server accepts connections.

        Raises:
            ConnectionRefusedError: The server refuses connections.
        """
        self.tried += 1
        await asyncio.sleep(self.delay())
        if not self._accepting:
            self.history.add(name, Arrived("refused"))
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")

    def join(self, protocol: Any) -> End:
        """Connect a client's protocol to the server and return the client's transport."""
        if self._http is None:
            self._http = web.Server(self.handler, handler_cancellation=True, access_log=None)
        name = f"socket {self.tried}"
        pipe = Pipe(self, self.history, name, protocol, self._http(), self._server_context())
        self._pipes = {open_pipe: None for open_pipe in self._pipes if not open_pipe.is_over}
        self._pipes[pipe] = None
        return pipe.client

    def _server_context(self) -> Context:
        """Return a context that marks the tasks that run in it as the server's."""
        return self._context.copy()

    def _remove_connection(self, connection: Connection) -> None:
        self._asked.pop(connection, None)
