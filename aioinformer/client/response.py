"""The body of a response, and the error for a response whose status is not 2xx."""

from __future__ import annotations

import asyncio
import math
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Self

import anyio

from ..errors import ApiError, DamagedError, IdleTimeoutError, TransportError
from .error_mapping import (
    add_detail,
    api_error,
    network_error,
    safe_cause,
    without_credentials,
)

if TYPE_CHECKING:
    import aiohttp

    from .sessions import Sessions

_LONGEST_ERROR = 1024 * 1024


class ResponseStream:
    """The body of one response. Closing returns the connection to its pool, or closes it if data remains.

    Has its own idle timeout: aiohttp stops its timer when the connection ends, and a read of damaged chunks would hang.

    Args:
        response: The response.
        sessions: The owner of the connection.
        idle_timeout: Seconds that a read may wait; None for no limit.
    """

    def __init__(
        self, response: aiohttp.ClientResponse, sessions: Sessions, idle_timeout: float | None
    ) -> None:
        self._response = response
        self._sessions: Sessions | None = sessions
        self._read = response.content.readany
        loop = asyncio.get_running_loop()
        self._time = loop.time
        self._waiting_since = math.inf
        self._idle_timeout = idle_timeout or 0.0
        self._timer = loop.call_later(idle_timeout, self._check_silence) if idle_timeout else None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._sessions is None:
            raise StopAsyncIteration
        self._waiting_since = self._time()
        try:
            chunk = await self._read()
        except TimeoutError as error:
            raise IdleTimeoutError(f"the connection fell silent: {error or 'timeout'}") from error
        except Exception as error:
            converted = network_error(error)
            if converted is None:
                raise
            kind = DamagedError if _is_damaged(self._response) else TransportError
            raise kind(f"the response broke off: {converted}") from safe_cause(error)
        finally:
            self._waiting_since = math.inf
        if chunk:
            return chunk
        await self.aclose()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Close the body. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
        sessions, self._sessions = self._sessions, None
        if sessions is not None:
            connection = self._response.connection
            if connection is not None and connection.transport is not None:
                connection.transport.abort()  # data remains; a normal TLS close would wait for the server
            await sessions.release(self._response)

    def _check_silence(self) -> None:
        """Fail a read that has waited too long, or set the timer to its deadline."""
        now = self._time()
        waited = max(0.0, now - self._waiting_since)  # 0 while no read waits
        if waited >= self._idle_timeout:
            self._response.content.set_exception(TimeoutError(f"no data for {self._idle_timeout:g} seconds"))
            return
        self._timer = asyncio.get_running_loop().call_at(
            now - waited + self._idle_timeout, self._check_silence
        )


def _is_damaged(response: aiohttp.ClientResponse) -> bool:
    """Return whether TLS ended the connection because the bytes were changed in transit."""
    connection = response.connection
    protocol = None if connection is None else connection.protocol
    error = None if protocol is None else protocol.exception()
    return getattr(error, "errno", None) == ssl.SSL_ERROR_SSL  # aiohttp keeps the number, not the type


def encoding_of(response: aiohttp.ClientResponse) -> str:
    """Return the body's Content-Encoding; ``""`` for none."""
    encoding: str = response.headers.get("Content-Encoding", "").strip().lower()
    return "" if encoding == "identity" else encoding


async def error_of(response: aiohttp.ClientResponse, body: ResponseStream, seconds: float) -> ApiError:
    """Return the error for a response, with the part of its body that arrives within so many seconds."""
    received = b""
    with suppress(TransportError), anyio.move_on_after(seconds):
        async for chunk in body:
            if encoding_of(response):
                break
            received += chunk
            if len(received) > _LONGEST_ERROR:
                break
    error = api_error(response.status, received, response.headers.get("Retry-After"))
    if response.status < 400 and (location := response.headers.get("Location")):
        add_detail(
            error,
            f"the server redirects to {without_credentials(location)}, and writes do not follow redirects: "
            "give the client its final URL",
        )
    return error
