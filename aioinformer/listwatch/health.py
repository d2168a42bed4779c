"""Whether one API server can be reached, asked once for all who wait for it.

client-go has no such thing: there each reflector of a process tries alone, and is back when its own delay of up to a
minute is over.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from ..errors import ApiError, TransportError
from .transport import Transport

logger = logging.getLogger(__name__)

PATH = "/readyz"
"""What is asked for: cheap, allowed to everybody by default, and refused by a server that is only starting."""

FIRST_PAUSE = 0.4
LONGEST_PAUSE = 3.0
ANSWER_TIMEOUT = 5.0

UNAVAILABLE = frozenset({502, 503, 504})
"""HTTP statuses by which a gateway says that it does not reach the server."""

NOT_READY = UNAVAILABLE | {500}
"""Those by which a probe fails; 500 is how a server that is starting, or has lost its etcd, answers it."""


@dataclass(slots=True, eq=False)
class _Trouble:
    """The time from somebody's missing an answer until the server has given one."""

    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)  # who holds it asks for all
    over: asyncio.Event = field(default_factory=asyncio.Event)
    began: float | None = None  # loop time of the first probe, if that failed
    next_probe: float = float("-inf")
    pause: float = FIRST_PAUSE
    starting: bool = False  # it has answered that it is not ready


class ServerHealth:
    """Waits for one server on behalf of many.

    Whoever misses an answer comes here. The first to come asks the server for all, at once and then with a growing
    pause of at most three seconds; if it is cancelled the next one goes on. So there is no task to own, and nothing
    is asked while nobody waits. Any answer to anybody ends the waiting.

    An outage is logged once for the server: its beginning as a warning, its end at INFO.

    Args:
        transport: How to ask.
        random: Where the jitter comes from.
    """

    def __init__(self, transport: Transport, random: Random | None = None) -> None:
        self._transport = transport
        self._random = random or Random()
        self._trouble: _Trouble | None = None
        self._told: set[type[Exception]] = set()

    def __str__(self) -> str:
        return self._transport.server or "the server"

    def concerns(self, error: Exception) -> bool:
        """Whether an error may be the server's trouble, not only that of who has it."""
        if isinstance(error, ApiError):
            return error.status in UNAVAILABLE and not error.is_too_large_resource_version
        return isinstance(error, TransportError)

    def is_news(self, error: Exception) -> bool:
        """Whether an error is to be told: of answers missed in the same way only the first, until one comes."""
        if not isinstance(error, TransportError):
            return True
        known = type(error) in self._told
        self._told.add(type(error))
        return not known

    async def until_reachable(self) -> None:
        """Return once the server answers: at once if it does. May be cancelled at any time."""
        trouble = self._trouble
        if trouble is None or trouble.loop is not asyncio.get_running_loop():
            trouble = self._trouble = _Trouble()
        async with trouble.lock:
            while not trouble.over.is_set():
                await self._pause(trouble)
                if not trouble.over.is_set():
                    await self._probe(trouble)

    @contextmanager
    def noting_answers(self) -> Iterator[None]:
        """Around a request: an answer to it is one for all who wait."""
        try:
            yield
        except ApiError as error:
            if error.status not in NOT_READY:
                self._answered()
            raise
        self._answered()

    def _answered(self) -> None:
        self._told.clear()
        trouble, self._trouble = self._trouble, None
        if trouble is None:
            return
        trouble.over.set()
        if trouble.began is not None:
            lasted = asyncio.get_running_loop().time() - trouble.began
            logger.info("%s: reachable again after %.1f s", self, lasted)

    async def _pause(self, trouble: _Trouble) -> None:
        try:
            async with asyncio.timeout_at(trouble.next_probe):
                await trouble.over.wait()
        except TimeoutError:
            return

    async def _probe(self, trouble: _Trouble) -> None:
        started = asyncio.get_running_loop().time()
        # Counted from here: a probe that is not answered is followed by the next one without a further pause.
        trouble.next_probe = started + trouble.pause * (0.8 + 0.2 * self._random.random())
        trouble.pause = min(2.0 * trouble.pause, LONGEST_PAUSE)
        failure: Exception
        try:
            with self.noting_answers():
                async with asyncio.timeout(ANSWER_TIMEOUT):
                    await self._transport.get(PATH)
            return
        except TimeoutError:
            failure = TransportError(f"no answer within {ANSWER_TIMEOUT:g} s")
        except (ApiError, TransportError) as error:
            failure = error
        except Exception:  # no matter of reaching the server: who waits will meet with the same, and tell
            self._answered()
            return
        if isinstance(failure, ApiError) and not trouble.starting:
            trouble.starting, trouble.pause = True, FIRST_PAUSE  # it will not be long any more
            trouble.next_probe = started + FIRST_PAUSE
        if trouble.began is None and not trouble.over.is_set():
            trouble.began = started
            logger.warning("%s cannot be reached: %s", self, str(failure).removeprefix(f"{self}: "))
