"""What a reflector has done, and what it has met with: for its state, and for the log."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from time import monotonic
from typing import Any

from ..errors import KNOWN_REASONS, ApiError, DecodeError, RejectedObjectError, said, traceback_of
from .state import POLLING, Phase, ReflectorState, has_no_watches

logger = logging.getLogger(__name__)

LOGGED = 20
"""Lines about single objects, of each kind, from one list to the next: a wrong object type must not flood the log."""

POLLING_REMINDER = 600.0
"""Seconds from one WARNING that a collection cannot be watched to the next."""


class _Lines:
    """The lines of one kind about single objects; further ones are as good as one.

    Args:
        name: What logs call the reflector.
        objects: Those that they are about.
    """

    def __init__(self, name: str, objects: str) -> None:
        self._name = name
        self._objects = objects
        self._wanted = 0

    def list_begun(self) -> None:
        """Tell of the next ones again."""
        self._wanted = 0

    def tell(self, line: str, *values: object) -> None:
        """Log that, unless there were as many."""
        self._wanted += 1
        if self._wanted <= LOGGED:
            logger.error(line, *values)
        elif self._wanted == LOGGED + 1:
            logger.error("%s: further %s are only counted, until the next list", self._name, self._objects)


def _kind_of(error: Exception) -> tuple[Any, ...]:
    if isinstance(error, ApiError):  # without reasons of the server's own: they have no bound
        return type(error), error.status, error.reason if error.reason in KNOWN_REASONS else ""
    return (type(error),)


def _reason_of(error: Exception) -> str:
    """What an error counts under: of those reasons that there may be, or without one the HTTP status or the type."""
    if isinstance(error, ApiError):
        return error.reason if error.reason in KNOWN_REASONS else str(error.status)
    return type(error).__name__


class ReflectorStats:
    """Phase, counters and errors of one reflector, and of what processes what it has read. It decides nothing.

    Args:
        name: What logs call the reflector.

    Attributes:
        listed: Objects that the list under way has brought so far, or the last one in all.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._phase = Phase.NEW
        self._phase_since: float | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_ahead = 0.0  # of the monotonic clock, in seconds
        self._last_activity: float | None = None
        self._logged: set[tuple[Any, ...]] = set()  # kinds of errors since things were well
        self._lists = self._watches = self._events = 0
        self._failed_lists: dict[str, int] = {}
        self._failed_watches: dict[str, int] = {}
        self._failures = self._failed_lists  # of what was asked for last
        self._polls = 0  # lists in a row after which no watch could be opened
        self._watch_refusal: Exception | None = None
        self._remind_at = 0.0  # loop time
        self._rejected = 0
        self._dropped = _Lines(name, "dropped objects")
        self._unprocessed = _Lines(name, "objects that cannot be processed")
        self._last_error: Exception | None = None
        self._answered = 0.0
        self._recovery: asyncio.TimerHandle | None = None  # nothing may arrive on a watch for a minute
        self.listed = 0

    def enter(self, phase: Phase) -> None:
        """It does this now."""
        if phase is not self._phase:
            self._phase = phase
            self._loop = asyncio.get_running_loop()
            self._phase_since = self._loop.time()
            self._loop_ahead = self._phase_since - monotonic()

    def list_begun(self) -> None:
        """A list, or the stream that stands for one, is asked for."""
        self._lists += 1
        self._failures = self._failed_lists
        self.listed = 0
        self._dropped.list_begun()
        self._unprocessed.list_begun()

    def went_back(self, version: str, before: str) -> None:
        """A list is of a lower version than what was read before."""
        logger.warning(
            "%s: the server has gone back, as where etcd was restored or a cluster made anew: it lists at %s what was "
            "read up to %s. Start the process anew: handlers may have missed changes, and watches from versions that "
            "the server has not reached bring nothing",
            self._name, version, before,
        )  # fmt: skip

    def watch_begun(self) -> None:
        """A watch is asked for."""
        self._watches += 1
        self._failures = self._failed_watches

    def received(self, events: int = 0, *, is_news: bool = True) -> None:
        """Something came from the server, so many events among it; an error alone is no news."""
        if is_news:
            self._last_activity = asyncio.get_running_loop().time()
        self._events += events

    def watching(self, well_from: float) -> None:
        """A watch was answered, and is open; things are well again if it still is at this loop time."""
        self.enter(Phase.WATCHING)
        loop = asyncio.get_running_loop()
        self._answered = loop.time()
        self._recovery = loop.call_at(well_from, self._proved)

    def watch_ended(self, *, is_refused: bool = True) -> None:
        """That watch is open no more. Its answer counts, too, unless it was a refusal with the status of success."""
        if self._recovery is not None:
            self._recovery.cancel()
            self._recovery = None
            if not is_refused:
                self._record_answer()

    def _proved(self) -> None:
        self._record_answer()
        self.well()
        self.can_watch()

    def can_watch(self) -> None:
        """A watch has brought something, or was open for long enough."""
        self._polls, self._watch_refusal, self._remind_at = 0, None, 0.0

    def cannot_watch(self, error: Exception, version: str) -> None:
        """After a list no watch could be opened, or it was over at once, so that the next thing is another list.

        What may pass, such as an internal error of the server, counts from the second time on.

        Args:
            error: Why.
            version: The list's.
        """
        refused = isinstance(error, ApiError) and 400 <= error.status < 500
        if isinstance(error, ApiError) and (error.is_expired or error.is_too_large_resource_version):
            return
        self._polls += 1
        if not refused and self._polls < 2:
            return
        self._watch_refusal = error
        now = asyncio.get_running_loop().time()
        if now < self._remind_at:
            return
        is_first, self._remind_at = not self._remind_at, now + POLLING_REMINDER
        if has_no_watches(error, version):
            self._remind_at = float("inf")
            logger.info("%s: %s, as the server has no watches of it", self._name, POLLING)
        elif not is_first or isinstance(error, ApiError):  # the first of any others has just been logged
            logger.warning(
                "%s: %s, so changes come late: %s. Allow the verb watch; let watches through proxies",
                self._name, POLLING, said(error),
            )  # fmt: skip
        self._logged.add(_kind_of(error))

    def _record_answer(self) -> None:
        self._last_activity = max(self._last_activity or self._answered, self._answered)

    def well(self) -> None:
        """Things are well again."""
        self._last_error = None
        self._logged.clear()

    def failed(self, error: Exception) -> bool:
        """Something went wrong; whether the first of its kind since things were well."""
        self.watch_ended()  # if it has not, a resync has failed, which will end it
        self._last_error = error
        kind = _kind_of(error)
        expired = isinstance(error, ApiError) and error.is_expired
        is_first = not self._logged if expired else kind not in self._logged  # after an outage all have
        self._logged.add(kind)
        return is_first

    def request_failed(self, error: Exception) -> None:
        """The list or watch that was asked for last has failed. After a list it is not known whether a watch would."""
        reason = _reason_of(error)
        self._failures[reason] = self._failures.get(reason, 0) + 1
        if self._failures is self._failed_lists:
            self._polls, self._watch_refusal = 0, None

    def _read_to(self, version: str) -> str:
        """What it is called, and how far it has read, once it has."""
        return f"{self._name} at {version}" if version else self._name

    def log_failure(self, error: Exception, version: str, *, is_news: bool) -> None:
        """Tell of what went wrong; at DEBUG what was told before."""
        expected = isinstance(error, ApiError) and error.is_expired
        level = logging.DEBUG if not is_news else logging.INFO if expected else logging.WARNING
        logger.log(
            level, "%s: %s", self._read_to(version), said(error),
            exc_info=traceback_of(error) if is_news else None,
        )  # fmt: skip

    def rejected(self, error: RejectedObjectError | DecodeError, version: str) -> None:
        """Objects were dropped."""
        errors = error.all() if isinstance(error, RejectedObjectError) else (error,)
        self._rejected += len(errors)
        for each in errors:
            self._dropped.tell("%s: dropped an object: %s", self._read_to(version), each)

    def unprocessed(self, error: RejectedObjectError) -> None:
        """Objects could not be processed, or not be indexed."""
        for each in error.all():
            self._unprocessed.tell("%s: processing failed: %s", self._name, each)

    def state(
        self, version: str, retry_at: float | None, waiting_for: str | None, probe_error: Exception | None
    ) -> ReflectorState:
        """A snapshot, for any thread.

        Args:
            version: The version up to which it has read.
            retry_at: Loop time of the next try; None while none is waited for.
            waiting_for: The server that has to answer before.
            probe_error: What asking it has met with last.
        """
        now = self._now_anywhere()
        return ReflectorState(
            name=self._name,
            phase=self._phase,
            phase_seconds=0.0 if self._phase_since is None else now - self._phase_since,
            resource_version=version,
            idle_seconds=None if self._last_activity is None else now - self._last_activity,
            last_error=self._last_error,
            retry_seconds=None if retry_at is None else max(0.0, retry_at - now),
            waiting_for=waiting_for,
            probe_error=probe_error,
            listed=self.listed,
            lists=self._lists,
            watches=self._watches,
            events=self._events,
            rejected=self._rejected,
            watch_refusal=self._watch_refusal,
            failed_lists=self._failed_lists.copy(),
            failed_watches=self._failed_watches.copy(),
        )

    def _now_anywhere(self) -> float:
        """Loop time, also for who asks from another thread, or after the end."""
        with suppress(RuntimeError):
            if (loop := asyncio.get_running_loop()) is self._loop:
                return loop.time()
        return max(monotonic() + self._loop_ahead, self._phase_since or 0.0, self._last_activity or 0.0)
