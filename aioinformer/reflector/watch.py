"""One open watch: what arrives on it, when it is late, and what its end means for the next step."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from enum import Enum
from random import Random
from typing import Any

import anyio

from .._core.tasks import maybe_await, raise_if_cancelled
from .._core.timers import ReusableTimeout
from ..client.error_mapping import network_error, network_errors
from ..errors import ApiError, DamagedError, IdleTimeoutError, TransportError, VeryShortWatchError
from ..objects.meta import ListOptions, WatchEvent
from ..protocols import ListerWatcher, WatchStream

logger = logging.getLogger(__name__)

VERY_SHORT = 1.0
"""Seconds: a watch that ends sooner without one event says that its version is no good."""

HEALTHY = 5.0
"""Seconds that a watch must live for its end to be an ordinary one, unless the server was asked to end it sooner."""

IDLE_GRACE = 5.0
"""Seconds over the server's own timeout after which a silent watch counts as half-open."""

MAX_SILENCE = 75.0
SILENCE_JITTER = 5.0
"""Seconds without an event after which a watch is opened again, and up to how many more. A kube-apiserver sends a
bookmark about every minute."""

LEAST_SILENCE = 60.0
"""Seconds of silence, at least, where no bookmarks are known to come: one request a minute at most for each watch."""


def max_silence(random: Random) -> float:
    """Seconds of silence where nobody says: a little different for each reader, for not all to ask again at once."""
    return MAX_SILENCE + SILENCE_JITTER * random.random()


CLOSE_GRACE = 10.0
"""Seconds that a stream may take to close after its watch was cancelled."""


class Pulse:
    """How long the watches of one collection may be silent, and what it means if one is.

    A connection that is lost without a word looks like a collection that does not change. So a silent watch is closed,
    and another one is opened from the last version. Where bookmarks were coming that is an error; where none come, as
    from a server that has none, it is the ordinary end of a watch.

    Args:
        max_silence: Seconds.
    """

    def __init__(self, max_silence: float = MAX_SILENCE) -> None:
        self._max_silence = max_silence
        self._expects_bookmarks = False

    def bookmarks_came(self, apart: float) -> None:
        """Two bookmarks of a watch came so many seconds apart."""
        self._expects_bookmarks = apart <= self._max_silence

    def longest_silence(self) -> float:
        """Seconds after which to open another watch."""
        return self._max_silence if self._expects_bookmarks else max(self._max_silence, LEAST_SILENCE)

    def was_silent(self) -> bool:
        """A watch was silent for so long; whether bookmarks should have come. They may not any more."""
        expected, self._expects_bookmarks = self._expects_bookmarks, False
        return expected


class OpenWatch:
    """A watch stream with its deadline.

    Args:
        stream: The events.
        started: Loop time when the request was sent.
        timeout: Seconds after which the server was asked to end it.
        from_any: Whether it was opened at ``""`` or ``"0"``, so that its first ADDED events are the collection.
        pulse: How long it may be silent.

    Attributes:
        started: Loop time when the request was sent.
        healthy_from: Loop time from which its end is an ordinary one.
        events: Events taken from it, bookmarks among them, those that were dropped not: counted by who takes them.
    """

    def __init__(
        self,
        stream: WatchStream,
        started: float,
        timeout: float,
        from_any: bool = False,
        pulse: Pulse | None = None,
    ) -> None:
        self._stream: WatchStream | None = stream
        self._idle_timeout = timeout + IDLE_GRACE
        self._pulse = pulse or Pulse()
        self._timeout = ReusableTimeout()
        self._bookmarked: float | None = None
        self.started = started
        self.healthy_from = started + min(HEALTHY, timeout)
        self._returned: list[WatchEvent] = []
        self.from_any = from_any
        self.events = 0

    def is_healthy(self, now: float) -> bool:
        """Whether, at a loop time, it has lived for long enough for its end to be an ordinary one."""
        return now >= self.healthy_from

    async def next_batch(self, deadline: float | None = None) -> list[WatchEvent] | None:
        """The events that arrived next, or None at the end of the stream, or of a silence that may be an ordinary one.

        Args:
            deadline: Loop time by which they must come, in place of how long it may be silent.

        Raises:
            IdleTimeoutError: Nothing came in time.
        """
        if self._stream is None:
            return None
        if self._returned:
            returned, self._returned = self._returned, []
            return returned
        now = asyncio.get_running_loop().time()
        end, quiet = now + self._idle_timeout, now + self._pulse.longest_silence()
        until = min(end, quiet if deadline is None else deadline)
        try:
            batch = await self._timeout.wait(anext(self._stream), until)
        except StopAsyncIteration:
            raise_if_cancelled()
            return None
        except Exception as error:
            raise_if_cancelled()
            if isinstance(error, TimeoutError) and self._timeout.has_expired:
                if deadline is None and not self._pulse.was_silent() and quiet < end:
                    return None
                raise IdleTimeoutError(
                    f"the watch is open but nothing has arrived for {until - now:g} s"
                ) from error
            if (found := network_error(error)) is not None:
                raise found from error
            raise
        raise_if_cancelled()
        return batch if isinstance(batch, list) else [batch]

    def ended_at_once(self, now: float) -> VeryShortWatchError | None:
        """What to say of its clean end at this loop time; None if it is an ordinary one."""
        lived = now - self.started
        if self.events or lived >= VERY_SHORT:
            return None
        return VeryShortWatchError(
            f"the watch was closed after {lived:.2f} s without an event, as by a proxy that lets no watch through"
        )

    def bookmark_came(self, now: float) -> None:
        """A bookmark was taken at this loop time."""
        if self._bookmarked is not None:
            self._pulse.bookmarks_came(now - self._bookmarked)
        self._bookmarked = now

    def give_back(self, events: list[WatchEvent]) -> None:
        """Let events that were taken be the next to arrive."""
        self._returned = events

    async def aclose(self) -> None:
        """Close the stream, if it can be closed; once."""
        self._timeout.close()
        stream, self._stream = self._stream, None
        close: Callable[[], Awaitable[None]] | None = getattr(stream, "aclose", None)
        if close is not None:
            with anyio.move_on_after(CLOSE_GRACE, shield=True) as grace:
                await close()
            if grace.cancelled_caught:
                logger.warning("%r did not close within %g s", stream, CLOSE_GRACE)


