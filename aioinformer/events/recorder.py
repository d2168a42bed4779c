"""EventRecorder: tells people what was done to an object, by Events (client-go ``tools/events``)."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from time import time
from types import TracebackType
from typing import Any, Literal

from .._core.checks import (
    is_subdomain,
    require_count,
    require_qualified_name,
    require_seconds,
    require_text,
)
from .._core.tasks import NOT_STARTED_WARNING_DELAY, Running
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
    said,
)
from ..objects.meta import micro_time
from ..resources import Resource
from .budget import Budget
from .references import Reference, reference_of
from .series import FINISH_TIME, EventKey, Series, SeriesCache

logger = logging.getLogger(__name__)

EventType = Literal["Normal", "Warning"]

QUEUE_LIMIT = 1000
MOST_TRIES = 12
RETRY_PAUSE = 10.0
RETRY_JITTER = 0.25
OTHERS_SHARE = 0.01
"""Of the pause after a failure, what no other event is sent in: a server in trouble is not asked for each in a row."""
LONGEST_NAME = 128
LONGEST_NOTE = 1024


@dataclass(frozen=True, slots=True)
class EventRecorderState:
    """What a recorder has done.

    Attributes:
        recorded: How often ``event`` was called.
        sent: How many requests were successful.
        queued: How many events wait to be sent.
        series: How many events are remembered, for the next one of their kind.
        over_budget: How many were dropped because their object had too many of them.
        overflowed: How many were dropped because too many waited.
        refused: How many the server refused.
        given_up: How many could not be sent after many tries, or before the recorder was left.
        last_error: Why sending failed last.
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
        """How many nobody will see, for any reason."""
        return self.over_budget + self.overflowed + self.refused + self.given_up


