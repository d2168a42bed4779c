"""How long the reflector waits before it tries again (client-go ``reflector.go``, apimachinery ``wait.Backoff``).

Change the delays here. ``retry.py`` decides when a delay is cut short.
"""

from __future__ import annotations

from random import Random

INITIAL = 0.8
CAP = 30.0
FACTOR = 2.0
JITTER = 1.0
"""Seconds of the first and of the longest delay, the factor between delays, and the share of jitter added to each."""


class Backoff:
    """Delays that double, with jitter: uniform in ``[d, 2d)`` for d = 0.8, 1.6, 3.2 … seconds, at most 30.

    Only ``reset()`` resets it, never the clock: a long outage is still an outage.

    Args:
        random: Source of the jitter.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._delay = INITIAL

    def next(self, at_least: float = 0.0, longest: float = CAP) -> float:
        """Return the seconds to wait now; the next delay is longer.

        Args:
            at_least: Seconds that the server asked for (Retry-After). They override the cap.
            longest: The cap of this delay, if lower than CAP.
        """
        delay = min(self._delay * (1.0 + self._random.random() * JITTER), longest, CAP)
        self._delay = min(self._delay * FACTOR, CAP)
        return max(delay, at_least)

    def reset(self) -> None:
        """Make the next delay the shortest again."""
        self._delay = INITIAL
