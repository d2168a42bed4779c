"""Rate limiters: the delay before an item is retried (client-go ``default_rate_limiters.go``)."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, Protocol, TypeVar

from .._core.checks import is_finite, require_count, require_seconds
from .._core.loops import require_running_loop
from ..errors import ConfigError

T = TypeVar("T", bound=Hashable)
T_contra = TypeVar("T_contra", bound=Hashable, contravariant=True)

LARGEST_EXPONENT = 1000
"""Largest exponent used: 2.0 to a power above 1023 overflows."""


class RateLimiter(Protocol[T_contra]):
    """Decides how long each item waits before its next retry."""

    def when(self, item: T_contra) -> float:
        """Return the seconds until an item may be retried. Each call counts as a failure of the item."""
        ...

    def forget(self, item: T_contra) -> None:
        """Reset an item, after a success or when it is given up: its next failure counts as the first."""
        ...

    def num_requeues(self, item: T_contra) -> int:
        """Return how often ``when`` was called for an item since it was forgotten."""
        ...


class _ItemFailures(Generic[T]):
    """Counts the failures of each item."""

    def __init__(self) -> None:
        self._failures: dict[T, int] = {}

    def forget(self, item: T) -> None:
        """Reset an item's failures."""
        self._failures.pop(item, None)

    def num_requeues(self, item: T) -> int:
        """Return the number of failures since the item was forgotten."""
        return self._failures.get(item, 0)


class ItemExponentialFailureRateLimiter(_ItemFailures[T]):
    """Exponential back-off: ``base_delay``, doubled with each failure of the item, up to ``max_delay``.

    Args:
        base_delay: Seconds after the first failure.
        max_delay: Seconds at most.

    Raises:
        ConfigError: A delay is not a duration.
    """

    def __init__(self, base_delay: float = 0.005, max_delay: float = 1000.0) -> None:
        require_seconds("base_delay", base_delay)
        require_seconds("max_delay", max_delay)
        self._base_delay = base_delay
        self._max_delay = max_delay
        super().__init__()

    def when(self, item: T) -> float:
        """Return the seconds until an item may be retried. Each call counts as a failure of the item."""
        failures = self._failures.get(item, 0)
        self._failures[item] = failures + 1
        return min(self._base_delay * 2.0 ** min(failures, LARGEST_EXPONENT), self._max_delay)


class ItemFastSlowRateLimiter(_ItemFailures[T]):
    """A few fast retries, then slow ones.

    Args:
        fast_delay: Seconds after each of the first failures.
        slow_delay: Seconds after each later failure.
        max_fast_attempts: Number of fast retries.

    Raises:
        ConfigError: A delay is not a duration, or ``max_fast_attempts`` is not a count.
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
        """Return the seconds until an item may be retried. Each call counts as a failure of the item."""
        failures = self._failures[item] = self._failures.get(item, 0) + 1
        return self._fast_delay if failures <= self._max_fast_attempts else self._slow_delay


class BucketRateLimiter:
    """A token bucket shared by all items (``golang.org/x/time/rate``).

    Args:
        qps: Tokens added per second.
        burst: Capacity of the bucket in tokens, at least 1; it starts full.
        clock: Returns the time in seconds; None for the running loop's time.

    Raises:
        ConfigError: ``qps`` is not above 0, or ``burst`` is less than 1.
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
        """Take a token, and return the seconds until it is available."""
        now = require_running_loop(type(self).__name__).time() if self._clock is None else self._clock()
        if self._last is not None:
            passed = max(0.0, now - self._last)  # a clock may be set back
            self._tokens = min(self._tokens + passed * self._qps, self._burst)
        self._last = now
        self._tokens -= 1
        return 0.0 if self._tokens >= 0 else -self._tokens / self._qps

    def forget(self, item: Any) -> None:
        """Do nothing: a bucket does not track items."""

    def num_requeues(self, item: Any) -> int:
        """Return 0: a bucket does not track items."""
        return 0


class MaxOfRateLimiter(Generic[T]):
    """The longest delay of several rate limiters.

    Args:
        *limiters: The rate limiters; each counts every failure.
    """

    def __init__(self, *limiters: RateLimiter[T]) -> None:
        self._limiters = limiters

    def when(self, item: T) -> float:
        """Return the longest delay; calls every limiter."""
        return max((limiter.when(item) for limiter in self._limiters), default=0.0)

    def forget(self, item: T) -> None:
        """Reset the item in all limiters."""
        for limiter in self._limiters:
            limiter.forget(item)

    def num_requeues(self, item: T) -> int:
        """Return the largest count of the limiters."""
        return max((limiter.num_requeues(item) for limiter in self._limiters), default=0)


class WithMaxWaitRateLimiter(Generic[T]):
    """Another rate limiter's delay, with an upper limit.

    Args:
        limiter: The other rate limiter.
        max_delay: Seconds at most.

    Raises:
        ConfigError: ``max_delay`` is not a duration.
    """

    def __init__(self, limiter: RateLimiter[T], max_delay: float) -> None:
        require_seconds("max_delay", max_delay)
        self._limiter = limiter
        self._max_delay = max_delay

    def when(self, item: T) -> float:
        """Return the other limiter's delay, at most ``max_delay``."""
        return min(self._limiter.when(item), self._max_delay)

    def forget(self, item: T) -> None:
        """Reset the item in the other limiter."""
        self._limiter.forget(item)

    def num_requeues(self, item: T) -> int:
        """Return the other limiter's count."""
        return self._limiter.num_requeues(item)


def default_controller_rate_limiter() -> MaxOfRateLimiter[Any]:
    """Return client-go's default: per item 5 ms to 1000 s, doubled at each failure; overall 10/s after 100."""
    return MaxOfRateLimiter(ItemExponentialFailureRateLimiter(), BucketRateLimiter())


def default_item_based_rate_limiter() -> ItemExponentialFailureRateLimiter[Any]:
    """Return a rate limiter per item: 1 ms to 1000 s, doubled at each failure."""
    return ItemExponentialFailureRateLimiter(0.001, 1000.0)
