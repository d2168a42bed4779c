"""Probe an unreachable API server once for all of a client's readers.

client-go has no such probe: each reflector retries alone, and recovers when its own back-off of up to a minute ends.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from random import Random, SystemRandom

import anyio

from ..errors import ApiError, DamagedError, TransportError
from .transport import Transport

logger = logging.getLogger(__name__)

PATH = "/readyz"
"""The path of a probe: cheap, allowed to all users by default, and refused by a server that is still starting."""

FIRST_PAUSE = 1.0
SHORT_PAUSE = 6.0
LONGEST_PAUSE = 30.0
SHARE = 0.1
"""Seconds between two probes. The pause doubles from FIRST_PAUSE to SHORT_PAUSE; later it is a tenth of the outage's
duration, up to LONGEST_PAUSE. Each has a jitter of a fifth."""

ANSWER_TIMEOUT = 5.0
"""Seconds for a probe. If renewing the credentials takes longer, a later probe uses them."""

FIRST_REQUEST_WAIT = 1.0
"""Seconds for which requests for streams wait for the outcome of the first one after a failure."""

UNAVAILABLE = frozenset({502, 503, 504})
"""HTTP statuses of a gateway that cannot reach the server."""

UNREADY = 500
"""HTTP status of a probe while the server starts, shuts down, or has lost its etcd."""

NOT_READY = UNAVAILABLE | {UNREADY}
"""HTTP statuses of a failed probe."""

UNREADY_LIMIT = 10.0
"""Seconds of failing readiness probes after which readers try anyway: an unready server may still serve requests."""


@dataclass(slots=True, eq=False)
class _Outage:
    """A time in which the server is unreachable, or refuses the credentials."""

    description: str
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)  # its holder probes for all waiters
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    began: float = field(init=False)
    next_probe: float = field(init=False)
    pause: float = FIRST_PAUSE
    confirmed: bool = False  # a probe has failed, too
    starting: bool = False  # the server has answered that it is not ready
    unready_since: float | None = None  # every probe since then got UNREADY

    def __post_init__(self) -> None:
        self.began = self.loop.time()

    def schedule_probe(self, random: Random) -> None:
        """Set the time of the next probe, and double the pause."""
        now = self.loop.time()
        pause = min(self.pause, max(SHORT_PAUSE, SHARE * (now - self.began)), LONGEST_PAUSE)
        self.pause = 2.0 * pause
        self.next_probe = now + pause * (0.8 + 0.2 * random.random())

    def record_failure(self, failure: Exception) -> None:
        """Record the error of a probe."""
        if not (isinstance(failure, ApiError) and failure.status == UNREADY):
            self.unready_since = None
        elif self.unready_since is None:
            self.unready_since = self.loop.time()

    def is_unready_for_long(self) -> bool:
        """Return whether probes have got UNREADY for so long that readers should try anyway."""
        since = self.unready_since
        return since is not None and self.loop.time() - since >= UNREADY_LIMIT


class ServerHealth:
    """Waits for one server on behalf of all its readers.

    Readers that got no answer wait in ``until_reachable``. The first one probes the server for all, with a growing
    pause; if it is cancelled, the next one continues. So there is no background task, and no probe while no reader
    waits. Any answer to any request ends the wait. After a 401, readers wait in the same way for the server to accept
    the credentials.

    An outage is logged once for the server: its beginning at WARNING, its end at INFO.

    Args:
        transport: Sends the probes.
        random: The source of jitter.
    """

    def __init__(self, transport: Transport, random: Random | None = None) -> None:
        self._transport = transport
        self._random = random or SystemRandom()
        self._outage: _Outage | None = None
        self._refusal: _Outage | None = None
        self._logged: set[type[Exception] | int] = set()
        self._last_request_failed = False
        self._first_request: asyncio.Future[TransportError | None] | None = None
        self._forbidden: set[asyncio.Future[None]] = set()
        self.probe_error: Exception | None = None
        """The error of the last probe; None after any answer."""

    def __str__(self) -> str:
        return self._transport.server or "the server"

    def concerns(self, error: Exception) -> bool:
        """Return whether an error probably affects all readers of the server, not only the one that got it."""
        if isinstance(error, ApiError):
            return error.status == 401 or (
                error.status in UNAVAILABLE and not error.is_too_large_resource_version
            )
        return isinstance(error, TransportError) and not isinstance(error, DamagedError)

    def record_error(self, error: Exception) -> bool:
        """Record a reader's error. Return whether to log it: of a failure that all readers share only the first."""
        kind: type[Exception] | int = type(error)
        if isinstance(error, TransportError):
            self._last_request_failed = self._last_request_failed or self.concerns(error)
        elif isinstance(error, ApiError) and error.status == 401:
            kind = 401
        else:
            return True
        is_logged = kind in self._logged
        self._logged.add(kind)
        return not is_logged

    async def until_reachable(self, error: Exception) -> bool:
        """Wait until the server answers, or after a 401 until it accepts the credentials. May be cancelled at any time.

        If the server stays unready for long, waiting readers return one after the other, to try their requests.

        Args:
            error: The error that the reader got.

        Returns:
            Whether a probe has confirmed the outage.
        """
        unauthorized = isinstance(error, ApiError) and error.status == 401
        outage = self._refusal if unauthorized else self._outage
        if outage is None or outage.loop is not asyncio.get_running_loop():
            outage = _Outage("does not accept the credentials" if unauthorized else "cannot be reached")
            outage.schedule_probe(self._random)
            if unauthorized:
                self._refusal = outage
            else:
                self._outage = outage
        async with outage.lock:
            while not outage.ended.is_set():
                await self._pause(outage)
                if not outage.ended.is_set():
                    await self._probe(outage)
                    if outage.is_unready_for_long():
                        break
        return outage.confirmed

    @contextmanager
    def record_answers(self) -> Iterator[None]:
        """Run a request. An answer to it ends the wait of all readers."""
        try:
            yield
        except ApiError as error:
            if error.status not in NOT_READY:
                self._record_answer(authorized=error.status != 401)
            raise
        self._record_answer(authorized=True)

    @asynccontextmanager
    async def request_stream(self) -> AsyncIterator[None]:
        """Run a request for a stream, and record its answer. A lost server breaks many streams at once.

        After a failure, the first request is sent and the others wait for its outcome, for up to a second. If it
        fails, they fail with the same error and send nothing.

        Raises:
            TransportError: The first request failed.
        """
        loop = asyncio.get_running_loop()
        first, own = self._first_request if self._last_request_failed else None, None
        if first is not None and first.get_loop() is loop:
            with anyio.move_on_after(FIRST_REQUEST_WAIT):
                await asyncio.wait((first,))
            if first.done() and (failure := first.result()) is not None:
                raise type(failure)(str(failure)) from failure
        elif self._last_request_failed:
            own = self._first_request = loop.create_future()
        outcome: TransportError | None = None
        try:
            with self.record_answers():
                yield
        except TransportError as error:
            outcome = type(error)(
                str(error)
            )  # a copy: callers add their request to the message of the original
            outcome.__cause__ = error.__cause__
            raise
        finally:
            if own is not None:
                self._first_request = None
                own.set_result(outcome)

    def record_accepted(self) -> None:
        """Wake the readers in ``until_accepted``: a request that was forbidden is accepted now."""
        for waiter in self._forbidden:
            if not waiter.done():
                waiter.set_result(None)

    async def until_accepted(self) -> None:
        """Wait until any reader's forbidden request is accepted again. May be cancelled."""
        waiter = asyncio.get_running_loop().create_future()
        self._forbidden.add(waiter)
        try:
            await waiter
        finally:
            self._forbidden.discard(waiter)

    def _record_answer(self, *, authorized: bool) -> None:
        self._logged = set() if authorized else self._logged & {401}
        self._last_request_failed = False
        self.probe_error = None
        outage, self._outage = self._outage, None
        self._end(outage, "reachable again")
        if authorized:
            refusal, self._refusal = self._refusal, None
            self._end(refusal, "accepts the credentials again")

    def _end(self, outage: _Outage | None, now: str) -> None:
        if outage is None:
            return
        outage.ended.set()
        if outage.confirmed:
            logger.info("%s: %s after %.1f s", self, now, asyncio.get_running_loop().time() - outage.began)

    async def _pause(self, outage: _Outage) -> None:
        """Wait for the time of the next probe, or for the end of the outage."""
        with anyio.move_on_after(outage.next_probe - asyncio.get_running_loop().time()):
            await outage.ended.wait()

    async def _probe(self, outage: _Outage) -> None:
        """Send a probe. A failure confirms the outage; the first one is logged."""
        # The pause runs from here: after a probe without an answer the next one follows at once.
        outage.schedule_probe(self._random)
        failure: Exception
        try:
            with self.record_answers():
                with anyio.fail_after(ANSWER_TIMEOUT):
                    # As a stream: hanging calls may occupy all connections for calls.
                    async with aclosing(await self._transport.stream(PATH)) as answer:
                        async for _ in answer:
                            pass
            return
        except TimeoutError:
            failure = TransportError(f"no answer within {ANSWER_TIMEOUT:g} s")
        except (ApiError, TransportError) as error:
            failure = error
        except (
            Exception
        ):  # not an outage, but for example a ConfigError: waiting readers will get and report it
            self._record_answer(authorized=True)
            return
        if outage.ended.is_set():
            return
        self.probe_error = failure
        outage.record_failure(failure)
        not_ready = isinstance(failure, ApiError) and failure.status in NOT_READY
        if not_ready and not outage.starting:
            outage.starting, outage.pause = True, FIRST_PAUSE  # a server that answers is usually ready soon
            outage.schedule_probe(self._random)
        if not outage.confirmed:
            outage.confirmed = True
            description = "is not ready" if not_ready else outage.description
            logger.warning("%s %s: %s", self, description, _short_message(failure).removeprefix(f"{self}: "))


def _short_message(failure: Exception) -> str:
    """Return the error of a probe: only the failed ones of the server's many readiness checks."""
    lines = failure.message.splitlines() if isinstance(failure, ApiError) else []
    return "; ".join(line for line in lines if line.startswith("[-]")) or str(failure)
