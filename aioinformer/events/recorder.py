"""EventRecorder: reports to people what happened to an object, by Events (client-go ``tools/events``)."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from random import Random, SystemRandom
from time import time
from types import TracebackType
from typing import Any, Literal

import anyio

from .._core.checks import (
    is_subdomain,
    require_count,
    require_qualified_name,
    require_seconds,
    require_text,
)
from .._core.tasks import NOT_STARTED_WARNING_DELAY, Running
from .._core.texts import valid_text
from ..errors import (
    AioInformerError,
    AlreadyExistsError,
    ApiError,
    ClientClosedError,
    ConfigError,
    DecodeError,
    NotFoundError,
    RefusedError,
    TooManyRequestsError,
    message_of,
)
from ..objects.meta import micro_time
from ..resources import Resource
from .references import Reference, reference_of
from .series import FINISH_TIME, EventKey, Series, SeriesCache
from .token_buckets import TokenBuckets

logger = logging.getLogger(__name__)

EventType = Literal["Normal", "Warning"]

QUEUE_LIMIT = 1000
MOST_TRIES = 12
RETRY_PAUSE = 10.0
RETRY_JITTER = 0.25
OTHERS_SHARE = 0.01
"""Share of the pause after a failed event in which no event is sent at all, to spare a server in trouble."""
LONGEST_NAME = 128
LONGEST_NOTE = 1024


@dataclass(frozen=True, slots=True)
class EventRecorderState:
    """A snapshot of a recorder.

    Attributes:
        recorded: Calls of ``event``.
        sent: Successful requests.
        queued: Events that wait to be sent.
        series: Events that are kept to count their repetitions.
        over_budget: Events dropped because their object had too many.
        overflowed: Events dropped because the queue was full.
        refused: Events that the server refused.
        given_up: Events dropped after many tries, or unsent when the recorder ended.
        last_error: Why the last failed request failed.
    """

    recorded: int
    sent: int
    queued: int
    series: int
    over_budget: int
    overflowed: int
    refused: int
    given_up: int
    last_error: Exception | None

    @property
    def dropped(self) -> int:
        """Events dropped for any reason."""
        return self.over_budget + self.overflowed + self.refused + self.given_up


class EventRecorder(Running):
    """Writes Events (events.k8s.io/v1) about objects, in the background.

    Use it as an async context manager; or ``await run()``. ``event`` may be called earlier; its events are sent once
    the recorder runs. Leaving sends the remaining events, for a while. If events cannot be sent because the recorder
    was never started, or has ended, it logs a WARNING, once each.

    Repeated events (the same type, reason, action, objects and note) form a series. The second event is written at
    once; later ones are counted. The recorder checks series every six minutes. It writes the count 6 to 12 minutes
    after the last repetition, when the series ends, and every 30 to 36 minutes of a series that continues.

    Guarantees:
        ``event`` never waits, and never fails because of the server. Dropped events are counted in ``state``. At most
        ``queue_limit`` events wait, 1000 by default.

    Args:
        client: A Client, or the ApiClient of kubernetes_asyncio or kubernetes.aio.
        controller: The controller's name, such as ``"example.com/cave-controller"``.
        instance: The name of this process; None for the names of controller and host.
        burst: Events that an object may have at once, per type; at least 1. Events that differ only in their notes use
            one of them, and then a budget of the same size of their own.
        refill: Seconds until an object may have another event; 0 for no limit.
        queue_limit: Events that may wait.
        flush_timeout: Seconds that leaving may take.
        wall: The wall clock, for the times of events.
        random: The source of the jitter.

    Raises:
        ConfigError: The controller's name or a number is invalid.
    """

    def __init__(
        self,
        client: Any,
        controller: str,
        instance: str | None = None,
        *,
        burst: int = 25,
        refill: float = 300.0,
        queue_limit: int = QUEUE_LIMIT,
        flush_timeout: float = 5.0,
        wall: Callable[[], float] | None = None,
        random: Random | None = None,
    ) -> None:
        require_count("burst", burst, least=1)
        require_count("queue_limit", queue_limit)
        require_seconds("refill", refill)
        require_seconds("flush_timeout", flush_timeout)
        _require_name("controller", controller)
        require_qualified_name("controller", controller)
        if instance is not None:
            require_text("instance", instance)
        self.controller = controller
        self.instance = _cut(
            instance or f"{controller.rpartition('/')[2]}-{socket.gethostname()}", LONGEST_NAME
        )
        self._events = Resource(client, "events.k8s.io/v1", "events", dict, kind="Event")
        self._budget = TokenBuckets(burst, refill) if refill else None
        self._queue_limit = queue_limit
        self._flush_timeout = flush_timeout
        self._wall = wall or time
        self._random = random or SystemRandom()
        self._cache = SeriesCache()
        self._wake_up = asyncio.Event()
        self._stamp = 0
        self._refused_statuses: set[int] = set()
        self._has_warned_of_end = False
        self._resume_at = 0.0
        self._retry_pause = RETRY_PAUSE
        self._is_flushed = False
        self._recorded = self._sent = 0
        self._over_budget = self._overflowed = self._refused = self._given_up = 0
        self._last_error: Exception | None = None

    def __repr__(self) -> str:
        return f"<EventRecorder {self.controller}>"

    @property
    def state(self) -> EventRecorderState:
        """A snapshot."""
        return EventRecorderState(
            recorded=self._recorded,
            sent=self._sent,
            queued=len(self._cache.queue),
            series=len(self._cache.known),
            over_budget=self._over_budget,
            overflowed=self._overflowed,
            refused=self._refused,
            given_up=self._given_up,
            last_error=self._last_error,
        )

    def event(
        self, obj: Any, type: EventType, reason: str, note: str, *, action: str = "", related: Any = None
    ) -> None:
        """Record that something happened to an object.

        Args:
            obj: The object, with its kind; or a reference to it, as a dict.
            type: ``"Normal"`` or ``"Warning"``.
            reason: The reason, for machines: ``"Provisioned"``.
            note: What happened, for people; cut after a kilobyte.
            action: What was done or failed; ``""`` for the reason.
            related: Another object.

        Raises:
            ConfigError: The arguments cannot form an event.
            WrongEventLoopError: The recorder runs in another event loop or thread.
        """
        self.require_own_loop()
        if type not in ("Normal", "Warning"):
            raise ConfigError(f"an event's type must be 'Normal' or 'Warning', not {type!r}")
        _require_name("reason", reason)
        _require_name("action", action or reason)
        require_text("note", note)
        regarding = reference_of(obj)
        other = None if related is None else reference_of(related)
        self._recorded += 1
        if self._is_flushed:
            self._given_up += 1
            if not self._has_warned_of_end:
                self._has_warned_of_end = True
                logger.warning(
                    "%r has ended: it does not send %s of %s and later events",
                    self, reason, regarding["name"],
                )  # fmt: skip
            return
        loop = asyncio.get_running_loop()
        if self._recorded == 1 and not self._is_started:
            loop.call_later(NOT_STARTED_WARNING_DELAY, self._warn_if_not_started)
        now, micros = loop.time(), int(self._wall() * 1_000_000)
        note, identities = _cut(note, LONGEST_NOTE), (_identity(regarding), _identity(other or {}))
        key = EventKey(type, reason, action or reason, *identities, note)
        series = self._cache.repeat(key, now, micro_time(micros))
        if series is not None and (series.written_count != 1 or series in self._cache.queue):
            return  # counted, and written later
        is_full = len(self._cache.queue) >= self._queue_limit
        # Events that differ only in their notes use a bucket of their own, and spare that of other events.
        bucket: Hashable = key.kind if key.kind in self._cache.kinds else (type, key.regarding)
        bucket = bucket if series is None else series.bucket
        if is_full or (self._budget is not None and not self._budget.take(bucket, now)):
            if series is None:  # else the count is written when the series ends or is refreshed
                self._overflowed += is_full
                self._over_budget += not is_full
            return
        if series is None:
            event = self._event(micros, type, reason, action or reason, note, regarding, other)
            self._cache.add(Series(key, event, bucket, now, event["eventTime"]))
        else:
            self._cache.queue[series] = None
        self._wake_up.set()

    async def run(self) -> None:
        """Send recorded events until cancelled, then the remaining ones, for ``flush_timeout`` seconds.

        Cancellation: a second ``Task.cancel`` drops the remaining events.

        Raises:
            AlreadyStartedError: It was started before.
            ClientClosedError: The client was closed.
        """
        self.record_begin()
        try:
            await self._send_all()
        finally:
            await self._flush()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await super().__aexit__(kind, error, traceback)
        finally:
            if not self._has_begun:  # the task was cancelled before it started
                await self._flush()

    # -- recording -----------------------------------------------------------------------------------------

    def _warn_if_not_started(self) -> None:
        if not self._is_started:
            logger.warning(
                "%r was not started, so %d events wait: enter it (async with), or await its run()",
                self, len(self._cache.queue),
            )  # fmt: skip

    def _event(
        self,
        micros: int,
        type: str,
        reason: str,
        action: str,
        note: str,
        regarding: Reference,
        related: Reference | None,
    ) -> dict[str, Any]:
        self._stamp = max(self._stamp + 1, micros)  # unique, even if the clock stands still or goes back
        name = f"{regarding['name']}.{self._stamp * 1000:x}"
        if not is_subdomain(name):
            name = self._new_name()
        event = {
            "metadata": {"name": name, "namespace": regarding.get("namespace", "default")},
            "eventTime": micro_time(micros),
            "type": type,
            "reason": reason,
            "action": action,
            "note": note,
            "regarding": regarding,
            "reportingController": self.controller,
            "reportingInstance": self.instance,
        }
        return event if related is None else {**event, "related": related}

    def _new_name(self) -> str:
        """Return a unique name."""
        return f"{self._random.getrandbits(128):032x}"

    # -- sending -------------------------------------------------------------------------------------------

    async def _send_all(self) -> None:
        loop = asyncio.get_running_loop()
        tidy_at = loop.time() + FINISH_TIME
        while True:
            if loop.time() >= tidy_at:
                self._cache.tidy(loop.time(), self._queue_limit)
                tidy_at = loop.time() + FINISH_TIME
            self._wake_up.clear()
            due_at = await self._send_next()
            with anyio.move_on_after(min(tidy_at, due_at) - loop.time()):
                await self._wake_up.wait()

    async def _send_next(self) -> float:
        """Send the next event if it is due.

        Returns:
            The loop time when it was or will be due; infinity if no event waits.
        """
        series = self._cache.first()
        if series is None:
            return math.inf
        due_at = max(series.not_before, self._resume_at)
        if due_at <= asyncio.get_running_loop().time():
            await self._send(series)
        return due_at

    async def _send(self, series: Series) -> None:
        """Send an event. After a failure it is retried after a pause.

        Other events wait equally long if the server cannot be reached, and for its Retry-After; else only briefly.
        """
        try:
            await self._write(series)
        except ClientClosedError:
            raise
        except AioInformerError as error:
            self._last_error = error
            series.tries += 1
            if not _is_retryable(error):
                self._refused += 1
                self._drop(series)
                self._record_refusal(error)
            elif series.tries >= MOST_TRIES:
                self._given_up += 1
                self._drop(series)
                logger.error(
                    "%s: an event was dropped after %d tries: %s", self, MOST_TRIES, message_of(error)
                )
            else:
                logger.debug("%s: an event was not sent, and is retried: %s", self, message_of(error))
                now = asyncio.get_running_loop().time()
                pause = self._retry_pause * (1.0 + RETRY_JITTER * self._random.random())
                others = pause
                if isinstance(error, ApiError):
                    others = error.retry_after or OTHERS_SHARE * pause
                series.not_before = now + max(pause, others)
                self._resume_at = now + others

    async def _write(self, series: Series) -> None:
        """Create the Event, or update its count."""
        count = series.count
        if series.written_count == 0:
            was_sent, series.is_create_sent = series.is_create_sent, True
            try:
                await self._events.create(series.body())
            except AlreadyExistsError:
                if not was_sent:  # another process wrote about the object in the same microsecond
                    series.event["metadata"]["name"], series.is_create_sent = self._new_name(), False
                    raise
                count = 1  # an earlier try succeeded, but its answer was lost
        else:
            key = f"{series.event['metadata']['namespace']}/{series.event['metadata']['name']}"
            try:
                await self._events.patch(key, series.patch())
            except NotFoundError:  # the Event has expired
                await self._events.create(series.body())
        self._sent += 1
        series.written_count, series.tries = count, 0
        series.refreshed = asyncio.get_running_loop().time()
        if series.count > count and (series.is_over or count == 1):
            return  # repeated meanwhile: the second event and the last count are written at once
        if series.is_over:
            self._drop(series)
        else:
            self._cache.queue.pop(series, None)

    def _drop(self, series: Series) -> None:
        self._cache.queue.pop(series, None)
        self._cache.forget(series)

    def _record_refusal(self, error: AioInformerError) -> None:
        """Log a refused event: as a warning once per HTTP status, since all events may be refused alike."""
        status = error.status if isinstance(error, ApiError) else 0
        is_new = status not in self._refused_statuses
        self._refused_statuses.add(status)
        logger.log(
            logging.WARNING if is_new else logging.DEBUG,
            "%s: an event was refused and is dropped: %s", self, message_of(error),
        )  # fmt: skip

    async def _flush(self) -> None:
        if self._is_flushed:
            return
        self._is_flushed = True
        self._cache.finish()
        self._resume_at, self._retry_pause = 0.0, min(RETRY_PAUSE, self._flush_timeout / MOST_TRIES)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._flush_timeout
        why = "flush_timeout has passed"
        try:
            with anyio.move_on_after(self._flush_timeout, shield=True):
                while (due_at := await self._send_next()) < deadline:  # noqa: ASYNC110 - nothing is recorded now
                    await asyncio.sleep(due_at - loop.time())
        except ClientClosedError as error:
            why = message_of(error)
        except asyncio.CancelledError:
            why = "it was cancelled again"
            raise
        finally:
            if left := len(self._cache.queue):
                logger.warning("%s: %d events were dropped unsent: %s", self, left, why)
            self._given_up += left
            self._cache.queue.clear()


def _is_retryable(error: AioInformerError) -> bool:
    """Return whether another try may succeed."""
    passing = isinstance(error, (AlreadyExistsError, TooManyRequestsError))
    return passing or not isinstance(error, (RefusedError, DecodeError))


def _identity(reference: Reference) -> tuple[str, ...]:
    """Return what identifies a reference: all but the version."""
    return tuple(f"{field}={value}" for field, value in reference.items() if field != "resourceVersion")


def _cut(text: str, longest: int) -> str:
    """Cut a text to so many bytes, as the server counts."""
    raw = valid_text(text).encode()
    return raw.decode() if len(raw) <= longest else raw[: longest - 3].decode(errors="ignore") + "…"


def _require_name(name: str, value: object) -> None:
    require_text(name, value)
    if not value or _cut(str(value), LONGEST_NAME) != value:
        raise ConfigError(f"{name} must have 1 to {LONGEST_NAME} bytes of text, not {value!r:.200}")
