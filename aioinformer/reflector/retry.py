"""When to try again: after a delay of one's own, or together with all who wait for the same server."""

from __future__ import annotations

import asyncio
from random import Random

from ..errors import ApiError, ConfigError
from ..protocols import SharedHealth
from .backoff import CAP, Backoff

REFUSALS = frozenset({401, 403, 404})
"""HTTP statuses by which a server that is well refuses: only people can mend that, and it costs little to ask again."""

HOPELESS = REFUSALS | {400, 405}
"""Those by which it refuses a list that will be refused again, until somebody mends what asks or what is asked."""

REFUSED_PAUSE = 12.0
REFUSED_SHARE = 0.2
"""Seconds that a delay has at most after refusals: at first, and as a share of the time for which they have lasted."""

PATIENCE = 60.0
"""Seconds, once to twice, for which the others' word is taken that the server does not answer."""

WAKE_WITHIN = 1.0
"""Seconds over which all who waited for a server come back to it."""


def is_hopeless(error: Exception) -> bool:
    """Whether an error of a first list will be the next try's, too: an answer among HOPELESS, or a ConfigError."""
    return isinstance(error, ConfigError) or (isinstance(error, ApiError) and error.status in HOPELESS)


class Retry:
    """Waits between the tries of one reflector.

    Args:
        random: Where the jitter comes from.
        health: What the reflector shares with the other readers of its server; None to wait alone.

    Attributes:
        at: Loop time of the next try; None while none is waited for.
        waiting_for: The server that has to answer before; None where only time has to pass.
    """

    def __init__(self, random: Random, health: SharedHealth | None) -> None:
        self._random = random
        self._health = health
        self._backoff = Backoff(random)
        self._at_least = 0.0
        self._missed: Exception | None = None
        self._refused_since: float | None = None
        self._outlasted = False  # an outage, and nothing was answered since
        self.at: float | None = None
        self.waiting_for: str | None = None

    @property
    def probe_error(self) -> Exception | None:
        """What asking that server has met with last."""
        return None if self._health is None or self.waiting_for is None else self._health.probe_error

    def failed(self, error: Exception, *, asked: bool = True) -> bool:
        """Something has failed of this; whether that is news to all who read from the server.

        Args:
            error: What.
            asked: Whether it was a request: that a stream breaks off says less about the server.
        """
        refused = isinstance(error, ApiError) and error.status in REFUSALS
        if not refused:
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = asyncio.get_running_loop().time()
        self._at_least = (error.retry_after if isinstance(error, ApiError) else None) or 0.0
        if self._health is None:
            return True
        self._missed = error if asked and self._health.concerns(error) else None
        return self._health.missed(error)

    def succeeded(self) -> None:
        """A request was answered as it should be: what the last failure asked for is past.

        A refusal is not: who may list may not watch yet.
        """
        self._at_least = 0.0
        self._missed = None
        self._outlasted = False

    def watching(self) -> None:
        """A watch was opened: that is all that can be refused."""
        self.succeeded()
        if self._refused_since is not None and self._health is not None:
            self._health.accepted()
        self._refused_since = None

    def reset(self) -> None:
        """Things are well: the next delay is the shortest again."""
        self._backoff.reset()

    async def wait(self) -> None:
        """Wait until the next try is due. Cancelling leaves nothing behind."""
        now = asyncio.get_running_loop().time
        began = now()
        at_least, self._at_least = self._at_least, 0.0
        missed, self._missed = self._missed, None
        at_once = False
        if missed is not None and self._health is not None:
            at_once = await self._outlast(self._health, missed)
        waited = now() - began
        if at_once:
            await self._sleep(max(at_least - waited, self._random.random() * WAKE_WITHIN))
            return
        delay = self._backoff.next(at_least, self._longest()) - waited
        if self._refused_since is None or self._health is None:
            await self._sleep(delay)
        elif await self._sleep_unless_accepted(delay, self._health):
            await self._sleep(self._random.random() * WAKE_WITHIN)

    def _longest(self) -> float:
        """Seconds that a delay has at most."""
        if self._refused_since is None:
            return CAP
        lasted = asyncio.get_running_loop().time() - self._refused_since
        return min(CAP, max(REFUSED_PAUSE, lasted * REFUSED_SHARE)) * (1.0 + self._random.random()) / 2.0

    async def _sleep(self, delay: float) -> None:
        self.at = asyncio.get_running_loop().time() + delay
        try:
            await asyncio.sleep(delay)
        finally:
            self.at = None

    async def _sleep_unless_accepted(self, delay: float, health: SharedHealth) -> bool:
        """Sleep; whether somebody else was accepted meanwhile, which ends it."""
        timeout = asyncio.timeout(delay)
        try:
            async with timeout:
                self.at = timeout.when()
                await health.until_accepted()
        except TimeoutError:
            if not timeout.expired():
                raise
            return False
        finally:
            self.at = None
        return True

    async def _outlast(self, health: SharedHealth, missed: Exception) -> bool:
        """Wait until all is over; not for ever, since whoever asks for all may be misled.

        Returns:
            Whether to try at once: an outage is no failed try, unless it is one after another.
        """
        timeout = asyncio.timeout(PATIENCE * (1.0 + self._random.random()))
        try:
            async with timeout:
                self.at = timeout.when()
                self.waiting_for = str(health)
                outage = await health.until_reachable(missed)
        except TimeoutError:
            if not timeout.expired():
                raise
            return True
        finally:
            self.at = self.waiting_for = None
        first, self._outlasted = not self._outlasted, outage
        return outage and first
