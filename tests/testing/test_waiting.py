"""Waiting for a condition."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer import ConfigError
from aioinformer.testing import eventually


async def test_what_comes_true_is_waited_for() -> None:
    seen: list[int] = []
    asyncio.get_running_loop().call_later(0.02, seen.append, 1)
    await eventually(lambda: seen)
    assert seen == [1]


async def test_what_does_not_come_true_is_named() -> None:
    with pytest.raises(AssertionError, match=r"not within 0\.05 s: peace"):
        await eventually(lambda: False, within=0.05, what="peace")


async def test_a_condition_without_a_name_is_told_by_its_line() -> None:
    with pytest.raises(
        AssertionError, match=r"not within 0\.01 s: await eventually\(lambda: .* \(test_waiting\.py:\d+\)$"
    ):
        await eventually(lambda: False, within=0.01)
    event = asyncio.Event()
    with pytest.raises(
        AssertionError, match=r"not within 0\.01 s: <bound method Event.is_set of .* \[unset\]>>$"
    ):
        await eventually(event.is_set, within=0.01)


async def test_an_async_condition_would_count_as_true() -> None:
    async def never() -> bool:
        return False

    with pytest.raises(ConfigError, match=r"condition must be a plain function, .*never"):
        await eventually(never)
    with pytest.raises(ConfigError, match="condition must give its result at once, not <coroutine object"):
        await eventually(lambda: asyncio.sleep(0, False))
