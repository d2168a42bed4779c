"""Whether one API server can be reached, and takes our credentials: asked once for all who wait for it.

client-go has no such thing: there each reflector of a process tries alone, and is back when its own delay of up to a
minute is over.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from random import Random

from ..errors import ApiError, DamagedError, TransportError
from .transport import Transport

logger = logging.getLogger(__name__)

PATH = "/readyz"
"""What is asked for: cheap, allowed to everybody by default, and refused by a server that is only starting."""

FIRST_PAUSE = 1.0
SHORT_PAUSE = 6.0
LONGEST_PAUSE = 30.0
SHARE = 0.1
"""Seconds between two probes: doubling from the first one up to the short one, from which a tenth of the time that it
has lasted takes over, up to the longest. All with a jitter of a fifth."""

ANSWER_TIMEOUT = 5.0
"""Seconds for a probe. Credentials whose renewal takes longer come to a later one."""

PATIENCE_WITH_THE_FIRST = 1.0
"""Seconds for which those who lost their stream wait for what becomes of the first one's request."""

UNAVAILABLE = frozenset({502, 503, 504})
"""HTTP statuses by which a gateway says that it does not reach the server."""

UNREADY = 500
"""The one by which a server that is starting, ending, or has lost its etcd answers a probe."""

NOT_READY = UNAVAILABLE | {UNREADY}
"""Those by which a probe fails."""

PATIENCE_WITH_THE_UNREADY = 10.0
"""Seconds for which a server is believed that it is not ready: it may serve all the same, for as long as it likes."""


@dataclass(slots=True, eq=False)
class _Trouble:
    """The time from somebody's missing what all need until the server has given it."""

    what: str
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)  # who holds it asks for all
    over: asyncio.Event = field(default_factory=asyncio.Event)
    began: float = field(init=False)
    next_probe: float = field(init=False)
    pause: float = FIRST_PAUSE
    proven: bool = False  # a probe has met with it, too
    starting: bool = False  # the server has answered that it is not ready
    unready_since: float | None = None  # it has given no other answer since

    def __post_init__(self) -> None:
        self.began = self.loop.time()

    def take_pause(self, random: Random) -> None:
        """Set the next probe's time, counted from now."""
        now = self.loop.time()
        pause = min(self.pause, max(SHORT_PAUSE, SHARE * (now - self.began)), LONGEST_PAUSE)
        self.pause = 2.0 * pause
        self.next_probe = now + pause * (0.8 + 0.2 * random.random())

    def note(self, failure: Exception) -> None:
        """A probe has met with this."""
        if not (isinstance(failure, ApiError) and failure.status == UNREADY):
            self.unready_since = None
        elif self.unready_since is None:
            self.unready_since = self.loop.time()

    def is_doubtful(self) -> bool:
        """Whether a request may tell more by now than a probe."""
        since = self.unready_since
        return since is not None and self.loop.time() - since >= PATIENCE_WITH_THE_UNREADY


