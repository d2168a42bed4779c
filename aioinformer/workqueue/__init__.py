"""Work queues: each item is processed by one worker at a time (client-go ``util/workqueue``)."""

from ..metrics import Histogram, Sample
from .metrics import QueueMetrics
from .queue import AGEING, WorkQueue, WorkQueueState
from .rate_limiters import (
    BucketRateLimiter,
    ItemExponentialFailureRateLimiter,
    ItemFastSlowRateLimiter,
    MaxOfRateLimiter,
    RateLimiter,
    WithMaxWaitRateLimiter,
    default_controller_rate_limiter,
    default_item_based_rate_limiter,
)

__all__ = [
    "AGEING",
    "BucketRateLimiter",
    "Histogram",
    "ItemExponentialFailureRateLimiter",
    "ItemFastSlowRateLimiter",
    "MaxOfRateLimiter",
    "QueueMetrics",
    "RateLimiter",
    "Sample",
    "WithMaxWaitRateLimiter",
    "WorkQueue",
    "WorkQueueState",
    "default_controller_rate_limiter",
    "default_item_based_rate_limiter",
]
