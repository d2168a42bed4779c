"""The protocol beneath a Client: bytes from an API server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, Self

CONNECT_TIMEOUT = 10.0
"""Seconds in which a connection, with its TLS handshake, has to stand."""

READ_TIMEOUT = 60.0
"""Seconds in which an answer has to begin, and of silence after which a call has failed."""

JSON = "application/json"
"""The media type that is asked for where nothing else is said."""

PROTOBUF = "application/vnd.kubernetes.protobuf"
"""That of Kubernetes' protobuf, which API servers have of built-in kinds."""

Query = Sequence[tuple[str, str]]


class Change(NamedTuple):
    """What a request sends.

    Args:
        method: ``"POST"``, ``"PUT"``, ``"PATCH"``, ``"DELETE"``.
        body: Empty for none.
        content_type: The body's media type.
    """

    method: str
    body: bytes = b""
    content_type: str = JSON


class HttpRequest(NamedTuple):
    """What is asked of a server.

    Args:
        path: From the root of the server.
        query: Names and values, not yet quoted.
        idle_timeout: Seconds that its body may be silent; None for no limit.
        is_stream: Whether the answer goes on for as long as it likes.
        accept: The media types that will do.
        change: What is sent; None for a GET.
    """

    path: str
    query: Query
    idle_timeout: float | None
    is_stream: bool = False
    accept: str = JSON
    change: Change | None = None


class ByteStream(Protocol):
    """The body of one answer, in chunks as they arrive, of at most about a megabyte.

    Iterating raises TransportError where the body breaks off, and IdleTimeoutError where it fell silent for longer
    than asked. A cancelled ``anext`` loses no bytes; closing is idempotent.
    """

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> bytes: ...

    async def aclose(self) -> None:
        """Give the connection back, or close it where the body was not read to its end."""
        ...


class Transport(Protocol):
    """Requests to one API server, authenticated.

    Opens itself at its first use. Every coroutine may be cancelled at any point and then leaves no connection or lock
    behind, and no task, but for one that renews credentials, which all share: that ends with ``close``.
    """

    @property
    def server(self) -> str:
        """The URL of the API server; ``""`` while it is not known."""
        ...

    @property
    def namespace(self) -> str:
        """The namespace that the configuration names, else ``"default"``."""
        ...

    async def open(self) -> None:
        """Read the configuration, so that what is wrong with it shows up here.

        Raises:
            ConfigError: It cannot work.
        """
        ...

    async def close(self) -> None:
        """Close every connection. Streams that are still open end with a TransportError.

        Raises:
            WrongEventLoopError: They are of another event loop, which is running.
        """
        ...

    async def get(self, path: str, query: Query = (), *, timeout: float = READ_TIMEOUT) -> bytes:
        """The whole body of an answer.

        Args:
            path: From the root of the server: ``"/api/v1/pods"``.
            query: Names and values, not yet quoted.
            timeout: Seconds in which an answer has to begin, also where credentials have to be had first, and that the
                server may then fall silent.

        Raises:
            ApiError: The server answered with anything but 2xx.
            TransportError: No usable answer came.
            ConfigError: The configuration cannot work.
        """
        ...

    async def send(
        self, change: Change, path: str, query: Query = (), *, timeout: float = READ_TIMEOUT
    ) -> bytes:
        """Ask for a change; the whole body of the answer.

        It is sent once. Only what was refused with 401, before anything was done, is sent again with renewed
        credentials.

        Cancellation: whether the change was made is not known.

        Args:
            change: Method and body.
            path: From the root of the server.
            query: Names and values, not yet quoted.
            timeout: Seconds in which all of the answer has to be there.

        Raises:
            ApiError: The server answered with anything but 2xx.
            TransportError: No usable answer came. Whether the change was made is not known.
            ConfigError: The configuration cannot work.
        """
        ...

    async def stream(
        self, path: str, query: Query = (), *, idle_timeout: float | None = None, accept: str = JSON
    ) -> ByteStream:
        """The body of an answer as it arrives, once its status is known to be 2xx.

        Args:
            path: From the root of the server.
            query: Names and values, not yet quoted.
            idle_timeout: Seconds that the body may fall silent; None for any.
            accept: The media types that will do, as the Accept header has them.

        Raises:
            ApiError: The server answered with anything but 2xx.
            TransportError: No answer came, or none within READ_TIMEOUT, also where credentials have to be had first.
            ConfigError: The configuration cannot work.
        """
        ...
