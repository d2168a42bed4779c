"""One open watch: its events, and how long it may be silent."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import anyio

from .._core.cancellation import CALL_ERRORS, failure_of, maybe_await, time_limit
from .._core.timers import DeadlineTimer
from ..client.error_mapping import network_error, network_errors
from ..errors import IdleTimeoutError, TransportError, VeryShortWatchError
from ..objects.meta import ListOptions, WatchEvent
from ..protocols import ListerWatcher, WatchStream
from .next_step import VERY_SHORT

logger = logging.getLogger(__name__)

HEALTHY = 5.0
"""A watch that lived this many seconds has an ordinary end. Less if the server was asked to end it sooner."""

IDLE_GRACE = 5.0
"""A watch still open and silent this many seconds after the server should have ended it counts as half-open."""

MAX_SILENCE = 75.0
SILENCE_JITTER = 5.0
"""Seconds without an event after which the watch is reopened, plus up to SILENCE_JITTER. A kube-apiserver sends a
bookmark about every minute."""

LEAST_SILENCE = 60.0
"""Seconds of silence, at least, for servers without bookmarks: each watch makes at most one request a minute."""


def max_silence(random: Random) -> float:
    """Return the default limit of silence in seconds, with jitter so that not all watches are reopened together."""
    return MAX_SILENCE + SILENCE_JITTER * random.random()


CLOSE_GRACE = 10.0
"""Seconds to wait for a stream to close after its watch was cancelled."""


class Pulse:
    """How long the watches of one collection may be silent, and what a silence means.

    A lost connection looks like a collection that does not change. So a silent watch is closed, and the reflector
    watches again from the last version. If bookmarks were arriving before, the silence is an error. If none arrive, as
    from a server without bookmarks, it is an ordinary end.

    Args:
        max_silence: Seconds.

    Attributes:
        longest_silence: Seconds of silence after which to open another watch.
    """

    def __init__(self, max_silence: float = MAX_SILENCE) -> None:
        self._max_silence = max_silence
        self._expect_bookmarks(False)

    def _expect_bookmarks(self, expects_bookmarks: bool) -> None:
        self._expects_bookmarks = expects_bookmarks
        self.longest_silence = (
            self._max_silence if expects_bookmarks else max(self._max_silence, LEAST_SILENCE)
        )

    def record_interval(self, apart: float) -> None:
        """Record that two bookmarks of a watch arrived so many seconds apart."""
        self._expect_bookmarks(apart <= self._max_silence)

    def record_silence(self) -> bool:
        """Record a watch that was too silent; return whether bookmarks were expected. They no longer are."""
        expected = self._expects_bookmarks
        self._expect_bookmarks(False)
        return expected


class OpenWatch:
    """A watch stream with its deadline.

    Args:
        stream: The events.
        started: Loop time when the request was sent.
        timeout: Seconds after which the server was asked to end it.
        from_any: Whether it was opened at ``""`` or ``"0"``: then its first ADDED events are the collection.
        pulse: How long it may be silent.

    Attributes:
        started: Loop time when the request was sent.
        healthy_from: From this loop time on its end is an ordinary one.
        events: Events taken from it, including bookmarks, without dropped ones. The reader of the watch counts them.
        must_pause: Whether its reader must let other tasks run after each batch, because the stream may not.
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
        self._timer = DeadlineTimer(self._on_timer)
        self._deadline = math.inf  # loop time by which the read that waits must return
        self._reader: asyncio.Task[Any] | None = None
        self._is_overdue = False
        self._time: Callable[[], float]
        self._last_bookmark: float | None = None
        self.started = started
        self.healthy_from = started + min(HEALTHY, timeout)
        self._returned: list[WatchEvent] = []
        self.from_any = from_any
        self.events = 0
        self.must_pause = not getattr(stream, "pauses", False)

    def is_healthy(self, now: float) -> bool:
        """Whether, at this loop time, its end is an ordinary one."""
        return now >= self.healthy_from

    async def next_batch(self, deadline: float | None = None) -> list[WatchEvent] | None:
        """Return the next events; None at the end of the stream, or after a silence that counts as an ordinary end.

        Args:
            deadline: Loop time by which they must arrive; replaces the limit of silence.

        Raises:
            IdleTimeoutError: Nothing arrived in time.
        """
        if self._stream is None:
            return None
        if self._returned:
            returned, self._returned = self._returned, []
            return returned
        reader = self._reader or self.start_reading()
        now = self._time()
        until = now + self._pulse.longest_silence if deadline is None else deadline
        if until > now + self._idle_timeout:
            until = now + self._idle_timeout
        self._deadline = until
        if (
            until < self._timer.deadline
        ):  # it stays set from one read to the next: a timer costs as much as an event
            self._timer.fire_by(until)
        requests = reader.cancelling()
        try:
            batch = await self._stream.__anext__()
        except StopAsyncIteration:
            self._end_read(reader, requests)
            return None
        except CALL_ERRORS as error:
            is_overdue = self._end_read(reader, requests)
            if isinstance(error, Exception):
                if (converted := network_error(error)) is not None:
                    raise converted from error
                raise
            if not is_overdue:
                raise failure_of(error) from error
            ends_early = self._pulse.longest_silence < self._idle_timeout
            if deadline is None and not self._pulse.record_silence() and ends_early:
                return None
            raise IdleTimeoutError(
                f"the watch is open but nothing has arrived for {until - now:g} s"
            ) from error
        self._deadline = math.inf
        if reader.cancelling() > requests:
            self._end_read(reader, requests)
        return batch if isinstance(batch, list) else [batch]

    def start_reading(self) -> asyncio.Task[Any]:
        """Let the running task read from now on; the first one does so by itself. Returns the task."""
        self._time = asyncio.get_running_loop().time
        self._reader = asyncio.current_task()
        assert self._reader is not None
        return self._reader

    def _on_timer(self, now: float) -> None:
        """Cancel the read that is overdue, or wait for its deadline."""
        if now < self._deadline:
            if self._deadline < math.inf:
                self._timer.fire_by(self._deadline)
        elif self._reader is not None:
            self._is_overdue = True
            self._reader.cancel()

    def _end_read(self, reader: asyncio.Task[Any], requests: int) -> bool:
        """Undo the timer's cancellation; return whether there was one.

        Args:
            reader: The task that reads.
            requests: How often it had been cancelled before the read.

        Raises:
            asyncio.CancelledError: Others have cancelled it. The stream may have swallowed that.
        """
        self._deadline = math.inf
        is_overdue, self._is_overdue = self._is_overdue, False
        if is_overdue:
            reader.uncancel()
        if reader.cancelling() > requests:
            raise asyncio.CancelledError
        return is_overdue

    def very_short_end(self, now: float) -> VeryShortWatchError | None:
        """Return the error for a clean end at this loop time; None if that is an ordinary end."""
        lived = now - self.started
        if self.events or lived >= VERY_SHORT:
            return None
        return VeryShortWatchError(
            f"the watch was closed after {lived:.2f} s without an event, as by a proxy that does not allow watches"
        )

    def record_bookmark(self, now: float) -> None:
        """Record that a bookmark arrived at this loop time."""
        if self._last_bookmark is not None:
            self._pulse.record_interval(now - self._last_bookmark)
        self._last_bookmark = now

    def put_back(self, events: list[WatchEvent]) -> None:
        """Return these events from the next ``next_batch``."""
        self._returned = events

    async def aclose(self) -> None:
        """Close the stream, if it has ``aclose``. Idempotent."""
        self._timer.cancel()
        stream, self._stream = self._stream, None
        close: Callable[[], Awaitable[None]] | None = getattr(stream, "aclose", None)
        if close is not None:
            line = "The watch stream %r did not close within %g s; its connection may stay open"
            with anyio.CancelScope(shield=True):
                async with time_limit(CLOSE_GRACE, lambda: logger.warning(line, stream, CLOSE_GRACE)):
                    await maybe_await(close())


async def open_watch(
    list_watch: ListerWatcher, options: ListOptions, answer_timeout: float, pulse: Pulse | None = None
) -> OpenWatch:
    """Open a watch with any ListerWatcher. Network errors become TransportError.

    Args:
        list_watch: Opens the watch.
        options: Of the watch, including the seconds after which the server ends it.
        answer_timeout: Seconds without an answer after which opening fails.
        pulse: How long the watch may be silent.
    """
    started = asyncio.get_running_loop().time()
    late = TransportError(f"no answer to a watch for {answer_timeout:g} s")
    with network_errors():
        async with time_limit(answer_timeout, lambda: late):
            opened: Any = await maybe_await(list_watch.watch(options))
            stream: WatchStream = aiter(opened)
    from_any = not options.send_initial_events and options.resource_version in ("", "0")
    return OpenWatch(stream, started, options.timeout_seconds or 0, from_any, pulse)
