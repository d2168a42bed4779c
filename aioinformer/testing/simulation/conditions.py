"""Network conditions: how long data is in flight and where it is split or joined, drawn from a seed."""

from __future__ import annotations

from random import Random


class Conditions:
    """The conditions under which connections carry data.

    Args:
        random: Draws latencies and the places at which chunks are split.

    Attributes:
        latency: Seconds that anything is in flight: from, to.
        torn: Probability that a server's write arrives in two pieces.
        joined: Probability that it arrives together with the previous write.
        slow: Probability that the server has to wait before its next write.
        late_closing: Seconds by which to delay the next bookmark that ends a WatchList's initial events. It arrives
            after the changes that happen meanwhile.
        duplicates: How many of the next creations and updates are sent twice, which no API server should do.
    """

    def __init__(self, random: Random) -> None:
        self.latency = (0.001, 0.01)
        self.torn = 0.1
        self.joined = 0.3
        self.slow = 0.1
        self.late_closing = 0.0
        self.duplicates = 0
        self._random = random

    def delay(self) -> float:
        """Return how long the next item is in flight, in seconds."""
        shortest, longest = self.latency
        return shortest + (longest - shortest) * self._random.random()

    def joins(self) -> bool:
        """Return whether the next write arrives together with the one still in flight."""
        return self._random.random() < self.joined

    def is_slow(self) -> bool:
        """Return whether the client is slow to read."""
        return self._random.random() < self.slow

    def tear(self, size: int) -> int:
        """Return how many of `size` bytes arrive in the first piece."""
        return self._random.randrange(size + 1) if self._random.random() < self.torn else size

    def clear(self) -> None:
        """Drop the troubles that wait for the next data."""
        self.late_closing = 0.0
        self.duplicates = 0
