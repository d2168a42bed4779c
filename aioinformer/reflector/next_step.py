"""What to do after a watch has ended: watch again, back off, or relist (client-go ``handleAnyWatch``).

- 410 in the stream or when the watch is opened: relist.
- 429: back off, then watch again from the same version.
- Any other API error: relist, except internal errors while ``max_internal_error_retry_duration`` lasts.
- A broken connection, or a clean end: watch again, after a pause if the watch was short.
- A clean end within a second and without an event: relist, because the version may be bad.

Relists says how soon a list may follow.
"""

from __future__ import annotations

from enum import Enum
from math import inf

from ..errors import ApiError, DamagedError, TransportError
from .backoff import Backoff

VERY_SHORT = 1.0
"""Seconds: a watch that ends sooner and without an event suggests that its version is bad."""


class Next(Enum):
    """What to do after a watch has ended, in words for the log."""

    REWATCH = "watch again at once"
    BACK_OFF_AND_REWATCH = "watch again after a pause"
    RELIST = "list again"


def after_failed_start(error: Exception) -> Next:
    """Return the next step if a watch could not be opened.

    An overloaded or unreachable server says nothing about the version, so the watch is tried again from there.
    """
    overloaded = isinstance(error, ApiError) and error.is_too_many_requests
    return Next.BACK_OFF_AND_REWATCH if overloaded or isinstance(error, TransportError) else Next.RELIST


class ShortWatchBudget:
    """How many short watches, with events, are reopened at once.

    Each reopening costs one second; each second that a watch lives earns one, up to five. So a few cuts cost no time,
    and a stream that always ends right after it opens cannot make a hot loop.
    """

    LONGEST = 5.0

    def __init__(self) -> None:
        self._seconds = self.LONGEST

    def take(self, lived: float) -> bool:
        """Return whether the next watch may be opened at once, after one that lived for so many seconds."""
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
    budget: ShortWatchBudget,
) -> Next:
    """Return the next step after an open watch has ended.

    Args:
        error: What ended it: an ApiError from an ERROR event, a TransportError, or None for a clean end.
        lived: Seconds since its request.
        events: Events taken from it, including bookmarks.
        healthy: Whether it lived long enough for an ordinary end.
        retry_internal_error: Whether an internal error of the server leads to another watch.
        budget: Of short watches.
    """
    if isinstance(error, ApiError):
        if error.is_too_many_requests or (error.is_internal_error and retry_internal_error):
            return Next.BACK_OFF_AND_REWATCH
        return Next.RELIST
    if error is not None and not isinstance(error, TransportError):
        return Next.RELIST
    if lived < VERY_SHORT and not events:
        return Next.RELIST
    at_once = not isinstance(error, DamagedError) and budget.take(lived)
    return Next.REWATCH if at_once or healthy else Next.BACK_OFF_AND_REWATCH


class Relists:
    """When the last list was, and how soon the next one may follow. All times are the loop's.

    Args:
        missed_interval: Seconds, at least, from a list to one that makes up for events that could not be read.
    """

    def __init__(self, missed_interval: float) -> None:
        self._missed_interval = missed_interval
        self._listed_at = self._last_at_once = -inf
        self._is_at_once = False

    @property
    def has_listed(self) -> bool:
        """Whether any list succeeded."""
        return self._listed_at > -inf

    def record_list(self, now: float) -> None:
        """Record that a list succeeded."""
        self._listed_at = now

    def may_make_up(self, now: float) -> bool:
        """Return whether to list because the store may lack an object that could not be read."""
        return now - self._listed_at >= self._missed_interval

    def watch_ended(self, error: Exception | None, now: float, *, is_first: bool) -> None:
        """Record that a watch has ended and a list follows.

        After 410 in a later watch the list follows at once: the history expired during an outage, and another wait
        would only add to it. At most once in ``Backoff.CAP`` seconds, and never for the first watch after a list,
        which would expire again.
        """
        expired = not is_first and isinstance(error, ApiError) and error.is_expired
        self._is_at_once = expired and now - self._last_at_once >= Backoff.CAP
        if self._is_at_once:
            self._last_at_once = now

    def take_at_once(self) -> bool:
        """Return whether the next list follows at once. The one after it does not."""
        is_at_once, self._is_at_once = self._is_at_once, False
        return is_at_once


class InternalErrorRetries:
    """How long the server's internal errors lead to another watch instead of a list (client-go ``RetryWithDeadline``).

    Args:
        duration: Seconds from the first error on; 0 for none.
    """

    RESET_AFTER = 60.0

    def __init__(self, duration: float) -> None:
        self._duration = duration
        self._first = self._last = float("-inf")

    def allow(self, now: float) -> bool:
        """Return whether to watch again rather than relist, after an internal error at this time."""
        if now - self._last >= self.RESET_AFTER:
            self._first = now
        self._last = now
        return self._duration > 0 and now - self._first <= self._duration
