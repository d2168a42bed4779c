"""One open watch: what arrives on it, when it is late, and what its end means for the next step."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from enum import Enum, auto

from ..api import WatchEvent
from ..errors import ApiError, IdleTimeoutError, TransportError
from ..protocols import WatchStream

VERY_SHORT = 1.0
"""Seconds: a watch that ends sooner without one event says that its version is no good."""

HEALTHY = 5.0
"""Seconds that a watch must live for its end to be an ordinary one, unless the server was asked to end it sooner."""

IDLE_GRACE = 5.0
"""Seconds over the server's own timeout after which a silent watch counts as half-open."""


class OpenWatch:
    """A watch stream with its deadline.

    Args:
        stream: The events.
        started: Loop time when the request was sent.
        timeout: Seconds after which the server was asked to end it.
        from_any: Whether it was opened at ``""`` or ``"0"``, so that its first ADDED events are the collection.

    Attributes:
        events: Events taken from it, bookmarks among them, those that were dropped not: counted by who takes them.
    """

    def __init__(self, stream: WatchStream, started: float, timeout: float, from_any: bool = False) -> None:
        self._stream: WatchStream | None = stream
        self._idle_timeout = timeout + IDLE_GRACE
        self._healthy_after = min(HEALTHY, timeout)
        self.started = started
        self._returned: list[WatchEvent] = []
        self.from_any = from_any
        self.events = 0

    def is_healthy(self, now: float) -> bool:
        """Whether, at a loop time, it has lived for long enough for its end to be an ordinary one."""
        return now - self.started >= self._healthy_after

    async def next_batch(self, deadline: float | None = None) -> list[WatchEvent] | None:
        """The events that arrived next, or None at the end of the stream.

        Args:
            deadline: Loop time by which they must come, if sooner than the idle timeout.

        Raises:
            IdleTimeoutError: Nothing came in time.
        """
        if self._stream is None:
            return None
        if self._returned:
            returned, self._returned = self._returned, []
            return returned
        idle = asyncio.get_running_loop().time() + self._idle_timeout
        timeout = asyncio.timeout_at(idle if deadline is None else min(deadline, idle))
        try:
            async with timeout:
                batch = await anext(self._stream)
        except StopAsyncIteration:
            return None
        except TimeoutError as error:
            if timeout.expired():
                raise IdleTimeoutError("the watch is open but nothing arrives") from error
            raise TransportError(f"the watch timed out: {error}") from error
        return batch if isinstance(batch, list) else [batch]

    def give_back(self, events: list[WatchEvent]) -> None:
        """Let events that were taken be the next to arrive."""
        self._returned = events

    async def aclose(self) -> None:
        """Close the stream, if it can be closed; once."""
        stream, self._stream = self._stream, None
        close: Callable[[], Awaitable[None]] | None = getattr(stream, "aclose", None)
        if close is not None:
            await close()


class Next(Enum):
    """What to do after a watch has ended."""

    REWATCH = auto()
    BACK_OFF_AND_REWATCH = auto()
    RELIST = auto()


def after_failed_start(error: Exception) -> Next:
    """A watch could not be opened. An overloaded or unreachable server says nothing about the version."""
    overloaded = isinstance(error, ApiError) and error.is_too_many_requests
    return Next.BACK_OFF_AND_REWATCH if overloaded or isinstance(error, TransportError) else Next.RELIST


def after_end(
    error: Exception | None, lived: float, events: int, *, healthy: bool, retry_internal_error: bool
) -> Next:
    """An open watch has ended.

    Args:
        error: What ended it: an ApiError that came as an ERROR event, a TransportError, or None at a clean end.
        lived: Seconds since its request.
        events: Events taken from it, bookmarks among them.
        healthy: Whether that was long enough for an ordinary end.
        retry_internal_error: Whether internal errors of the server are still to be ridden out.
    """
    if isinstance(error, ApiError):
        if error.is_too_many_requests or (error.is_internal_error and retry_internal_error):
            return Next.BACK_OFF_AND_REWATCH
        return Next.RELIST
    if error is not None and not isinstance(error, TransportError):
        return Next.RELIST
    if lived < VERY_SHORT and not events:
        return Next.RELIST
    return Next.REWATCH if healthy else Next.BACK_OFF_AND_REWATCH


class InternalErrorRetries:
    """How long internal errors are ridden out (client-go ``RetryWithDeadline``).

    Args:
        duration: Seconds from the first error on; 0 for not at all.
    """

    RESET_AFTER = 60.0

    def __init__(self, duration: float) -> None:
        self._duration = duration
        self._first = self._last = float("-inf")

    def allow(self, now: float) -> bool:
        """An internal error came at this time: whether to watch on rather than list again."""
        if now - self._last >= self.RESET_AFTER:
            self._first = now
        self._last = now
        return self._duration > 0 and now - self._first <= self._duration
