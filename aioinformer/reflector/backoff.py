"""How long the reflector waits before it tries again (client-go ``reflector.go``, apimachinery ``wait.Backoff``).

Change the delays here. ``retry.py`` decides when a delay is cut short.
"""

from __future__ import annotations

from math import inf
from random import Random


class Backoff:
    """Delays that double, with jitter: uniform in ``[d, 2d)`` for d = 0.8, 1.6, 3.2 … seconds, at most 30.

    Only ``reset()`` resets it, never the clock: a long outage is still an outage.

    Args:
        random: Source of the jitter.
    """

    INITIAL = 0.8
    """Seconds of the first delay."""
    CAP = 30.0
    """Seconds of the longest delay, with its jitter."""
    FACTOR = 2.0
    """The factor between two delays."""
    JITTER = 1.0
    """The share of a delay that is added as jitter, at most."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self._delay = self.INITIAL

    def next(self, at_least: float = 0.0, longest: float = inf) -> float:
        """Return the seconds to wait now; the next delay is longer.

        Args:
            at_least: Seconds that the server asked for (Retry-After). They override the cap.
            longest: The cap of this delay, if lower than CAP.
        """
        delay = min(self._delay * (1.0 + self.random.random() * self.JITTER), longest, self.CAP)
        self._delay = min(self._delay * self.FACTOR, self.CAP)
        return max(delay, at_least)

    def reset(self) -> None:
        """Make the next delay the shortest again."""
        self._delay = self.INITIAL
