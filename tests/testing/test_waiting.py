"""Waiting for a condition."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer import ConfigError, NotFoundError
from aioinformer.testing import StatusError, eventually


async def test_what_comes_true_is_waited_for() -> None:
    seen: list[int] = []
    asyncio.get_running_loop().call_later(0.02, seen.append, 1)
    await eventually(lambda: seen)
    assert seen == [1]


async def test_what_does_not_come_true_is_named() -> None:
    with pytest.raises(AssertionError, match=r"not within 0\.05 s: peace"):
        await eventually(lambda: False, within=0.05, what="peace")


async def test_what_is_not_found_yet_is_waited_for() -> None:
    seen: list[int] = []

    def found() -> bool:
        seen.append(1)
        if len(seen) == 1:
            raise NotFoundError("default/a is not in the cache")
        if len(seen) == 2:
            raise StatusError(404)
        return True

    await eventually(found)
    assert len(seen) == 3


async def test_what_is_never_found_is_told() -> None:
    missing = NotFoundError("default/a")

    def find() -> bool:
        raise missing

    told = r"not within 0\.01 s: peace; at last it raised NotFoundError: object 'default/a' not found$"
    with pytest.raises(AssertionError, match=told) as caught:
        await eventually(find, within=0.01, what="peace")
    assert caught.value.__cause__ is missing


@pytest.mark.parametrize("error", [StatusError(409), KeyError("a"), ConfigError("no")], ids=repr)
async def test_what_a_condition_raises_otherwise_is_raised_at_once(error: Exception) -> None:
    def fail() -> bool:
        raise error

    with pytest.raises(type(error)):
        await eventually(fail)


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
    with pytest.raises(
        ConfigError, match="condition must return its result, not an awaitable: <coroutine object"
    ):
        await eventually(lambda: asyncio.sleep(0, False))
