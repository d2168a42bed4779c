"""Token buckets that limit the events of each object (client-go ``EventSourceObjectSpamFilter``)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

MOST_KEYS = 4096
"""Buckets that are kept; the one that was not used for the longest time is dropped, and starts full again."""


class TokenBuckets:
    """A token bucket per key.

    Args:
        burst: Capacity of a bucket.
        refill: Seconds until a token is added, more than 0.
    """

    def __init__(self, burst: int, refill: float) -> None:
        self._burst = burst
        self._refill = refill
        self._buckets: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def take(self, key: Hashable, now: float) -> bool:
        """Take a token. Returns whether there was one.

        Args:
            key: The bucket's key.
            now: The time in seconds; it must not go backwards.
        """
        tokens, since = self._buckets.pop(key, (float(self._burst), now))
        tokens = min(float(self._burst), tokens + (now - since) / self._refill)
        granted = tokens >= 1.0
        self._buckets[key] = (tokens - granted, now)
        if len(self._buckets) > MOST_KEYS:
            self._buckets.popitem(last=False)
        return granted
