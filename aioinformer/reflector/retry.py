"""When the reflector tries again: after its own backoff, or with all other readers of a server that was away."""

from __future__ import annotations

import asyncio

import anyio

from ..errors import ApiError, ConfigError
from ..protocols import SharedHealth
from .backoff import Backoff

REFUSALS = frozenset({401, 403, 404})
"""HTTP statuses of a healthy server's refusal. Only a person can fix it, and asking again is cheap."""

HOPELESS = REFUSALS | {400, 405}
"""HTTP statuses of a list that will fail again until a person fixes the request or the server."""

REFUSED_PAUSE = 12.0
REFUSED_SHARE = 0.2
"""The longest delay after refusals, in seconds: at first, and as a share of the time that refusals have lasted."""

OUTAGE_TIMEOUT = 60.0
"""Wait one to two times this many seconds for the shared probe to report that the server is back."""

WAKE_WITHIN = 1.0
"""Readers that waited for a server return to it spread over this many seconds."""


def is_hopeless(error: BaseException) -> bool:
    """Whether a first list that failed with this error will fail again: an answer in HOPELESS, or a ConfigError."""
    return isinstance(error, ConfigError) or (isinstance(error, ApiError) and error.status in HOPELESS)


class Retry:
    """Waits between the attempts of one reflector.

    Args:
        backoff: The delays, and the source of all jitter.
        health: Server health, shared with the other readers of the server; None to wait alone.

    Attributes:
        at: Loop time of the next attempt; None while not waiting.
        waiting_for: The server that has to answer first; None if only time has to pass.
    """

    def __init__(self, backoff: Backoff, health: SharedHealth | None) -> None:
        self._backoff = backoff
        self._random = backoff.random
        self._health = health
        self._at_least = 0.0
        self._outage_error: Exception | None = None
        self._refused_since: float | None = None
        self._had_outage = False  # the last wait ended with an outage, and nothing was answered since
        self.at: float | None = None
        self.waiting_for: str | None = None

    @property
    def probe_error(self) -> Exception | None:
        """The last error of the probe that checks that server."""
        return None if self._health is None or self.waiting_for is None else self._health.probe_error

    def record_failure(self, error: Exception, *, from_stream: bool = False) -> bool:
        """Record an error; return whether it is new for the readers of the server.

        Args:
            error: The error.
            from_stream: Whether an open stream failed, not a request: that says less about the server.
        """
        refused = isinstance(error, ApiError) and error.status in REFUSALS
        if not refused:
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = asyncio.get_running_loop().time()
        self._at_least = (error.retry_after if isinstance(error, ApiError) else None) or 0.0
        if self._health is None:
            return True
        self._outage_error = error if not from_stream and self._health.concerns(error) else None
        return self._health.record_error(error)

    def record_success(self) -> None:
        """Record that a request succeeded. A refusal stays: the user may be allowed to list but not to watch."""
        self._at_least = 0.0
        self._outage_error = None
        self._had_outage = False

    def record_watch(self) -> None:
        """Record that a watch was opened: no refusal remains."""
        self.record_success()
        if self._refused_since is not None and self._health is not None:
            self._health.record_accepted()
        self._refused_since = None

    def reset(self) -> None:
        """Make the next delay the shortest again."""
        self._backoff.reset()

    async def wait(self) -> None:
        """Wait until the next attempt is due. May be cancelled at any time."""
        now = asyncio.get_running_loop().time
        started = now()
        at_least, self._at_least = self._at_least, 0.0
        outage_error, self._outage_error = self._outage_error, None
        at_once = False
        if outage_error is not None and self._health is not None:
            at_once = await self._wait_for_server(self._health, outage_error)
        waited = now() - started
        if at_once:
            await self._sleep(max(at_least - waited, self._random.random() * WAKE_WITHIN))
            return
        delay = self._backoff.next(at_least, self._longest()) - waited
        if self._refused_since is None or self._health is None:
            await self._sleep(delay)
        elif await self._sleep_unless_accepted(delay, self._health):
            await self._sleep(self._random.random() * WAKE_WITHIN)

    def _longest(self) -> float:
        """Return the longest delay in seconds."""
        if self._refused_since is None:
            return self._backoff.CAP
        lasted = asyncio.get_running_loop().time() - self._refused_since
        longest = min(self._backoff.CAP, max(REFUSED_PAUSE, lasted * REFUSED_SHARE))
        return longest * (1.0 + self._random.random()) / 2.0

    async def _sleep(self, delay: float) -> None:
        self.at = asyncio.get_running_loop().time() + delay
        try:
            await asyncio.sleep(delay)
        finally:
            self.at = None

    async def _sleep_unless_accepted(self, delay: float, health: SharedHealth) -> bool:
        """Sleep, or until another reader of the server is accepted; return whether one was."""
        try:
            with anyio.move_on_after(delay) as scope:
                self.at = scope.deadline
                await health.until_accepted()
                return True
        finally:
            self.at = None
        return False

    async def _wait_for_server(self, health: SharedHealth, outage_error: Exception) -> bool:
        """Wait until the server answers, for a limited time, because the probe that asks for all may be wrong.

        Returns:
            Whether to try at once: an outage is not a failed attempt, unless it directly follows another.
        """
        try:
            with anyio.move_on_after(OUTAGE_TIMEOUT * (1.0 + self._random.random())) as scope:
                self.at, self.waiting_for = scope.deadline, str(health)
                outage = await health.until_reachable(outage_error)
                first, self._had_outage = not self._had_outage, outage
                return outage and first
        finally:
            self.at = self.waiting_for = None
        return True
