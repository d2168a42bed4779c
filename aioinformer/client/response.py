"""One answer of an API server: its body, or the error that it is."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Self

from ..errors import ApiError, DamagedError, IdleTimeoutError, TransportError
from .error_mapping import (
    api_error,
    cause_of,
    network_error,
    say_more,
    without_credentials,
)

if TYPE_CHECKING:
    import aiohttp

    from .sessions import Sessions

_LONGEST_ERROR = 1024 * 1024


class ResponseStream:
    """The body of one answer. Closing gives its connection back, or closes it where it was not read out."""

    def __init__(self, response: aiohttp.ClientResponse, sessions: Sessions) -> None:
        self._response = response
        self._sessions: Sessions | None = sessions
        self._read = response.content.readany

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._sessions is None:
            raise StopAsyncIteration
        try:
            chunk = await self._read()
        except TimeoutError as error:
            raise IdleTimeoutError(f"the connection fell silent: {error or 'timeout'}") from error
        except Exception as error:
            converted = network_error(error)
            if converted is None:
                raise
            kind = DamagedError if _is_damaged(self._response) else TransportError
            raise kind(f"the answer broke off: {converted}") from cause_of(error)
        if chunk:
            return chunk
        await self.aclose()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Idempotent."""
        sessions, self._sessions = self._sessions, None
        if sessions is not None:
            connection = self._response.connection
            if connection is not None and connection.transport is not None:
                connection.transport.abort()  # not read out; TLS would wait for the server's goodbye
            await sessions.release(self._response)


def _is_damaged(response: aiohttp.ClientResponse) -> bool:
    """Whether TLS has ended the connection, as what arrived is not what was sent."""
    connection = response.connection
    protocol = None if connection is None else connection.protocol
    lost = None if protocol is None else protocol.exception()
    return str(getattr(lost, "strerror", "")).startswith("[SSL")


def encoding_of(response: aiohttp.ClientResponse) -> str:
    """How the body is encoded, which no request asks for; ``""`` where it is not."""
    encoding: str = response.headers.get("Content-Encoding", "").strip().lower()
    return "" if encoding == "identity" else encoding


async def error_of(response: aiohttp.ClientResponse, body: ResponseStream, seconds: float) -> ApiError:
    """The error that an answer stands for; what its body says as far as it can be had in so many seconds."""
    said = b""
    try:
        async with asyncio.timeout(seconds):
            async for chunk in body:
                if encoding_of(response):
                    break
                said += chunk
                if len(said) > _LONGEST_ERROR:
                    break
    except (TransportError, TimeoutError):
        pass
    error = api_error(response.status, said, response.headers.get("Retry-After"))
    if response.status < 400 and (location := response.headers.get("Location")):
        say_more(
            error,
            f"the server redirects to {without_credentials(location)}, which no change follows: "
            "give the client its final URL",
        )
    return error
