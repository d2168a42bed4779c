"""An answer of an API server: its body, or its error."""

from __future__ import annotations

import asyncio
import math
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
    """The body of one answer. Closing returns its connection to the pool, or closes it if data remains.

    The silence limit is ours: aiohttp stops its own when the connection ends, and a read of damaged chunks would hang.

    Args:
        response: The answer.
        sessions: Where the connection goes back to.
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
            raise kind(f"the answer broke off: {converted}") from cause_of(error)
        finally:
            self._waiting_since = math.inf
        if chunk:
            return chunk
        await self.aclose()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
        sessions, self._sessions = self._sessions, None
        if sessions is not None:
            connection = self._response.connection
            if connection is not None and connection.transport is not None:
                connection.transport.abort()  # not read out; TLS would wait for the server's goodbye
            await sessions.release(self._response)

    def _check_silence(self) -> None:
        """Fail the read that has waited for too long, or look again when it will have."""
        now = self._time()
        waited = max(0.0, now - self._waiting_since)  # 0 while no read waits
        if waited >= self._idle_timeout:
            self._response.content.set_exception(TimeoutError(f"no data for {self._idle_timeout:g} seconds"))
            return
        self._timer = asyncio.get_running_loop().call_at(
            now - waited + self._idle_timeout, self._check_silence
        )


def _is_damaged(response: aiohttp.ClientResponse) -> bool:
    """Return whether TLS ended the connection because the bytes were changed on the way."""
    connection = response.connection
    protocol = None if connection is None else connection.protocol
    lost = None if protocol is None else protocol.exception()
    return str(getattr(lost, "strerror", "")).startswith("[SSL")


def encoding_of(response: aiohttp.ClientResponse) -> str:
    """Return the body's encoding, which no request asks for; ``""`` for none."""
    encoding: str = response.headers.get("Content-Encoding", "").strip().lower()
    return "" if encoding == "identity" else encoding


async def error_of(response: aiohttp.ClientResponse, body: ResponseStream, seconds: float) -> ApiError:
    """Return the error that an answer stands for, with as much of its body as arrives in so many seconds."""
    received = b""
    try:
        async with asyncio.timeout(seconds):
            async for chunk in body:
                if encoding_of(response):
                    break
                received += chunk
                if len(received) > _LONGEST_ERROR:
                    break
    except (TransportError, TimeoutError):
        pass
    error = api_error(response.status, received, response.headers.get("Retry-After"))
    if response.status < 400 and (location := response.headers.get("Location")):
        say_more(
            error,
            f"the server redirects to {without_credentials(location)}, and writes do not follow redirects: "
            "give the client its final URL",
        )
    return error
