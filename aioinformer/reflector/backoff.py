"""How long to wait before the next try (client-go ``reflector.go``, apimachinery ``wait.Backoff``)."""

from __future__ import annotations

from random import Random

INITIAL = 0.8
CAP = 30.0
FACTOR = 2.0
JITTER = 1.0


class Backoff:
    """Delays that double, with jitter: uniform in ``[d, 2d)`` for d = 0.8, 1.6, 3.2 … seconds, at most 30.

    It resets when told that things are well, never by the clock: an outage does not end because it is long.

    Args:
        random: Where the jitter comes from.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._delay = INITIAL

    def next(self, at_least: float = 0.0, longest: float = CAP) -> float:
        """Seconds to wait now.

        Args:
            at_least: What the server asked for (Retry-After), which also overrules the cap.
            longest: The cap of this delay; the cap of all holds as well.
        """
        delay = min(self._delay * (1.0 + self._random.random() * JITTER), longest, CAP)
        self._delay = min(self._delay * FACTOR, CAP)
        return max(delay, at_least)

    def reset(self) -> None:
        """Things are well again."""
        self._delay = INITIAL
