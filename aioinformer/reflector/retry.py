"""When to try again: after a delay of one's own, or together with all who wait for the same server."""

from __future__ import annotations

import asyncio
from random import Random

from ..errors import ApiError
from ..protocols import Health
from .backoff import Backoff

PATIENCE = 60.0
"""Seconds, once to twice, for which the others' word is taken that the server does not answer."""

WAKE_WITHIN = 1.0
"""Seconds over which all who waited for a server come back to it."""


class Retry:
    """Waits between the tries of one reflector.

    Args:
        random: Where the jitter comes from.
        health: What the reflector shares with the other readers of its server; None to wait alone.

    Attributes:
        at: Loop time of the next try; None while none is waited for.
        waiting_for: The server that has to answer before; None where only time has to pass.
    """

    def __init__(self, random: Random, health: Health | None) -> None:
        self._random = random
        self._health = health
        self._backoff = Backoff(random)
        self._at_least = 0.0
        self._answer_missed = False
        self.at: float | None = None
        self.waiting_for: str | None = None

    def failed(self, error: Exception) -> bool:
        """A try has failed of this; whether that is news to all who read from the server."""
        self._at_least = (error.retry_after if isinstance(error, ApiError) else None) or 0.0
        self._answer_missed = self._health is not None and self._health.concerns(error)
        return self._health is None or self._health.is_news(error)

    def succeeded(self) -> None:
        """What the last failure asked for is past."""
        self._at_least = 0.0

    def reset(self) -> None:
        """Things are well: the next delay is the shortest again."""
        self._backoff.reset()

    async def wait(self) -> None:
        """Wait until the next try is due. Cancelling leaves nothing behind."""
        now = asyncio.get_running_loop().time
        began = now()
        at_least, self._at_least = self._at_least, 0.0
        answer_missed, self._answer_missed = self._answer_missed, False
        if answer_missed and self._health is not None:
            await self._outlast_outage(self._health)
        waited = now() - began
        if waited > self._backoff.shortest:  # an outage that was outlasted is no failed try of ours
            delay = max(at_least - waited, self._random.random() * WAKE_WITHIN)
        else:
            delay = self._backoff.next(at_least) - waited
        self.at = now() + delay
        try:
            await asyncio.sleep(delay)
        finally:
            self.at = None

    async def _outlast_outage(self, health: Health) -> None:
        """Wait until the server answers somebody; not for ever, since whoever asks for all may be misled."""
        timeout = asyncio.timeout(PATIENCE * (1.0 + self._random.random()))
        try:
            async with timeout:
                self.at = timeout.when()
                self.waiting_for = str(health)
                await health.until_reachable()
        except TimeoutError:
            if not timeout.expired():
                raise
        finally:
            self.at = self.waiting_for = None