class ServerHealth:
    """Waits for one server on behalf of many.

    Whoever misses an answer comes here. The first to come asks the server for all, with a growing pause; if it is
    cancelled the next one goes on. So there is no task to own, and nothing is asked while nobody waits. Any answer to
    anybody ends the waiting. Credentials that are not taken (401) are waited for in the same way.

    An outage is logged once for the server: its beginning as a warning, its end at INFO.

    Args:
        transport: How to ask.
        random: Where the jitter comes from.
    """

    def __init__(self, transport: Transport, random: Random | None = None) -> None:
        self._transport = transport
        self._random = random or Random()
        self._outage: _Trouble | None = None
        self._refusal: _Trouble | None = None
        self._told: set[type[Exception] | int] = set()
        self._doubtful = False  # whether the server is there: an answer was missed, and none has come since
        self._first: asyncio.Future[TransportError | None] | None = None
        self._forbidden: set[asyncio.Future[None]] = set()
        self.probe_error: Exception | None = None
        """What the one that asks for all has met with last; None since an answer."""

    def __str__(self) -> str:
        return self._transport.server or "the server"

    def concerns(self, error: Exception) -> bool:
        """Whether an error may be the server's trouble, or all its readers', not only that of who has it."""
        if isinstance(error, ApiError):
            return error.status == 401 or (
                error.status in UNAVAILABLE and not error.is_too_large_resource_version
            )
        return isinstance(error, TransportError) and not isinstance(error, DamagedError)

    def missed(self, error: Exception) -> bool:
        """Somebody has met with an error; whether to tell of it: of what all miss in the same way the first."""
        kind: type[Exception] | int = type(error)
        if isinstance(error, TransportError):
            self._doubtful = self._doubtful or self.concerns(error)
        elif isinstance(error, ApiError) and error.status == 401:
            kind = 401
        else:
            return True
        known = kind in self._told
        self._told.add(kind)
        return not known

    async def until_reachable(self, error: Exception) -> bool:
        """Return once the server answers, or after a 401 takes the credentials. May be cancelled at any time.

        If it answers for long that it is not ready, those who wait return one after the other, to try.

        Args:
            error: What was met with.

        Returns:
            Whether it was the server's trouble, indeed: a probe has met with it, too.
        """
        unauthorized = isinstance(error, ApiError) and error.status == 401
        trouble = self._refusal if unauthorized else self._outage
        if trouble is None or trouble.loop is not asyncio.get_running_loop():
            trouble = _Trouble("does not take the credentials" if unauthorized else "cannot be reached")
            trouble.take_pause(self._random)
            if unauthorized:
                self._refusal = trouble
            else:
                self._outage = trouble
        async with trouble.lock:
            while not trouble.over.is_set():
                await self._pause(trouble)
                if not trouble.over.is_set():
                    await self._probe(trouble)
                    if trouble.is_doubtful():
                        break
        return trouble.proven

    @contextmanager
    def noting_answers(self) -> Iterator[None]:
        """Around a request: an answer to it is one for all who wait."""
        try:
            yield
        except ApiError as error:
            if error.status not in NOT_READY:
                self._answered(authorized=error.status != 401)
            raise
        self._answered(authorized=True)

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[None]:
        """Around the request for a stream, of which many break at once. Notes the answer.

        After a missed answer the first one asks, and the others wait a moment for what becomes of it: if it fails,
        theirs have failed with it, and were never made.

        Raises:
            TransportError: The first one's request has failed.
        """
        loop = asyncio.get_running_loop()
        first, mine = self._first if self._doubtful else None, None
        if first is not None and first.get_loop() is loop:
            await asyncio.wait((first,), timeout=PATIENCE_WITH_THE_FIRST)
            if first.done() and (failure := first.result()) is not None:
                raise type(failure)(str(failure)) from failure
        elif self._doubtful:
            mine = self._first = loop.create_future()
        outcome: TransportError | None = None
        try:
            with self.noting_answers():
                yield
        except TransportError as error:
            outcome = type(error)(str(error))  # what this one was asked for is said in its own
            outcome.__cause__ = error.__cause__
            raise
        finally:
            if mine is not None:
                self._first = None
                mine.set_result(outcome)

    def accepted(self) -> None:
        """A request that was forbidden before is so no more; those of others may not be, either."""
        for waiter in self._forbidden:
            if not waiter.done():
                waiter.set_result(None)

    async def until_accepted(self) -> None:
        """Return once a request of somebody's is accepted that was forbidden before. May be cancelled."""
        waiter = asyncio.get_running_loop().create_future()
        self._forbidden.add(waiter)
        try:
            await waiter
        finally:
            self._forbidden.discard(waiter)

    def _answered(self, *, authorized: bool) -> None:
        self._told = set() if authorized else self._told & {401}
        self._doubtful = False
        self.probe_error = None
        outage, self._outage = self._outage, None
        self._end(outage, "reachable again")
        if authorized:
            refusal, self._refusal = self._refusal, None
            self._end(refusal, "takes the credentials again")

    def _end(self, trouble: _Trouble | None, now: str) -> None:
        if trouble is None:
            return
        trouble.over.set()
        if trouble.proven:
            logger.info("%s: %s after %.1f s", self, now, asyncio.get_running_loop().time() - trouble.began)

    async def _pause(self, trouble: _Trouble) -> None:
        try:
            async with asyncio.timeout_at(trouble.next_probe):
                await trouble.over.wait()
        except TimeoutError:
            return

    async def _probe(self, trouble: _Trouble) -> None:
        # Counted from here: a probe that is not answered is followed by the next one without a further pause.
        trouble.take_pause(self._random)
        failure: Exception
        try:
            with self.noting_answers():
                async with asyncio.timeout(ANSWER_TIMEOUT):
                    # As a stream: calls that hang may have all connections that there are for calls.
                    async with aclosing(await self._transport.stream(PATH)) as answer:
                        async for _ in answer:
                            pass
            return
        except TimeoutError:
            failure = TransportError(f"no answer within {ANSWER_TIMEOUT:g} s")
        except (ApiError, TransportError) as error:
            failure = error
        except Exception:  # no matter of reaching the server: who waits will meet with the same, and tell
            self._answered(authorized=True)
            return
        if trouble.over.is_set():
            return
        self.probe_error = failure
        trouble.note(failure)
        not_ready = isinstance(failure, ApiError) and failure.status in NOT_READY
        if not_ready and not trouble.starting:
            trouble.starting, trouble.pause = True, FIRST_PAUSE  # it will not be long any more
            trouble.take_pause(self._random)
        if not trouble.proven:
            trouble.proven = True
            what = "is not ready" if not_ready else trouble.what
            logger.warning("%s %s: %s", self, what, _in_words(failure).removeprefix(f"{self}: "))


def _in_words(failure: Exception) -> str:
    """What a probe has met with: of a server's many checks those that have failed."""
    lines = failure.message.splitlines() if isinstance(failure, ApiError) else []
    return "; ".join(line for line in lines if line.startswith("[-]")) or str(failure)
