"""The Transport of a Client that talks to the simulated API server: no socket, no HTTP, everything above as it is."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from aioinformer.client.client import Client
from aioinformer.client.error_mapping import api_error, ours
from aioinformer.client.transport import (
    JSON,
    READ_TIMEOUT,
    Change,
    Query,
)
from aioinformer.errors import ClientClosedError, IdleTimeoutError, TransportError
from aioinformer.testing.simulation.exchange import Asked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.simulation.connection import Connection
    from aioinformer.testing.simulation.network import Network


class SimulatedTransport:
    """Requests over a simulated network; see `aioinformer.client.transport.Transport`.

    Args:
        network: The network.
        server: The server's URL.
        token: A bearer token to show.
    """

    def __init__(self, network: Network, server: str, token: str | None = None) -> None:
        self._network = network
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._bodies: dict[Body, None] = {}
        self._closed = False
        self.server = server
        self.namespace = "default"

    async def open(self) -> None:
        """Begin, or begin again."""
        self._closed = False

    async def close(self) -> None:
        """Close every connection; streams that are open end with a TransportError."""
        self._closed = True
        for body in list(self._bodies):
            body.connection.reset()
            await body.aclose()

    async def get(self, path: str, query: Query = (), *, timeout: float = READ_TIMEOUT) -> bytes:
        """The whole body of an answer."""
        return await _read(await self._ask(self._asked(path, query), timeout))

    async def send(
        self, change: Change, path: str, query: Query = (), *, timeout: float = READ_TIMEOUT
    ) -> bytes:
        """Ask for a change; the whole body of the answer."""
        asked = self._asked(path, query)._replace(method=change.method, body=change.body)
        asked = asked._replace(headers={**asked.headers, "Content-Type": change.content_type})
        with _naming(self.server):
            async with asyncio.timeout(timeout):
                return await _read(await self._ask(asked, None))

    async def stream(
        self, path: str, query: Query = (), *, idle_timeout: float | None = None, accept: str = JSON
    ) -> Body:
        """The body of an answer as it arrives."""
        return await self._ask(self._asked(path, query, accept), idle_timeout)

    def _asked(self, path: str, query: Query, accept: str = JSON) -> Asked:
        return Asked(path, query, {**self._headers, "Accept": accept})

    async def _ask(self, asked: Asked, idle_timeout: float | None) -> Body:
        if self._closed:
            raise ClientClosedError("the client is closed")
        with _naming(self.server):
            async with asyncio.timeout(READ_TIMEOUT):
                connection = await self._network.ask(asked)
                body = Body(connection, idle_timeout, self._bodies)
                try:
                    status, headers = await connection.head()
                except BaseException:
                    await body.aclose()
                    raise
        if 200 <= status < 300:
            return body
        try:
            said = b"".join([chunk async for chunk in body])
        except TransportError:
            said = b""
        finally:
            await body.aclose()
        raise api_error(status, said, headers.get("Retry-After"))


def client_of(network: Network, server: str, token: str | None) -> Client:
    """A Client over a simulated network."""
    return Client(SimulatedTransport(network, server, token))


class Body:
    """A `ByteStream` from a connection."""

    def __init__(self, connection: Connection, idle_timeout: float | None, bodies: dict[Body, None]) -> None:
        self.connection = connection
        self._idle_timeout = idle_timeout
        self._bodies = bodies
        self._closed = False
        bodies[self] = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._closed:
            raise StopAsyncIteration
        deadline = asyncio.timeout(self._idle_timeout)
        try:
            async with deadline:
                chunk = await self.connection.read()
        except TimeoutError as error:
            raise IdleTimeoutError("the connection fell silent") from error
        except ConnectionError as error:
            raise TransportError(f"the answer broke off: {error}") from error
        if chunk:
            return chunk
        await self.aclose()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Idempotent."""
        self._closed = True
        self._bodies.pop(self, None)
        self.connection.close()


async def _read(body: Body) -> bytes:
    try:
        return b"".join([chunk async for chunk in body])
    finally:
        await body.aclose()


@contextmanager
def _naming(server: str) -> Iterator[None]:
    """Turns what the network raises into this package's errors, as every transport does."""
    try:
        yield
    except Exception as error:
        found = ours(error, server)
        if found is None or found is error:
            raise
        raise found from error
