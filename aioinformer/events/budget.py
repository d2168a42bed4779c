"""How many events one object may cause (client-go ``EventSourceObjectSpamFilter``)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

MOST_KEYS = 4096
"""Objects that are remembered; whoever was not heard of for the longest begins with a full bucket again."""


class Budget:
    """A token bucket for each key.

    Args:
        burst: Tokens in a full bucket.
        refill: Seconds until another token is there, more than 0.
    """

    def __init__(self, burst: int, refill: float) -> None:
        self._burst = burst
        self._refill = refill
        self._buckets: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def take(self, key: Hashable, now: float) -> bool:
        """Take a token, if there is one.

        Args:
            key: Whose.
            now: The time in seconds, which does not go backwards.
        """
        tokens, since = self._buckets.pop(key, (float(self._burst), now))
        tokens = min(float(self._burst), tokens + (now - since) / self._refill)
        granted = tokens >= 1.0
        self._buckets[key] = (tokens - granted, now)
        if len(self._buckets) > MOST_KEYS:
            self._buckets.popitem(last=False)
        return granted
