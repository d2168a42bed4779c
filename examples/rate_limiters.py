"""Delays after failures: client-go's rate limiters, and one of your own; a queue's metrics.

python examples/rate_limiters.py
"""

from __future__ import annotations

import asyncio
import random

from aioinformer.workqueue import (
    BucketRateLimiter,
    Histogram,
    ItemExponentialFailureRateLimiter,
    ItemFastSlowRateLimiter,
    MaxOfRateLimiter,
    QueueMetrics,
    RateLimiter,
    Sample,
    WithMaxWaitRateLimiter,
    WorkQueue,
    WorkQueueState,
    default_controller_rate_limiter,
    default_item_based_rate_limiter,
)


class Jittered:
    """A rate limiter of your own: another one's delay plus up to half, so that not all items return at once."""

    def __init__(self, limiter: RateLimiter[str]) -> None:
        self._limiter = limiter

    def when(self, item: str) -> float:
        return self._limiter.when(item) * random.uniform(1, 1.5)

    def forget(self, item: str) -> None:
        self._limiter.forget(item)

    def num_requeues(self, item: str) -> int:
        return self._limiter.num_requeues(item)


def delays(limiter: RateLimiter[str]) -> str:
    """Print the delays of six failures in a row."""
    return " ".join(f"{limiter.when('item'):g}" for _ in range(6))


class Reported(QueueMetrics[str]):
    """Metrics that also go elsewhere: override the methods that you need."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes = Histogram(bounds=(1, 10, 100))

    def added(self, item: str) -> None:
        super().added(item)
        self.sizes.observe(len(item))


def line(sample: Sample) -> str:
    """Print a sample as Prometheus reads it."""
    labels = ",".join(f'{name}="{value}"' for name, value in sample.labels.items())
    return f"{sample.name}{sample.suffix}{{{labels}}} {sample.value:g}"


async def main() -> None:
    """Fail six times with each rate limiter; then print a queue's metrics."""
    print("exponential:", delays(ItemExponentialFailureRateLimiter(base_delay=1, max_delay=10)))
    print("fast, then slow:", delays(ItemFastSlowRateLimiter(0.1, 60, max_fast_attempts=3)))
    # All items share one bucket. It starts full, and here time stands still.
    print("bucket:", delays(BucketRateLimiter(qps=0.5, burst=3, clock=lambda: 0)))
    bucket = BucketRateLimiter(qps=0.1, burst=4, clock=lambda: 0)
    print("the longer one:", delays(MaxOfRateLimiter(ItemExponentialFailureRateLimiter(1, 4), bucket)))
    print("15 at most:", delays(WithMaxWaitRateLimiter(ItemExponentialFailureRateLimiter(1), 15)))
    print("client-go's, for queues:", delays(default_item_based_rate_limiter()))
    print("client-go's, for controllers:", delays(default_controller_rate_limiter()))

    metrics = Reported()
    queue = WorkQueue(Jittered(default_item_based_rate_limiter()), name="fetch", metrics=metrics)
    for item in ("a", "example.com", "a"):
        queue.add(item)
    failed = await queue.get()
    queue.add_rate_limited(failed)
    queue.done(failed)
    tell(queue.state)
    for sample in (*metrics.samples("fetch"), *metrics.sizes.samples("item_size", {})):
        if sample.suffix != "_bucket" and not sample.name.endswith("seconds"):
            print(line(sample))
    queue.shut_down()


def tell(state: WorkQueueState) -> None:
    """Print a queue's state."""
    print(f"{state.depth} waits, {state.processing} with workers, {state.delayed} later")


if __name__ == "__main__":
    asyncio.run(main())
