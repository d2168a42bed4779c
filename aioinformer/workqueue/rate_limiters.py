"""How long an item that failed has to wait (client-go ``default_rate_limiters.go``)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Any, Generic, Protocol, TypeVar

from .._core.checks import is_finite, require_count, require_seconds
from ..errors import ConfigError

T = TypeVar("T", bound=Hashable)
T_contra = TypeVar("T_contra", bound=Hashable, contravariant=True)

LARGEST_EXPONENT = 1000
"""2.0 to this power is still a number."""


class RateLimiter(Protocol[T_contra]):
    """Says how long to wait, for each item."""

    def when(self, item: T_contra) -> float:
        """Seconds that an item is to wait from now on. To ask counts as a requeue."""
        ...

    def forget(self, item: T_contra) -> None:
        """An item is not tried again, be it because it went well: its next failure is its first."""
        ...

    def num_requeues(self, item: T_contra) -> int:
        """How often an item was asked about since it was forgotten."""
        ...


class _ItemFailures(Generic[T]):
    """Counts the failures of each item."""

    def __init__(self) -> None:
        self._failures: dict[T, int] = {}

    def forget(self, item: T) -> None:
        """Its next failure is its first."""
        self._failures.pop(item, None)

    def num_requeues(self, item: T) -> int:
        """How often it has failed since it was forgotten."""
        return self._failures.get(item, 0)


class ItemExponentialFailureRateLimiter(_ItemFailures[T]):
    """``base_delay`` times two to the number of failures.

    Args:
        base_delay: Seconds after the first failure.
        max_delay: Seconds at most.

    Raises:
        ConfigError: That are no durations.
    """

    def __init__(self, base_delay: float = 0.005, max_delay: float = 1000.0) -> None:
        require_seconds("base_delay", base_delay)
        require_seconds("max_delay", max_delay)
        self._base_delay = base_delay
        self._max_delay = max_delay
        super().__init__()

    def when(self, item: T) -> float:
        """Seconds that an item is to wait: each call is a failure of it."""
        failures = self._failures.get(item, 0)
        self._failures[item] = failures + 1
        return min(self._base_delay * 2.0 ** min(failures, LARGEST_EXPONENT), self._max_delay)


class ItemFastSlowRateLimiter(_ItemFailures[T]):
    """A few quick tries, slow ones after that.

    Args:
        fast_delay: Seconds after each of the first failures.
        slow_delay: Seconds after each later one.
        max_fast_attempts: How many are quick.

    Raises:
        ConfigError: That are no durations, or no number.
    """

    def __init__(self, fast_delay: float, slow_delay: float, max_fast_attempts: int) -> None:
        require_seconds("fast_delay", fast_delay)
        require_seconds("slow_delay", slow_delay)
        require_count("max_fast_attempts", max_fast_attempts)
        self._fast_delay = fast_delay
        self._slow_delay = slow_delay
        self._max_fast_attempts = max_fast_attempts
        super().__init__()

    def when(self, item: T) -> float:
        """Seconds that an item is to wait: each call is a failure of it."""
        failures = self._failures[item] = self._failures.get(item, 0) + 1
        return self._fast_delay if failures <= self._max_fast_attempts else self._slow_delay


class BucketRateLimiter:
    """A token bucket for all items together (``golang.org/x/time/rate``).

    Args:
        qps: Tokens that come each second.
        burst: Tokens that the bucket holds, at least 1; it begins full.
        clock: Gives the time in seconds; None for the running loop's.

    Raises:
        ConfigError: There is no such rate.
    """

    def __init__(
        self, qps: float = 10.0, burst: int = 100, *, clock: Callable[[], float] | None = None
    ) -> None:
        if not is_finite(qps) or qps <= 0:
            raise ConfigError(f"qps must be a number above 0, not {qps!r}")
        require_count("burst", burst, least=1)
        self._qps = qps
        self._burst = burst
        self._clock = clock
        self._tokens = float(burst)
        self._last: float | None = None

    def when(self, item: Any) -> float:
        """Seconds until there is a token for it, which this takes."""
        now = asyncio.get_running_loop().time() if self._clock is None else self._clock()
        if self._last is not None:
            passed = max(0.0, now - self._last)  # a clock may be set back
            self._tokens = min(self._tokens + passed * self._qps, self._burst)
        self._last = now
        self._tokens -= 1
        return 0.0 if self._tokens >= 0 else -self._tokens / self._qps

    def forget(self, item: Any) -> None:
        """A bucket knows no items."""

    def num_requeues(self, item: Any) -> int:
        """Always 0: a bucket knows no items."""
        return 0


class MaxOfRateLimiter(Generic[T]):
    """The longest of what several say.

    Args:
        *limiters: Whom to ask; each counts.
    """

    def __init__(self, *limiters: RateLimiter[T]) -> None:
        self._limiters = limiters

    def when(self, item: T) -> float:
        """The longest wait; each limiter is asked."""
        return max((limiter.when(item) for limiter in self._limiters), default=0.0)

    def forget(self, item: T) -> None:
        """All of them forget it."""
        for limiter in self._limiters:
            limiter.forget(item)

    def num_requeues(self, item: T) -> int:
        """The most that one of them counts."""
        return max((limiter.num_requeues(item) for limiter in self._limiters), default=0)


class WithMaxWaitRateLimiter(Generic[T]):
    """What another says, but no more than a given time.

    Args:
        limiter: Whom to ask.
        max_delay: Seconds at most.

    Raises:
        ConfigError: That is no duration.
    """

    def __init__(self, limiter: RateLimiter[T], max_delay: float) -> None:
        require_seconds("max_delay", max_delay)
        self._limiter = limiter
        self._max_delay = max_delay

    def when(self, item: T) -> float:
        """The other's wait, or the longest that there is."""
        return min(self._limiter.when(item), self._max_delay)

    def forget(self, item: T) -> None:
        """The other forgets it."""
        self._limiter.forget(item)

    def num_requeues(self, item: T) -> int:
        """What the other counts."""
        return self._limiter.num_requeues(item)


def default_controller_rate_limiter() -> MaxOfRateLimiter[Any]:
    """For each item 5 ms to 1000 s, doubled at each failure; for all together 10 a second after the first 100."""
    return MaxOfRateLimiter(ItemExponentialFailureRateLimiter(), BucketRateLimiter())


def default_item_based_rate_limiter() -> ItemExponentialFailureRateLimiter[Any]:
    """For each item 1 ms to 1000 s, doubled at each failure."""
    return ItemExponentialFailureRateLimiter(0.001, 1000.0)
