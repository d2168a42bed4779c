"""workqueue/rate_limiters.py, with the values of client-go's tests."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer import ConfigError
from aioinformer.workqueue import (
    BucketRateLimiter,
    ItemExponentialFailureRateLimiter,
    ItemFastSlowRateLimiter,
    MaxOfRateLimiter,
    RateLimiter,
    WithMaxWaitRateLimiter,
    default_controller_rate_limiter,
    default_item_based_rate_limiter,
)

from ..virtual_time import virtual_time


def test_exponential_delays() -> None:
    """TestItemExponentialFailureRateLimiter."""
    limiter: RateLimiter[str] = ItemExponentialFailureRateLimiter(0.001, 1.0)
    assert [limiter.when("one") for _ in range(5)] == pytest.approx([0.001, 0.002, 0.004, 0.008, 0.016])
    assert limiter.num_requeues("one") == 5
    assert [limiter.when("two") for _ in range(2)] == pytest.approx([0.001, 0.002])
    limiter.forget("one")
    limiter.forget("never seen")
    assert limiter.num_requeues("one") == 0
    assert limiter.when("one") == pytest.approx(0.001)


def test_exponential_delays_have_a_maximum() -> None:
    """TestItemExponentialFailureRateLimiterOverFlow."""
    limiter = ItemExponentialFailureRateLimiter[str](0.001, 1000.0)
    delays = [limiter.when("one") for _ in range(3000)]
    assert delays == sorted(delays)
    assert delays[-1] == 1000.0
    assert ItemExponentialFailureRateLimiter[str](0.0, 10.0).when("one") == 0.0


def test_fast_then_slow_delays() -> None:
    """TestItemFastSlowRateLimiter."""
    limiter: RateLimiter[str] = ItemFastSlowRateLimiter(0.005, 10.0, 3)
    assert [limiter.when("one") for _ in range(5)] == [0.005, 0.005, 0.005, 10.0, 10.0]
    assert limiter.num_requeues("one") == 5
    limiter.forget("one")
    assert limiter.when("one") == 0.005


def test_longest_delay_counts() -> None:
    """TestMaxOfRateLimiter."""
    limiter: RateLimiter[str] = MaxOfRateLimiter(
        ItemFastSlowRateLimiter(0.005, 3.0, 3), ItemExponentialFailureRateLimiter(0.001, 1.0)
    )
    assert [limiter.when("one") for _ in range(5)] == pytest.approx([0.005, 0.005, 0.005, 3.0, 3.0])
    assert limiter.num_requeues("one") == 5
    limiter.forget("one")
    assert limiter.num_requeues("one") == 0
    assert MaxOfRateLimiter[str]().when("one") == 0.0


def test_maximum_wait_limits_another_limiter() -> None:
    """TestWithMaxWaitRateLimiter."""
    limiter: RateLimiter[str] = WithMaxWaitRateLimiter(ItemExponentialFailureRateLimiter(0.005, 1000.0), 0.1)
    assert max(limiter.when("one") for _ in range(20)) == 0.1
    assert limiter.num_requeues("one") == 20
    limiter.forget("one")
    assert limiter.when("one") == 0.005


def test_bucket_allows_a_burst_then_a_rate() -> None:
    now = 0.0
    limiter: RateLimiter[str] = BucketRateLimiter(10.0, 3, clock=lambda: now)
    assert [limiter.when("one") for _ in range(5)] == pytest.approx([0, 0, 0, 0.1, 0.2])
    now = 0.2
    assert limiter.when("two") == pytest.approx(0.1)
    now = 100.0
    assert [limiter.when("one") for _ in range(4)] == pytest.approx([0, 0, 0, 0.1])
    limiter.forget("one")
    assert limiter.num_requeues("one") == 0


def test_clock_set_back_takes_no_tokens() -> None:
    now = 3600.0
    limiter: RateLimiter[str] = BucketRateLimiter(10.0, 3, clock=lambda: now)
    assert limiter.when("one") == 0
    now = 0.0
    assert [limiter.when("one") for _ in range(3)] == pytest.approx([0, 0, 0.1])
    now = 0.1
    assert limiter.when("one") == pytest.approx(0.1)


@virtual_time
async def test_bucket_uses_the_loops_time() -> None:
    limiter = BucketRateLimiter(1.0, 1)
    assert [limiter.when("one") for _ in range(2)] == pytest.approx([0, 1])
    await asyncio.sleep(2)
    assert limiter.when("one") == 0.0


@virtual_time
async def test_defaults_are_upstreams() -> None:
    limiter = default_controller_rate_limiter()
    delays = [limiter.when(number) for number in range(110)]
    assert delays[:100] == pytest.approx([0.005] * 100)
    assert delays[100:] == pytest.approx([0.1 * (number + 1) for number in range(10)])
    by_item = default_item_based_rate_limiter()
    assert [by_item.when("one") for _ in range(2)] == pytest.approx([0.001, 0.002])


def test_invalid_values_are_refused() -> None:
    for make in (
        lambda: ItemExponentialFailureRateLimiter[str](-1),
        lambda: ItemExponentialFailureRateLimiter[str](1, float("inf")),
        lambda: ItemFastSlowRateLimiter[str](1, 1, -1),
        lambda: WithMaxWaitRateLimiter[str](BucketRateLimiter(), float("nan")),
        lambda: BucketRateLimiter(0),
        lambda: BucketRateLimiter(float("inf")),
        lambda: BucketRateLimiter(10**400),
        lambda: BucketRateLimiter(1, 0),
    ):
        with pytest.raises(ConfigError):
            make()
