"""Counters, phase and errors of a reflector, for its state and for the log."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from time import monotonic
from typing import Any

from ..errors import KNOWN_REASONS, ApiError, DecodeError, RejectedObjectError, message_of, traceback_of
from .state import POLLING, Phase, ReflectorState, has_no_watches

logger = logging.getLogger(__name__)

LOGGED = 20
"""Log lines of each kind about single objects between two lists. A wrong object type must not flood the log."""

POLLING_REMINDER = 600.0
"""Seconds between two WARNINGs that a collection cannot be watched."""


REMOVED = (
    ". It was served before, so its definition was deleted; the cache is current again once it is installed"
)
"""Added to the log line about a resource that the server has no more."""


class _LimitedLog:
    """Logs the first LOGGED lines about single objects after each list.

    Args:
        name: The reflector's name in logs.
        objects: The objects that the lines are about.
    """

    def __init__(self, name: str, objects: str) -> None:
        self._name = name
        self._objects = objects
        self._count = 0

    def list_begun(self) -> None:
        """Start counting again."""
        self._count = 0

    def error(self, line: str, *values: object) -> None:
        """Log a line, unless LOGGED lines were logged since the last list."""
        self._count += 1
        if self._count <= LOGGED:
            logger.error(line, *values)
        elif self._count == LOGGED + 1:
            logger.error(
                "%s: more %s are counted but not logged until the next list", self._name, self._objects
            )


def _kind_of(error: Exception) -> tuple[Any, ...]:
    """Return what makes errors alike for the log. Unknown reasons do not count: a server may send any number."""
    if isinstance(error, ApiError):
        return type(error), error.status, error.reason if error.reason in KNOWN_REASONS else ""
    return (type(error),)


def _reason_of(error: Exception) -> str:
    """Return the name that an error is counted under: a known reason, else the HTTP status or the type."""
    if isinstance(error, ApiError):
        return error.reason if error.reason in KNOWN_REASONS else str(error.status)
    return type(error).__name__


class ReflectorStats:
    """Phase, counters and errors of one reflector. Records and logs; decides nothing.

    Args:
        name: The reflector's name in logs.

    Attributes:
        listed: Objects of the current list so far, or of the last one.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._phase = Phase.NEW
        self._phase_since: float | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_ahead = 0.0  # seconds from the monotonic clock to the loop's
        self._last_activity: float | None = None
        self._logged: set[tuple[Any, ...]] = set()  # kinds of errors logged since the last healthy watch
        self._lists = self._watches = self._events = 0
        self._failed_lists: dict[str, int] = {}
        self._failed_watches: dict[str, int] = {}
        self._failures = self._failed_lists  # of the last request
        self._polls = 0  # lists in a row that no working watch followed
        self._watch_refusal: Exception | None = None
        self._remind_at = 0.0  # loop time
        self._rejected = self._undecodable = 0
        self.is_absent = False
        self._dropped = _LimitedLog(name, "dropped objects")
        self._unfit = _LimitedLog(name, "undecodable objects")
        self._unprocessed = _LimitedLog(name, "objects that cannot be processed")
        self._last_error: Exception | None = None
        self._answered = 0.0
        self._recovery: asyncio.TimerHandle | None = (
            None  # a watch is healthy after a while even without events
        )
        self.listed = 0

    def enter(self, phase: Phase) -> None:
        """Record the phase that begins now."""
        if phase is not self._phase:
            self._phase = phase
            self._loop = asyncio.get_running_loop()
            self._phase_since = self._loop.time()
            self._loop_ahead = self._phase_since - monotonic()

    def list_begun(self) -> None:
        """Record that a list, or a streamed list, was requested."""
        self._lists += 1
        self._failures = self._failed_lists
        self.listed = 0
        self._dropped.list_begun()
        self._unfit.list_begun()
        self._unprocessed.list_begun()

    def went_back(self, version: str, before: str) -> None:
        """Warn that a list has a lower version than what was read before."""
        logger.warning(
            "%s: the server has gone back to lower versions, as after a restore of etcd or for a new cluster: it "
            "lists at %s, and changes up to %s were read before. Restart the process: handlers may have missed "
            "changes, and watches from versions that the server has not reached bring no events",
            self._name, version, before,
        )  # fmt: skip

    def watch_begun(self) -> None:
        """Record that a watch was requested."""
        self._watches += 1
        self._failures = self._failed_watches

    def record_answer(self, events: int = 0, *, is_progress: bool = True) -> None:
        """Record an answer with so many events. An answer that is only an error is no progress."""
        if is_progress:
            assert self._loop is not None  # a phase has begun
            self._last_activity = self._loop.time()
        self._events += events

    def record_watch(self, healthy_from: float) -> None:
        """Record that a watch is open. If it still is at this loop time, it is healthy."""
        self.enter(Phase.WATCHING)
        loop = asyncio.get_running_loop()
        self._answered = loop.time()
        self._recovery = loop.call_at(healthy_from, self._watch_is_healthy)

    def watch_ended(self, *, is_refused: bool = True) -> None:
        """Record that the watch has ended. Its answer counts as activity, unless its first event was an error."""
        if self._recovery is not None:
            self._recovery.cancel()
            self._recovery = None
            if not is_refused:
                self._record_answer()

    def _watch_is_healthy(self) -> None:
        self._record_answer()
        self.record_recovery()
        self.watch_works()

    def watch_works(self) -> None:
        """Record that a watch brought events, or was open long enough."""
        self._polls, self._watch_refusal, self._remind_at = 0, None, 0.0

    def watch_failed_after_list(self, error: Exception, version: str) -> None:
        """Record that the watch after a list failed or ended at once, so that the next step is another list.

        An error that may pass, such as an internal error of the server, counts from the second time on.

        Args:
            error: Why the watch failed.
            version: The list's version.
        """
        refused = isinstance(error, ApiError) and 400 <= error.status < 500
        if isinstance(error, ApiError) and (error.is_expired or error.is_too_large_resource_version):
            return
        if isinstance(error, ApiError) and error.is_missing_resource:
            return  # nothing is left to poll
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
            logger.info("%s: %s, because the server has no watches for it", self._name, POLLING)
        elif not is_first or isinstance(error, ApiError):  # the first of the others has just been logged
            logger.warning(
                "%s: %s, so changes arrive late: %s. Allow the verb watch, and let proxies pass watches",
                self._name, POLLING, message_of(error),
            )  # fmt: skip
        self._logged.add(_kind_of(error))

    def _record_answer(self) -> None:
        self._last_activity = max(self._last_activity or self._answered, self._answered)

    def record_recovery(self) -> None:
        """Forget the errors: a watch is healthy."""
        self._last_error = None
        self._logged.clear()

    def record_failure(self, error: Exception) -> bool:
        """Record an error; return whether it is the first of its kind since the last healthy watch."""
        self.watch_ended()  # a failed resync is about to end the watch
        self._last_error = error
        kind = _kind_of(error)
        expired = isinstance(error, ApiError) and error.is_expired
        is_first = (
            not self._logged if expired else kind not in self._logged
        )  # after an outage every version has expired
        self._logged.add(kind)
        return is_first

    def record_absent(self) -> None:
        """Record that the server does not have the collection, which is optional."""
        if not self.is_absent:
            logger.info(
                "%s: the server does not have it, so it counts as empty; it is read within 30 s once it is served",
                self._name,
            )
        self.is_absent, self._last_error = True, None

    def record_served(self) -> None:
        """Record that the collection was read."""
        if self.is_absent:
            logger.info("%s: the server has it now", self._name)
        self.is_absent = False

    def request_failed(self, error: Exception) -> None:
        """Count the failure of the last list or watch. After a failed list it is unknown whether a watch would work."""
        reason = _reason_of(error)
        self._failures[reason] = self._failures.get(reason, 0) + 1
        if self._failures is self._failed_lists:
            self._polls, self._watch_refusal = 0, None

    def _read_to(self, version: str) -> str:
        """Return the name and the last version, for logs."""
        return f"{self._name} at {version}" if version else self._name

    def log_failure(self, error: Exception, version: str, *, is_new: bool) -> None:
        """Log an error, at DEBUG if it is not new."""
        expected = isinstance(error, ApiError) and error.is_expired
        level = logging.DEBUG if not is_new else logging.INFO if expected else logging.WARNING
        removed = isinstance(error, ApiError) and error.is_missing_resource and version
        logger.log(
            level, "%s: %s%s", self._read_to(version), message_of(error), REMOVED if removed else "",
            exc_info=traceback_of(error) if is_new else None,
        )  # fmt: skip

    def record_rejected(self, error: RejectedObjectError | DecodeError, version: str) -> None:
        """Count and log dropped objects."""
        errors = error.all() if isinstance(error, RejectedObjectError) else (error,)
        self._rejected += len(errors)
        for rejection in errors:
            self._dropped.error("%s: dropped an object: %s", self._read_to(version), rejection)

    def undecodable(self, error: DecodeError, version: str) -> None:
        """Count and log an object that does not fit the object type."""
        self._undecodable += 1
        self._unfit.error(
            "%s: an object does not fit its type, and only its metadata can be used: %s",
            self._read_to(version),
            error,
        )

    def log_unprocessed(self, error: RejectedObjectError) -> None:
        """Log objects that could not be processed or indexed."""
        for failure in error.all():
            self._unprocessed.error("%s: processing failed: %s", self._name, failure)

    def state(
        self, version: str, retry_at: float | None, waiting_for: str | None, probe_error: Exception | None
    ) -> ReflectorState:
        """Return a snapshot. Works in any thread.

        Args:
            version: The version up to which the reflector has read.
            retry_at: Loop time of the next attempt; None if it does not wait for one.
            waiting_for: The server that has to answer first.
            probe_error: The last error of the probe that checks that server.
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
            undecodable=self._undecodable,
            absent=self.is_absent,
            watch_refusal=self._watch_refusal,
            failed_lists=self._failed_lists.copy(),
            failed_watches=self._failed_watches.copy(),
        )

    def _now_anywhere(self) -> float:
        """Return the loop time, also in another thread or after the loop has ended."""
        with suppress(RuntimeError):
            if (loop := asyncio.get_running_loop()) is self._loop:
                return loop.time()
        return max(monotonic() + self._loop_ahead, self._phase_since or 0.0, self._last_activity or 0.0)
