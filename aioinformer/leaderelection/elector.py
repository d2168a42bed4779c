"""LeaderElector: of many candidates one leads, as long as it renews a Lease (client-go ``tools/leaderelection``)."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from inspect import isawaitable
from random import Random
from time import time
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import uuid4

import anyio

from .._core.checks import (
    require_callable,
    require_namespace,
    require_object_name,
    require_seconds,
    require_text,
)
from .._core.tasks import finish, shielded
from ..errors import (
    AlreadyExistsError,
    AlreadyStartedError,
    ApiError,
    ConfigError,
    ConflictError,
    LeadershipLostError,
    TransportError,
    WrongEventLoopError,
    said,
    traceback_of,
)
from ..handlers import callable_name, require_plain
from ..resources import Resource
from .asleep import LEAST_SLEEP
from .asleep import asleep as machine_asleep
from .lease import MOST_TRANSITIONS, NOBODY, LeaseLock, Record, Spec

logger = logging.getLogger(__name__)

R = TypeVar("R")

JITTER_FACTOR = 1.2

WARN_EVERY = 300.0
"""Seconds after which the same failure is a warning once more."""


@dataclass(frozen=True, slots=True)
class LeaderElectorState:
    """What an elector is doing.

    Attributes:
        lease: The Lease's key.
        identity: Who this is.
        is_leader: Whether this one leads, for certain.
        leader: Who was last seen to hold the Lease; ``""`` for nobody.
        transitions: How often the Lease had changed hands by then; for who leads or is being cancelled, when it began
            to lead. Of two leaders the later one has the higher number, so that whoever is given it can turn down what
            comes too late. Not so where the Lease was deleted or emptied meanwhile, which may begin at 0 again; and
            an identity that takes up its own Lease after a restart has the number from before. It goes no higher than
            2147483647.
        renewed_seconds: Seconds since its last renewal that counts was sent; None for one that never led.
        last_error: Why the last try failed; None if it did not.
    """

    lease: str
    identity: str
    is_leader: bool
    leader: str
    transitions: int
    renewed_seconds: float | None
    last_error: Exception | None


class LeaderElector:
    """Waits until it leads, and ends what is done under its leadership before anybody else can lead.

    ::

        async with elector:
            ...  # leads

    Entering waits for the Lease. While the body runs the Lease is renewed. Where it cannot be renewed in time the body
    is cancelled, and leaving raises LeadershipLostError. Left in any other way, the Lease is given back, and the next
    candidate need not wait for it to expire. ``await elector.run(work)`` does the same around a coroutine function.
    Afterwards it may be entered again.

    Guarantees:
        As long as clocks run at about the same speed (what they show does not matter), the body is cancelled
        ``lease_duration - renew_deadline`` seconds before another candidate takes the Lease: time to clean up in.
        Nothing helps against a body that ignores its cancellation, or an event loop that stands still; but
        ``require_leadership`` right before a write that must not be late finds that out. Time in which the machine
        sleeps counts: after it ``require_leadership`` raises at once, and the body is cancelled within
        ``retry_period``.

    Cancellation: the body ends first, then the Lease is given back, however often one is cancelled meanwhile.

    Args:
        client: A Client, or the ApiClient of kubernetes_asyncio or kubernetes.aio.
        name: The Lease's name, the same for all candidates.
        namespace: The Lease's namespace.
        identity: Who this is, different for all candidates; None for the host's name and something unique.
        lease_duration: Seconds for which the others leave a Lease alone after they have seen it change.
        renew_deadline: Seconds after which a Lease that could not be renewed counts as lost. They begin when the last
            renewal that succeeded was sent. A request may take half of them.
        retry_period: Seconds between tries. Candidates wait up to 2.2 times as long.
        release: Give the Lease back on leaving.
        labels: Put on the Lease.
        on_new_leader: A plain function, told the identity of each leader that is seen, and ``""`` where nobody is
            seen to lead, as after a lost race for a new Lease.
        wall: The wall clock, for what the Lease says to people. What it shows decides nothing.
        random: Where the jitter comes from.
        asleep: Gives the seconds that the machine has slept, counted from any moment; None compares CLOCK_BOOTTIME, or
            the wall clock where there is none, with the monotonic clock. It may be called in any thread.

    Raises:
        ConfigError: Durations that do not go together, or a name that no Lease or namespace may have.
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
        self.identity = identity if identity is not None else f"{socket.gethostname()}_{uuid4()}"
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
        self._random = random or Random()
        self._asleep = asleep or machine_asleep

        self._seen: Spec | None = None
        self._seen_at = 0.0
        self._record = NOBODY
        self._term: int | None = None
        self._told: str | None = None
        self._last_error: Exception | None = None
        self._next_warning = 0.0

        self._loop: asyncio.AbstractEventLoop | None = None
        self._body: asyncio.Task[Any] | None = None
        self._renewed: tuple[float, float] | None = (
            None  # in the loop's time; and how long it had slept by then
        )
        self._asked = False
        self._cancelling = 0
        self._lost: LeadershipLostError | None = None
        self._left_behind = ""
        self._expiry: asyncio.TimerHandle | None = None
        self._renewing: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<LeaderElector {self._lock.key} as {self.identity}>"

    @property
    def is_leader(self) -> bool:
        """Whether this one leads, for certain: there is time left until the Lease counts as lost."""
        return self._renewing is not None and self._lost is None and self._is_in_time()

    @property
    def state(self) -> LeaderElectorState:
        """What it is doing; in any thread."""
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
        """See that this one leads: right before a write that must not be late.

        Raises:
            LeadershipLostError: It does not, or may not any more.
        """
        if not self.is_leader:
            raise self._lost or LeadershipLostError(self._lock.key, self.identity, "it does not lead")

    def let_expire(self, left_behind: str) -> None:
        """Do not give the Lease back this time: something of this leadership goes on, and would beside the next leader.

        Args:
            left_behind: What that is, for the log.
        """
        self._left_behind = left_behind

    async def run(self, work: Callable[[], Awaitable[R]]) -> R:
        """Wait until this one leads, and do something for as long as it does.

        Args:
            work: Is cancelled when the leadership is lost.

        Returns:
            What the work returned.

        Raises:
            LeadershipLostError: The leadership was lost; the work has ended.
            AlreadyStartedError: This elector is entered already.
            ConfigError: The client's configuration cannot work; or the work is no function, or not async.
        """
        require_callable("work", work)
        async with self:
            doing = work()
            if not isawaitable(doing):
                raise ConfigError(f"work must be an async function, and {callable_name(work)} is a plain one")
            return await doing

    async def __aenter__(self) -> Self:
        if self._body is not None:
            raise AlreadyStartedError(
                f"{self!r} is entered already, by another Manager or task: each replica needs an elector of its own"
            )
        body = asyncio.current_task()
        assert body is not None
        self._loop = asyncio.get_running_loop()
        self._body, self._lost, self._asked = body, None, False
        self._left_behind = ""
        try:
            await self._acquire()
        except BaseException:
            try:
                if self._asked and self._release:  # the answer may be missing, not the Lease
                    await shielded(self._give_back(), grace=self._renew_deadline)
            finally:
                self._body = None
            raise
        self._term = self._record.transitions
        self._cancelling = body.cancelling()
        self._set_expiry()
        self._renewing = asyncio.create_task(self._renew(), name=f"{self!r} renewing")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        body, renewing, lost = self._body, self._renewing, self._lost
        assert body is not None
        assert renewing is not None
        assert self._expiry is not None
        self._renewing = None  # from here on nothing is lost any more, and nobody leads
        ended = self._since_renewal()
        is_ours = lost is not None and body.uncancel() <= self._cancelling
        try:
            try:
                await finish(renewing)
            finally:
                if lost is None and self._release:
                    await shielded(self._give_back(), grace=self._renew_deadline)
        finally:
            self._expiry.cancel()
            self._body = self._term = None
        if lost is not None:
            self._record_overrun(ended)
            if kind is None or (is_ours and issubclass(kind, asyncio.CancelledError)):
                raise lost

    # -- acquiring and renewing ----------------------------------------------------------------------------

    async def _acquire(self) -> None:
        logger.info("%s: waiting for the lease", self)
        # Who stood still after asking may be too late with what was answered, and asks anew.
        while not (await self._try() and self._is_in_time()):  # noqa: ASYNC110 - nothing tells when it can be had
            await asyncio.sleep(self._retry_period * (1.0 + JITTER_FACTOR * self._random.random()))
        logger.info("%s: leads", self)

    async def _renew(self) -> None:
        try:
            await asyncio.sleep(0)  # an eager task begins before anybody knows it
            started = self._renewed[0] if self._renewed is not None else 0.0
            while self._lost is None and self._renewing is not None:  # a request may swallow the cancelling
                await asyncio.sleep(max(0.0, started + self._retry_period - self._now()))
                self._check_expiry()  # after a sleep it is lost, though nobody else may have it
                started = self._now()
                if self._is_in_time() and await self._try():
                    self._set_expiry()
        except Exception as error:  # a client that was closed, for one: nobody renews any more
            self._lose(f"it cannot be renewed: {said(error)}", error)

    async def _try(self) -> bool:
        """Take or renew the Lease, if that is possible; whether this one holds it now."""
        try:
            holds = await self._take_or_renew()
        except (ConfigError, WrongEventLoopError):
            raise  # they do not heal
        except Exception as error:  # whatever it is, the next try may go well
            self._record_failure(error)
            return False
        self._last_error = None
        self._tell()
        return holds

    async def _take_or_renew(self) -> bool:
        lock, record, started = self._lock, self._record, self._now()
        # After a failure the Lease may be another one than was written last: the answer alone may be missing.
        is_known = self._last_error is None and started < self._seen_at + record.duration
        if record.holder == self.identity and is_known:
            try:
                return await self._write(lock.update, record.acquired, record.transitions)
            except ApiError as error:
                logger.debug("%s: not renewed at once: %s", self, error)
        spec = await lock.read()
        if spec is not None:
            self._see(spec)
        # One that was deleted was somebody's all the same, who may not know yet.
        record = self._record
        acquired, transitions = "", min(record.transitions + (self._seen is not None), MOST_TRANSITIONS)
        if record.holder == self.identity:
            acquired, transitions = record.acquired, record.transitions
        elif record.holder and self._renewing is not None:
            self._lose(f"{record.holder} holds it")
            return False
        elif record.holder and self._seen_at + record.duration > started:
            self._asked = False  # what was asked for has come to nothing
            return False
        try:
            return await self._write(lock.create if spec is None else lock.update, acquired, transitions)
        except (AlreadyExistsError, ConflictError):
            return False

    async def _write(
        self, verb: Callable[[Record], Awaitable[Spec]], acquired: str, transitions: int
    ) -> bool:
        """Write that the Lease is this one's, since now where it was acquired at ``""``; whether the answer says so."""
        sent, now = (self._now(), self._asleep()), self._lock.now()
        self._asked = True
        wanted = Record(self.identity, math.ceil(self._lease_duration), acquired or now, now, transitions)
        self._see(await verb(wanted))
        holds = self._record.holder == self.identity
        if holds:
            self._renewed = sent  # others may have seen it change any time since
        return holds

    def _see(self, spec: Spec) -> None:
        """Note what the Lease says; the time only if it says something new."""
        if spec != self._seen:
            self._seen, self._seen_at, self._record = spec, self._now(), Record.of(spec)

    def _record_failure(self, error: Exception) -> None:
        """Warn of a failure of another kind, and now and then of the same: nobody may be leading."""
        now = self._now()
        is_due = _kind_of(error) != _kind_of(self._last_error) or now >= self._next_warning
        if is_due:
            self._next_warning = now + WARN_EVERY
        logger.log(
            logging.WARNING if is_due else logging.DEBUG, "%s: %s", self, said(error),
            exc_info=traceback_of(error) if is_due else None,
        )  # fmt: skip
        self._last_error = error

    def _tell(self) -> None:
        holder = self._record.holder
        if holder == self._told:
            return
        self._told = holder
        if self._on_new_leader is not None:
            try:
                self._on_new_leader(holder)
            except Exception:
                logger.exception("%s: on_new_leader failed", self)

    # -- losing and giving back ----------------------------------------------------------------------------

    def _set_expiry(self) -> None:
        """Look again when the time is over, and before: a timer does not count the time in which the machine sleeps."""
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
        """Cancel what is done under the leadership, once."""
        if self._renewing is None or self._lost is not None or self._body is None:
            return
        cause = cause or self._last_error
        self._lost = LeadershipLostError(self._lock.key, self.identity, why)
        self._lost.__cause__ = cause
        logger.warning("%s%s", self._lost, f" ({cause})" if cause is not None else "")
        self._body.cancel()

    async def _give_back(self) -> None:
        """Let the Lease be nobody's, if it is ours. What prevents that only makes others wait."""
        if self._left_behind:
            logger.warning(
                "%s: the lease is not given back, it has to expire, since this goes on: %s",
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
                    logger.info("%s: the lease is given back", self)
                    return
                return
            raise TransportError(f"it took longer than {seconds:g} s")
        except Exception as error:
            logger.warning("%s: the lease could not be given back, it has to expire: %s", self, said(error))

    def _record_overrun(self, ended: float | None) -> None:
        """Log what went on for too long, which ended so many seconds after the last renewal."""
        assert ended is not None
        late = ended - self._lease_duration
        if late > 0 and self._left_behind:
            logger.error(
                "%s: what was done under its leadership has been going on for %.1f s too long: %s",
                self, late, self._left_behind,
            )  # fmt: skip
        elif late > 0:
            logger.error("%s: what was done under its leadership went on for %.1f s too long", self, late)

    def _is_in_time(self) -> bool:
        """Whether there is time left until what was renewed last counts as lost."""
        renewed = self._renewed
        return renewed is not None and self._now() < renewed[0] + self._renew_deadline - self._slept()

    def _since_renewal(self) -> float | None:
        renewed = self._renewed
        return None if renewed is None else self._now() - renewed[0] + self._slept()

    def _slept(self) -> float:
        """Seconds that the machine has slept since the last renewal was sent."""
        slept = 0.0 if self._renewed is None else self._asleep() - self._renewed[1]
        return slept if slept >= LEAST_SLEEP else 0.0

    def _now(self) -> float:
        assert self._loop is not None
        return self._loop.time()


def _kind_of(error: Exception | None) -> tuple[object, ...]:
    """What two failures have in common that are the same to people: the type, and of answers what was asked for."""
    if isinstance(error, ApiError):
        return type(error), error.status, error.context
    return (type(error),)
