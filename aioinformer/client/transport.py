"""The Transport protocol: a Client's requests to an API server, as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, Self

CONNECT_TIMEOUT = 10.0
"""Seconds for opening a connection, including the TLS handshake."""

READ_TIMEOUT = 60.0
"""Seconds within which a response must begin, and seconds of silence after which a call fails."""

JSON = "application/json"
"""The default media type."""

PROTOBUF = "application/vnd.kubernetes.protobuf"
"""The media type of Kubernetes' protobuf. API servers support it for built-in kinds."""

Query = Sequence[tuple[str, str]]


class Change(NamedTuple):
    """The method and body of a request that changes something.

    Args:
        method: ``"POST"``, ``"PUT"``, ``"PATCH"``, ``"DELETE"``.
        body: Empty for none.
        content_type: The body's media type.
    """

    method: str
    body: bytes = b""
    content_type: str = JSON


class HttpRequest(NamedTuple):
    """A request to a server.

    Args:
        path: From the root of the server.
        query: Names and values, not yet quoted.
        idle_timeout: Seconds that the body may be silent; None for no limit.
        is_stream: Whether the response has no time limit.
        accept: The accepted media types.
        change: Method and body; None for a GET.
    """

    path: str
    query: Query
    idle_timeout: float | None
    is_stream: bool = False
    accept: str = JSON
    change: Change | None = None


class ByteStream(Protocol):
    """The body of one response, in chunks as they arrive, of at most about a megabyte.

    Iterating raises TransportError if the body breaks off, and IdleTimeoutError if it is silent for longer than
    ``idle_timeout``. A cancelled ``anext`` loses no bytes; closing is idempotent.
    """

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> bytes: ...

    async def aclose(self) -> None:
        """Return the connection to its pool, or close it if the body was not read to its end."""
        ...


class Transport(Protocol):
    """Sends authenticated requests to one API server.

    The first request opens it. Every coroutine may be cancelled at any point, and then leaves no connection, lock or
    task behind, except the shared task that renews credentials: ``close`` ends that.
    """

    @property
    def server(self) -> str:
        """The URL of the API server; ``""`` before ``open``."""
        ...

    @property
    def namespace(self) -> str:
        """The configuration's namespace, or ``"default"``."""
        ...

    async def open(self) -> None:
        """Read the configuration, and raise its errors.

        Raises:
            ConfigError: The configuration is unusable.
        """
        ...

    async def close(self) -> None:
        """Close every connection. Open streams end with a TransportError.

        Raises:
            WrongEventLoopError: The connections belong to another running event loop.
        """
        ...

    async def get(self, path: str, query: Query = (), *, timeout: float = READ_TIMEOUT) -> bytes:
        """Return the whole body of a response.

        Args:
            path: From the root of the server: ``"/api/v1/pods"``.
            query: Names and values, not yet quoted.
            timeout: Seconds within which the response must begin, including the time to load credentials; then the
                longest silence in seconds.

        Raises:
            ApiError: The server answered with another status than 2xx.
            TransportError: There was no complete response.
            ConfigError: The configuration is unusable.
        """
        ...

    async def send(
        self, change: Change, path: str, query: Query = (), *, timeout: float = READ_TIMEOUT
    ) -> bytes:
        """Send a change, and return the whole body of the response.

        The change is sent once. Only after a 401, which changes nothing, it is sent again with renewed credentials.

        Cancellation: the server may have made the change.

        Args:
            change: Method and body.
            path: From the root of the server.
            query: Names and values, not yet quoted.
            timeout: Seconds within which the whole response must arrive.

        Raises:
            ApiError: The server answered with another status than 2xx.
            TransportError: There was no complete response. The server may have made the change.
            ConfigError: The configuration is unusable.
        """
        ...

    async def stream(
        self, path: str, query: Query = (), *, idle_timeout: float | None = None, accept: str = JSON
    ) -> ByteStream:
        """Return the body of a 2xx response as it arrives.

        Args:
            path: From the root of the server.
            query: Names and values, not yet quoted.
            idle_timeout: Seconds that the body may be silent; None for no limit.
            accept: The Accept header.

        Raises:
            ApiError: The server answered with another status than 2xx.
            TransportError: No response began within READ_TIMEOUT, including the time to load credentials.
            ConfigError: The configuration is unusable.
        """
        ...
