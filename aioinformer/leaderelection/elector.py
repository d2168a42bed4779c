"""LeaderElector: a candidate leads as long as it renews a Lease (client-go ``tools/leaderelection``)."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from inspect import isawaitable
from random import Random, SystemRandom
from time import time
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import uuid4

import anyio

from .._core.callables import callable_name, require_plain
from .._core.cancellation import CALL_ERRORS
from .._core.checks import (
    require_namespace,
    require_object_name,
    require_seconds,
    require_text,
)
from .._core.forks import current_process, require_same_process
from .._core.loops import AsyncOnly
from .._core.tasks import finish, shield
from ..errors import (
    AlreadyExistsError,
    AlreadyStartedError,
    ApiError,
    ConfigError,
    ConflictError,
    ForkedError,
    LeadershipLostError,
    TransportError,
    WrongEventLoopError,
    message_of,
    traceback_of,
)
from ..resources import Resource
from .asleep import LEAST_SLEEP
from .asleep import asleep as machine_asleep
from .lease import MOST_TRANSITIONS, NO_HOLDER, LeaseLock, Record, Spec

logger = logging.getLogger(__name__)

R = TypeVar("R")

JITTER_FACTOR = 1.2

WARN_EVERY = 300.0
"""Seconds between warnings about the same failure."""


@dataclass(frozen=True, slots=True)
class LeaderElectorState:
    """A snapshot of an elector.

    Attributes:
        lease: The Lease's key.
        identity: This candidate's identity.
        is_leader: Whether this candidate leads for certain.
        leader: The last known holder of the Lease; ``""`` if it has none.
        transitions: How often the Lease's holder had changed; for a leader (also while it is being cancelled), when it
            began to lead. A later leader has a higher number, so a receiver can refuse writes that arrive too late.
            Exceptions: the count may restart at 0 if the Lease is deleted or emptied meanwhile; a candidate that takes
            up its own Lease after a restart keeps the number; the number stops at 2147483647.
        renewed_seconds: Seconds since the last successful renewal was sent; None if it never led.
        last_error: Why the last try failed; None if it succeeded.
    """

    lease: str
    identity: str
    is_leader: bool
    leader: str
    transitions: int
    renewed_seconds: float | None
    last_error: Exception | None


class LeaderElector(AsyncOnly):
    """Waits until this candidate leads, and cancels its work before another candidate can lead.

    ::

        async with elector:
            ...  # leads

    Entering waits for the Lease. The elector renews the Lease while the body runs. If it cannot renew it in time, it
    cancels the body, and leaving raises LeadershipLostError. Otherwise leaving gives the Lease back, so that the next
    candidate need not wait until it expires. ``await elector.run(work)`` does the same around a coroutine function.
    The elector may be entered again afterwards.

    Guarantees:
        As long as clocks run at about the same speed (their times do not matter), the body is cancelled
        ``lease_duration - renew_deadline`` seconds before another candidate takes the Lease: use that time to clean up.
        A body that ignores its cancellation, or a blocked event loop, breaks this guarantee; call
        ``require_leadership`` right before a write that must not be late. Time in which the machine sleeps counts:
        afterwards ``require_leadership`` raises at once, and the body is cancelled within ``retry_period``.

    Cancellation: the body ends first, then the Lease is released, even if the task is cancelled again meanwhile.

    Args:
        client: A Client, or the ApiClient of kubernetes_asyncio or kubernetes.aio.
        name: The Lease's name, the same for all candidates.
        namespace: The Lease's namespace.
        identity: This candidate's identity, different for all candidates; None for the host's name and a UUID, which
            entering renews in a forked process.
        lease_duration: Seconds that other candidates wait after they have seen the Lease change.
        renew_deadline: Seconds without a successful renewal after which the leadership is lost. They start when the
            last successful renewal was sent. A request may take half of them.
        retry_period: Seconds between tries. Candidates wait up to 2.2 times as long.
        release: Whether leaving gives the Lease back.
        labels: Labels for the Lease.
        on_new_leader: A plain function, called with the identity of each new leader, and with ``""`` when the Lease has
            no holder, as after a lost race for a new Lease.
        wall: The wall clock, for the timestamps in the Lease. It decides nothing.
        random: The source of the jitter.
        asleep: Returns the seconds that the machine has slept, from an arbitrary start; None compares CLOCK_BOOTTIME,
            or the wall clock without it, with the monotonic clock. It may be called in any thread.

    Raises:
        ConfigError: The durations do not fit together, or a name is invalid.
    """

    def __init__(
        self,
        client: Any,
        name: str,
        namespace: str,
        identity: str | None = None,
        *,
        lease_duration: float = 15.0,
        renew_deadline: float = 10.0,
        retry_period: float = 2.0,
        release: bool = True,
        labels: Mapping[str, str] | None = None,
        on_new_leader: Callable[[str], object] | None = None,
        wall: Callable[[], float] | None = None,
        random: Random | None = None,
        asleep: Callable[[], float] | None = None,
    ) -> None:
        for option, seconds in (
            ("lease_duration", lease_duration),
            ("renew_deadline", renew_deadline),
            ("retry_period", retry_period),
        ):
            require_seconds(option, seconds)
        if not lease_duration > renew_deadline > retry_period * JITTER_FACTOR > 0:
            raise ConfigError(
                f"lease_duration ({lease_duration:g}) must be greater than renew_deadline ({renew_deadline:g}), and "
                f"that greater than {JITTER_FACTOR} times retry_period ({retry_period:g})"
            )
        require_object_name("name", name)
        require_namespace("namespace", namespace)
        if on_new_leader is not None:
            require_plain("on_new_leader", on_new_leader)
        self._has_default_identity = identity is None
        self.identity = _unique_identity() if identity is None else identity
        require_text("identity", self.identity)
        if not self.identity:
            raise ConfigError("identity must not be empty")
        leases = Resource(
            client, "coordination.k8s.io/v1", "leases", dict, kind="Lease", timeout=renew_deadline / 2
        )  # half the time: a connection that fell silent leaves time for another one
        self._lock = LeaseLock(leases, namespace, name, labels or {}, wall or time)
        self._lease_duration = lease_duration
        self._renew_deadline = renew_deadline
        self._retry_period = retry_period
        self._release = release
        self._on_new_leader = on_new_leader
        self._random = random or SystemRandom()
        self._asleep = asleep or machine_asleep

        self._seen: Spec | None = None
        self._seen_at = 0.0
        self._record = NO_HOLDER
        self._term: int | None = None
        self._reported_leader: str | None = None
        self._last_error: Exception | None = None
        self._next_warning = 0.0

        self._process = current_process()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_entered = False
        self._renewed: tuple[float, float] | None = None  # loop time, and self._asleep() at that time
        self._may_hold_lease = False  # a write was sent, though its answer may be missing
        self._interruption: asyncio.Timeout | None = None  # of the body, once: it is user code
        self._lost: LeadershipLostError | None = None
        self._left_behind = ""
        self._expiry: asyncio.TimerHandle | None = None
        self._renewing: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<LeaderElector {self._lock.key} as {self.identity}>"

    @property
    def is_leader(self) -> bool:
        """Whether this candidate leads for certain: the renewal deadline has not passed.

        False in a process that was forked since: the parent process leads.
        """
        if self._process.was_forked:
            return False
        return self._renewing is not None and self._lost is None and self._is_in_time()

    @property
    def state(self) -> LeaderElectorState:
        """A snapshot. May be read in any thread."""
        term = self._term
        return LeaderElectorState(
            lease=self._lock.key,
            identity=self.identity,
            is_leader=self.is_leader,
            leader=self._record.holder,
            transitions=self._record.transitions if term is None else term,
            renewed_seconds=self._since_renewal(),
            last_error=self._last_error,
        )

    def require_leadership(self) -> None:
        """Check that this candidate leads; call it right before a write that must not be late.

        Raises:
            LeadershipLostError: It does not lead, or its leadership may have ended.
        """
        if not self.is_leader:
            why = "it leads in the parent process only" if self._process.was_forked else "it does not lead"
            raise self._lost or LeadershipLostError(self._lock.key, self.identity, why)

    def let_expire(self, left_behind: str) -> None:
        """Let the Lease expire instead of giving it back, since work of this leadership still runs.

        Args:
            left_behind: The work that still runs, for the log.
        """
        self._left_behind = left_behind

    async def run(self, work: Callable[[], Awaitable[R]]) -> R:
        """Wait until this candidate leads, and run the work while it does.

        Args:
            work: A coroutine function. It is cancelled when the leadership is lost.

        Returns:
            What the work returned.

        Raises:
            LeadershipLostError: The leadership was lost; the work has ended.
            AlreadyStartedError: This elector is entered already.
            ForkedError: It was created, with its identity, before this process was forked.
            ConfigError: The client's configuration is invalid, or ``work`` is not a coroutine function.
        """
        async with self:
            doing = work()
            if not isawaitable(doing):
                raise ConfigError(f"work must be an async function, and {callable_name(work)} is a plain one")
            return await doing

    async def __aenter__(self) -> Self:
        self._require_unique_identity()
        if self._is_entered:
            raise AlreadyStartedError(
                f"{self!r} is entered already, by another Manager or task: create an elector for each"
            )
        self._loop = asyncio.get_running_loop()
        self._is_entered, self._lost, self._may_hold_lease = True, None, False
        self._left_behind = ""
        try:
            await self._acquire()
        except BaseException:
            try:
                if self._may_hold_lease and self._release:  # the answer may be missing, not the Lease
                    await shield(self._give_back(), grace=self._renew_deadline)
            finally:
                self._is_entered = False
            raise
        self._term = self._record.transitions
        self._interruption = await asyncio.timeout(None).__aenter__()
        self._set_expiry()
        self._renewing = asyncio.create_task(self._renew(), name=f"{self!r} renewing")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        require_same_process(self._process, repr(self))  # a child must not give back the parent's Lease
        renewing, lost = self._renewing, self._lost
        assert renewing is not None
        assert self._interruption is not None
        assert self._expiry is not None
        self._renewing = None  # from here on the leadership has ended and cannot be lost
        ended = self._since_renewal()
        is_lost = lost is not None and kind is None
        try:
            await self._interruption.__aexit__(kind, error, traceback)
        except TimeoutError:
            is_lost = True
        try:
            try:
                await finish(renewing)
            finally:
                if lost is None and self._release:
                    await shield(self._give_back(), grace=self._renew_deadline)
        finally:
            self._expiry.cancel()
            self._is_entered, self._term = False, None
        if lost is not None:
            self._record_overrun(ended)
            if is_lost:
                raise lost

    def _require_unique_identity(self) -> None:
        """After a fork, take a new default identity: parent and children would lead as the same candidate."""
        if not self._process.was_forked:
            return
        if self._is_entered or not self._has_default_identity:
            raise ForkedError(
                f"{self!r} was created before this process was forked, and the processes would lead as the same "
                "candidate: create it after the fork, in each process, with an identity of its own"
            )
        self.identity, self._process = _unique_identity(), current_process()

    # -- acquiring and renewing ----------------------------------------------------------------------------

    async def _acquire(self) -> None:
        logger.info("%s: waiting for the lease", self)
        # After a blocked event loop the answer may be too old: then try again.
        while not (await self._try() and self._is_in_time()):  # noqa: ASYNC110 - no event says when the lease is free
            await asyncio.sleep(self._retry_period * (1.0 + JITTER_FACTOR * self._random.random()))
        logger.info("%s: leads", self)

    async def _renew(self) -> None:
        try:
            await asyncio.sleep(0)  # an eager task starts before self._renewing is set
            started = self._renewed[0] if self._renewed is not None else 0.0
            while self._lost is None and self._renewing is not None:  # a request may swallow the cancellation
                await asyncio.sleep(max(0.0, started + self._retry_period - self._now()))
                self._check_expiry()  # after a sleep of the machine the leadership is lost, even without a new holder
                started = self._now()
                if self._is_in_time() and await self._try():
                    self._set_expiry()
        except Exception as error:  # for example, the client was closed: renewing has ended
            self._lose(f"it cannot be renewed: {message_of(error)}", error)

    async def _try(self) -> bool:
        """Acquire or renew the Lease if possible. Returns whether this candidate holds it now."""
        try:
            holds = await self._take_or_renew()
        except (ConfigError, WrongEventLoopError):
            raise  # these errors do not go away
        except Exception as error:  # the next try may succeed
            self._record_failure(error)
            return False
        self._last_error = None
        self._report_leader()
        return holds

    async def _take_or_renew(self) -> bool:
        lock, record, started = self._lock, self._record, self._now()
        # After a failure the Lease may differ from what is known: perhaps only the answer got lost.
        is_known = lock.exists and self._last_error is None and started < self._seen_at + record.duration
        if record.holder == self.identity and is_known:
            try:
                return await self._write(lock.update, record.acquired, record.transitions)
            except ApiError as error:
                logger.debug("%s: not renewed at the first try: %s", self, error)
        spec = await lock.read()
        if spec is not None:
            self._see(spec)
        # A deleted Lease had a holder, which may not know yet that it was deleted.
        record = self._record
        acquired, transitions = "", min(record.transitions + (self._seen is not None), MOST_TRANSITIONS)
        if record.holder == self.identity:
            acquired, transitions = record.acquired, record.transitions
        elif record.holder and self._renewing is not None:
            self._lose(f"{record.holder} holds it")
            return False
        elif record.holder and self._seen_at + record.duration > started:
            self._may_hold_lease = False  # an earlier write did not succeed
            return False
        try:
            return await self._write(lock.create if spec is None else lock.update, acquired, transitions)
        except (AlreadyExistsError, ConflictError):
            return False

    async def _write(
        self, verb: Callable[[Record], Awaitable[Spec]], acquired: str, transitions: int
    ) -> bool:
        """Write this candidate as holder, acquired now if ``acquired`` is empty. Returns whether it holds the Lease."""
        sent, now = (self._now(), self._asleep()), self._lock.now()
        self._may_hold_lease = True
        wanted = Record(self.identity, math.ceil(self._lease_duration), acquired or now, now, transitions)
        self._see(await verb(wanted))
        holds = self._record.holder == self.identity
        if holds:
            self._renewed = sent  # other candidates may have seen the change at any time since then
        return holds

    def _see(self, spec: Spec) -> None:
        """Record the Lease's spec; the time only if the spec is new."""
        if spec != self._seen:
            self._seen, self._seen_at, self._record = spec, self._now(), Record.of(spec)

    def _record_failure(self, error: Exception) -> None:
        """Log a failure: as a warning if it is new, and every five minutes while it lasts."""
        now = self._now()
        is_due = _kind_of(error) != _kind_of(self._last_error) or now >= self._next_warning
        if is_due:
            self._next_warning = now + WARN_EVERY
        logger.log(
            logging.WARNING if is_due else logging.DEBUG, "%s: %s", self, message_of(error),
            exc_info=traceback_of(error) if is_due else None,
        )  # fmt: skip
        self._last_error = error

    def _report_leader(self) -> None:
        holder = self._record.holder
        if holder == self._reported_leader:
            return
        self._reported_leader = holder
        if self._on_new_leader is not None:
            try:
                self._on_new_leader(holder)
            except CALL_ERRORS:
                logger.exception("%s: on_new_leader failed", self)

    # -- losing and giving back ----------------------------------------------------------------------------

    def _set_expiry(self) -> None:
        """Set a timer for the deadline, at most a retry period ahead: timers do not count the machine's sleep."""
        assert self._renewed is not None
        if self._expiry is not None:
            self._expiry.cancel()
        loop = asyncio.get_running_loop()
        due_at = self._renewed[0] + self._renew_deadline - self._slept()
        self._expiry = loop.call_at(min(due_at, loop.time() + self._retry_period), self._check_expiry)

    def _check_expiry(self) -> None:
        if self._is_in_time():
            self._set_expiry()
        else:
            slept = self._slept()
            why = f", as the machine slept for {slept:.0f} s" if slept else ""
            self._lose(f"it could not be renewed for {self._renew_deadline:g} s{why}")

    def _lose(self, why: str, cause: Exception | None = None) -> None:
        """Cancel the body, once."""
        if self._renewing is None or self._lost is not None or self._interruption is None:
            return
        cause = cause or self._last_error
        self._lost = LeadershipLostError(self._lock.key, self.identity, why)
        self._lost.__cause__ = cause
        logger.warning("%s%s", self._lost, f" ({message_of(cause)})" if cause is not None else "")
        self._interruption.reschedule(asyncio.get_running_loop().time())

    async def _give_back(self) -> None:
        """Clear the Lease's holder, if it is this candidate. On a failure the other candidates only wait longer."""
        if self._left_behind:
            logger.warning(
                "%s: the lease is not released and has to expire, since this work still runs: %s",
                self,
                self._left_behind,
            )
            return
        seconds = self._renew_deadline
        try:
            with anyio.move_on_after(seconds):
                while (spec := await self._lock.read()) is not None:
                    record = Record.of(spec)
                    if record.holder != self.identity:
                        return
                    now = self._lock.now()
                    try:
                        self._see(await self._lock.update(Record("", 1, now, now, record.transitions)))
                    except ConflictError:
                        continue
                    logger.info("%s: the lease is released", self)
                    return
                return
            raise TransportError(f"it took longer than {seconds:g} s")
        except Exception as error:
            logger.warning(
                "%s: the lease could not be released, it has to expire: %s", self, message_of(error)
            )

    def _record_overrun(self, ended: float | None) -> None:
        """Log work that ran longer than the Lease: it ended so many seconds after the last renewal."""
        assert ended is not None
        late = ended - self._lease_duration
        if late > 0 and self._left_behind:
            logger.error(
                "%s: work of its leadership still runs, %.1f s after the lease has expired: %s",
                self, late, self._left_behind,
            )  # fmt: skip
        elif late > 0:
            logger.error("%s: work of its leadership ended %.1f s after the lease had expired", self, late)

    def _is_in_time(self) -> bool:
        """Whether the deadline after the last renewal has not passed."""
        renewed = self._renewed
        return renewed is not None and self._now() < renewed[0] + self._renew_deadline - self._slept()

    def _since_renewal(self) -> float | None:
        renewed = self._renewed
        return None if renewed is None else self._now() - renewed[0] + self._slept()

    def _slept(self) -> float:
        """Return the seconds that the machine has slept since the last renewal was sent."""
        slept = 0.0 if self._renewed is None else self._asleep() - self._renewed[1]
        return slept if slept >= LEAST_SLEEP else 0.0

    def _now(self) -> float:
        assert self._loop is not None
        return self._loop.time()


def _unique_identity() -> str:
    return f"{socket.gethostname()}_{uuid4()}"


def _kind_of(error: Exception | None) -> tuple[object, ...]:
    """Return what equal failures have in common: the type, and for answers the status and the request."""
    if isinstance(error, ApiError):
        return type(error), error.status, error.context
    return (type(error),)