async def open_watch(
    list_watch: ListerWatcher, options: ListOptions, answer_timeout: float, pulse: Pulse | None = None
) -> OpenWatch:
    """Open a watch, by anybody's ListerWatcher: what the network raises is a TransportError.

    Args:
        list_watch: Opens it.
        options: Which; they say when the server is to end it.
        answer_timeout: Seconds without an answer after which it is given up.
        pulse: How long it may be silent.
    """
    started = asyncio.get_running_loop().time()
    with network_errors():
        with anyio.move_on_after(answer_timeout) as scope:
            opened: Any = await maybe_await(list_watch.watch(options))
            stream: WatchStream = aiter(opened)
        if scope.cancelled_caught:
            raise TransportError(f"no answer to a watch for {answer_timeout:g} s")
    from_any = not options.send_initial_events and options.resource_version in ("", "0")
    return OpenWatch(stream, started, options.timeout_seconds or 0, from_any, pulse)


class Next(Enum):
    """What to do after a watch has ended, in words for the log."""

    REWATCH = "watch again at once"
    BACK_OFF_AND_REWATCH = "watch again after a pause"
    RELIST = "list again"


def after_failed_start(error: Exception) -> Next:
    """A watch could not be opened. An overloaded or unreachable server says nothing about the version."""
    overloaded = isinstance(error, ApiError) and error.is_too_many_requests
    return Next.BACK_OFF_AND_REWATCH if overloaded or isinstance(error, TransportError) else Next.RELIST


class Allowance:
    """How often a watch that has had events is opened again at once, though it lived for a short time only.

    As long as they live for a second each, on the average of the last few. So one cut, or a row of them, costs no
    time, and a stream that ends again and again as soon as it is open does not make a hot loop.
    """

    LONGEST = 5.0

    def __init__(self) -> None:
        self._seconds = self.LONGEST

    def take(self, lived: float) -> bool:
        """A watch has lived for so many seconds; whether the next one may be opened at once."""
        self._seconds = min(self._seconds + lived, self.LONGEST)
        if self._seconds < VERY_SHORT:
            return False
        self._seconds -= VERY_SHORT
        return True


def after_end(
    error: Exception | None,
    lived: float,
    events: int,
    *,
    healthy: bool,
    retry_internal_error: bool,
    allowance: Allowance,
) -> Next:
    """An open watch has ended.

    Args:
        error: What ended it: an ApiError that came as an ERROR event, a TransportError, or None at a clean end.
        lived: Seconds since its request.
        events: Events taken from it, bookmarks among them.
        healthy: Whether that was long enough for an ordinary end.
        retry_internal_error: Whether internal errors of the server are still to be ridden out.
        allowance: Of watches that end soon.
    """
    if isinstance(error, ApiError):
        if error.is_too_many_requests or (error.is_internal_error and retry_internal_error):
            return Next.BACK_OFF_AND_REWATCH
        return Next.RELIST
    if error is not None and not isinstance(error, TransportError):
        return Next.RELIST
    if lived < VERY_SHORT and not events:
        return Next.RELIST
    at_once = not isinstance(error, DamagedError) and allowance.take(lived)
    return Next.REWATCH if at_once or healthy else Next.BACK_OFF_AND_REWATCH


class InternalErrorRetries:
    """How long internal errors are ridden out between two lists (client-go ``RetryWithDeadline``).

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
