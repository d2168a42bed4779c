"""The Transport of a Client of the simulated API server, without sockets and HTTP."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

import anyio

from aioinformer.client.client import Client
from aioinformer.client.error_mapping import api_error, convert_error
from aioinformer.client.transport import (
    JSON,
    READ_TIMEOUT,
    Change,
    Query,
)
from aioinformer.errors import ClientClosedError, IdleTimeoutError, TransportError
from aioinformer.testing.simulation.exchange import ClientRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.simulation.connection import Connection
    from aioinformer.testing.simulation.network import Network


class SimulatedTransport:
    """Requests over a simulated network; see `aioinformer.client.transport.Transport`.

    Args:
        network: The network.
        server: The server's URL.
        token: A bearer token to send.
    """

    def __init__(self, network: Network, server: str, token: str | None = None) -> None:
        self._network = network
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._bodies: dict[Body, None] = {}
        self._closed = False
        self.server = server
        self.namespace = "default"

    async def open(self) -> None:
        """Open, or open again."""
        self._closed = False

    async def close(self) -> None:
        """Close every connection; open streams end with a TransportError."""
        self._closed = True
        for body in list(self._bodies):
            body.connection.reset()
            await body.aclose()

    async def get(self, path: str, query: Query = (), *, timeout: float = READ_TIMEOUT) -> bytes:
        """Return the whole body of an answer."""
        return await _read(await self._ask(self._request(path, query), timeout))

    async def send(
        self, change: Change, path: str, query: Query = (), *, timeout: float = READ_TIMEOUT
    ) -> bytes:
        """Request a change and return the whole body of the answer."""
        asked = self._request(path, query)._replace(method=change.method, body=change.body)
        asked = asked._replace(headers={**asked.headers, "Content-Type": change.content_type})
        with _convert_errors(self.server):
            with anyio.fail_after(timeout):
                return await _read(await self._ask(asked, None))

    async def stream(
        self, path: str, query: Query = (), *, idle_timeout: float | None = None, accept: str = JSON
    ) -> Body:
        """Return the body of an answer as a stream."""
        return await self._ask(self._request(path, query, accept), idle_timeout)

    def _request(self, path: str, query: Query, accept: str = JSON) -> ClientRequest:
        return ClientRequest(path, query, {**self._headers, "Accept": accept})

    async def _ask(self, asked: ClientRequest, idle_timeout: float | None) -> Body:
        if self._closed:
            raise ClientClosedError("the client is closed")
        with _convert_errors(self.server):
            with anyio.fail_after(READ_TIMEOUT):
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
            content = b"".join([chunk async for chunk in body])
        except TransportError:
            content = b""
        finally:
            await body.aclose()
        raise api_error(status, content, headers.get("Retry-After"))


def client_of(network: Network, server: str, token: str | None) -> Client:
    """Return a Client on a simulated network."""
    return Client(SimulatedTransport(network, server, token))


class Body:
    """A `ByteStream` that reads from a connection."""

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
        try:
            with anyio.fail_after(self._idle_timeout):
                chunk = await self.connection.read()
        except TimeoutError as error:
            raise IdleTimeoutError("the server sent nothing until the idle timeout") from error
        except ConnectionError as error:
            raise TransportError(f"the answer broke off: {error}") from error
        if chunk:
            return chunk
        await self.aclose()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Close the connection; further calls do nothing."""
        self._closed = True
        self._bodies.pop(self, None)
        self.connection.close()


async def _read(body: Body) -> bytes:
    try:
        return b"".join([chunk async for chunk in body])
    finally:
        await body.aclose()


@contextmanager
def _convert_errors(server: str) -> Iterator[None]:
    """Convert the network's errors to this package's errors, as every transport does."""
    try:
        yield
    except Exception as error:
        converted = convert_error(error, server)
        if converted is None or converted is error:
            raise
        raise converted from error