class EventRecorder(Running):
    """Writes Events (events.k8s.io/v1) about objects, in the background.

    An async context manager; or ``await run()``. ``event`` may be called before, too: what is recorded is sent once it
    runs. Leaving sends what still waits, for a while. What would never be sent, as nobody enters the recorder or it was
    left, is a WARNING, once each.

    An event that comes again (the same type, reason, action, objects and note) is a series: the second one is written
    at once, from then on they are counted. The count is looked at every six minutes, and written 6
    to 12 minutes after the last one, when the series ends, or every 30 to 36 minutes of one that goes on.

    Guarantees:
        ``event`` never waits and never fails because of the server. What is dropped is counted in ``state``. Nothing
        is kept for ever: at most a thousand events wait.

    Args:
        client: A Client, or the ApiClient of kubernetes_asyncio or kubernetes.aio.
        controller: Who writes, such as ``"example.com/cave-controller"``.
        instance: Which one of its processes; None for the controller's and the host's names.
        burst: Events that an object may have at once, of each type; at least 1. Those that differ in their notes alone
            cost it one, and have as many of their own.
        refill: Seconds until it may have another one; 0 for no budget.
        queue_limit: Events that may wait.
        flush_timeout: Seconds that leaving may take.
        wall: The wall clock, for when things happened.
        random: Where jitter comes from.

    Raises:
        ConfigError: The name cannot be a controller's, or a number is none.
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
        self._budget = Budget(burst, refill) if refill else None
        self._queue_limit = queue_limit
        self._flush_timeout = flush_timeout
        self._wall = wall or time
        self._random = random or Random()
        self._cache = SeriesCache()
        self._news = asyncio.Event()
        self._stamp = 0
        self._told: set[int] = set()
        self._is_end_told = False
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
        """What it has done."""
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
            obj: What it is about: an object that says its kind, or a reference to one, as a dict.
            type: ``"Normal"`` or ``"Warning"``.
            reason: Why, for machines: ``"Provisioned"``.
            note: What happened, for people; what is beyond a kilobyte is left out.
            action: What was done or failed; ``""`` for the reason.
            related: A further object.

        Raises:
            ConfigError: The arguments cannot be an event.
            WrongEventLoopError: The recorder runs in another event loop or thread.
        """
        self.require_own_loop()
        if type not in ("Normal", "Warning"):
            raise ConfigError(f"an event's type is Normal or Warning, not {type!r}")
        _require_name("reason", reason)
        _require_name("action", action or reason)
        require_text("note", note)
        regarding = reference_of(obj)
        other = None if related is None else reference_of(related)
        self._recorded += 1
        if self._is_flushed:  # it was left: nobody sends any more
            self._given_up += 1
            if not self._is_end_told:
                self._is_end_told = True
                logger.warning(
                    "%r was left: %s of %s is not sent, nor is what else comes",
                    self, reason, regarding["name"],
                )  # fmt: skip
            return
        loop = asyncio.get_running_loop()
        if self._recorded == 1 and not self._is_started:
            loop.call_later(NOT_STARTED_WARNING_DELAY, self._name_unstarted)
        now, micros = loop.time(), int(self._wall() * 1_000_000)
        note, identities = _cut(note, LONGEST_NOTE), (_identity(regarding), _identity(other or {}))
        key = EventKey(type, reason, action or reason, *identities, note)
        series = self._cache.again(key, now, micro_time(micros))
        if series is not None and (series.told != 1 or series in self._cache.queue):
            return  # it is counted, and written with the rest
        is_full = len(self._cache.queue) >= self._queue_limit
        # What varies a note alone uses up its own budget, and not that of the object's other events.
        bucket: Hashable = key.kind if key.kind in self._cache.kinds else (type, key.regarding)
        bucket = bucket if series is None else series.bucket
        if is_full or (self._budget is not None and not self._budget.take(bucket, now)):
            if series is None:  # else it is counted, and written when the series ends or is refreshed
                self._overflowed += is_full
                self._over_budget += not is_full
            return
        if series is None:
            event = self._event(micros, type, reason, action or reason, note, regarding, other)
            self._cache.add(Series(key, event, bucket, now, event["eventTime"]))
        else:
            self._cache.queue[series] = None
        self._news.set()

    async def run(self) -> None:
        """Send what is recorded until cancelled, and then what still waits, for ``flush_timeout`` seconds.

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
            if not self._has_begun:  # cancelled before it began, the task has sent nothing
                await self._flush()

    # -- recording -----------------------------------------------------------------------------------------

    def _name_unstarted(self) -> None:
        if not self._is_started:
            logger.warning(
                "%r keeps %d events, as nobody has started it: enter it (async with), or await its run()",
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
        self._stamp = max(self._stamp + 1, micros)  # no two are the same, whatever the clock shows
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
        """One that nobody has, whatever it is about."""
        return f"{self._random.getrandbits(128):032x}"

    # -- sending -------------------------------------------------------------------------------------------

    async def _send_all(self) -> None:
        loop = asyncio.get_running_loop()
        tidy_at = loop.time() + FINISH_TIME
        while True:
            if loop.time() >= tidy_at:
                self._cache.tidy(loop.time(), self._queue_limit)
                tidy_at = loop.time() + FINISH_TIME
            self._news.clear()
            due_at = await self._send_next()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(min(tidy_at, due_at)):
                    await self._news.wait()

    async def _send_next(self) -> float:
        """Send what is due first, if it is.

        Returns:
            When that was or will be, in the loop's time; infinity if nothing waits.
        """
        series = self._cache.first()
        if series is None:
            return math.inf
        due_at = max(series.not_before, self._resume_at)
        if due_at <= asyncio.get_running_loop().time():
            await self._send(series)
        return due_at

    async def _send(self, series: Series) -> None:
        """Tell the server of an event. Where that fails, it is its turn again after a while.

        The others wait as long where the server cannot be reached, and until then where it says when; else a moment.
        """
        try:
            await self._tell(series)
        except ClientClosedError:
            raise
        except AioInformerError as error:
            self._last_error = error
            series.tries += 1
            if not _may_pass(error):
                self._refused += 1
                self._drop(series)
                self._record_refusal(error)
            elif series.tries >= MOST_TRIES:
                self._given_up += 1
                self._drop(series)
                logger.error("%s: an event was given up after %d tries: %s", self, MOST_TRIES, said(error))
            else:
                logger.debug("%s: an event was not sent: %s", self, said(error))
                now = asyncio.get_running_loop().time()
                pause = self._retry_pause * (1.0 + RETRY_JITTER * self._random.random())
                others = pause
                if isinstance(error, ApiError):
                    others = error.retry_after or OTHERS_SHARE * pause
                series.not_before = now + max(pause, others)
                self._resume_at = now + others

    async def _tell(self, series: Series) -> None:
        """One try."""
        count = series.count
        if series.told == 0:
            was_asked, series.is_asked = series.is_asked, True
            try:
                await self._events.create(series.body())
            except AlreadyExistsError:
                if not was_asked:  # another process has written about the object in the same microsecond
                    series.event["metadata"]["name"], series.is_asked = self._new_name(), False
                    raise
                count = 1  # the answer to an earlier try was lost
        else:
            key = f"{series.event['metadata']['namespace']}/{series.event['metadata']['name']}"
            try:
                await self._events.patch(key, series.patch())
            except NotFoundError:  # it has expired
                await self._events.create(series.body())
        self._sent += 1
        series.told, series.tries = count, 0
        series.refreshed = asyncio.get_running_loop().time()
        if series.count > count and (series.is_over or count == 1):
            return  # it came again meanwhile: the second one is written at once, and so is the last count
        if series.is_over:
            self._drop(series)
        else:
            self._cache.queue.pop(series, None)

    def _drop(self, series: Series) -> None:
        self._cache.queue.pop(series, None)
        self._cache.forget(series)

    def _record_refusal(self, error: AioInformerError) -> None:
        """Tell of each kind of refusal once: who may not write events may not write any."""
        status = error.status if isinstance(error, ApiError) else 0
        news = status not in self._told
        self._told.add(status)
        logger.log(
            logging.WARNING if news else logging.DEBUG, "%s: an event was refused: %s", self, said(error)
        )

    async def _flush(self) -> None:
        if self._is_flushed:
            return
        self._is_flushed = True
        self._cache.finish()
        self._resume_at, self._retry_pause = 0.0, min(RETRY_PAUSE, self._flush_timeout / MOST_TRIES)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._flush_timeout
        why = "they took too long"
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(deadline):
                    while (due_at := await self._send_next()) < deadline:  # noqa: ASYNC110 - nobody records any more
                        await asyncio.sleep(due_at - loop.time())
        except ClientClosedError as error:
            why = said(error)
        finally:
            if left := len(self._cache.queue):
                logger.warning("%s: %d events were not sent: %s", self, left, why)
            self._given_up += left
            self._cache.queue.clear()


def _may_pass(error: AioInformerError) -> bool:
    """Whether it may go better another time."""
    passing = isinstance(error, (AlreadyExistsError, TooManyRequestsError))
    return passing or not isinstance(error, (RefusedError, DecodeError))


def _identity(reference: Reference) -> tuple[str, ...]:
    """A reference without the version."""
    return tuple(f"{field}={value}" for field, value in reference.items() if field != "resourceVersion")


def _cut(text: str, longest: int) -> str:
    """At most so many bytes of it, which is what the server counts."""
    raw = text.encode(errors="replace")  # half a character is nothing that JSON could say
    return raw.decode() if len(raw) <= longest else raw[: longest - 3].decode(errors="ignore") + "…"


def _require_name(name: str, value: object) -> None:
    require_text(name, value)
    if not value or _cut(str(value), LONGEST_NAME) != value:
        raise ConfigError(f"{name} must have 1 to {LONGEST_NAME} bytes of text, not {value!r:.200}")
