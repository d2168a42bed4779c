"""Waiting for a condition."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer import ConfigError, NotFoundError
from aioinformer.testing import StatusError, eventually


async def test_waits_until_the_condition_holds() -> None:
    seen: list[int] = []
    asyncio.get_running_loop().call_later(0.02, seen.append, 1)
    await eventually(lambda: seen)
    assert seen == [1]


async def test_timeout_names_the_condition() -> None:
    with pytest.raises(AssertionError, match=r"not within 0\.05 s: peace"):
        await eventually(lambda: False, within=0.05, what="peace")


async def test_not_found_means_not_yet() -> None:
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


async def test_timeout_shows_the_last_not_found_error() -> None:
    missing = NotFoundError("default/a")

    def find() -> bool:
        raise missing

    told = r"not within 0\.01 s: peace; the last call raised NotFoundError: object 'default/a' not found$"
    with pytest.raises(AssertionError, match=told) as caught:
        await eventually(find, within=0.01, what="peace")
    assert caught.value.__cause__ is missing


@pytest.mark.parametrize("error", [StatusError(409), KeyError("a"), ConfigError("no")], ids=repr)
async def test_other_errors_propagate_immediately(error: Exception) -> None:
    def fail() -> bool:
        raise error

    with pytest.raises(type(error)):
        await eventually(fail)


async def test_lambda_is_named_by_its_source_line() -> None:
    with pytest.raises(
        AssertionError, match=r"not within 0\.01 s: await eventually\(lambda: .* \(test_waiting\.py:\d+\)$"
    ):
        await eventually(lambda: False, within=0.01)
    event = asyncio.Event()
    with pytest.raises(
        AssertionError, match=r"not within 0\.01 s: <bound method Event.is_set of .* \[unset\]>>$"
    ):
        await eventually(event.is_set, within=0.01)


async def test_async_condition_is_refused() -> None:
    async def never() -> bool:
        return False

    with pytest.raises(ConfigError, match=r"condition must be a plain function, .*never"):
        await eventually(never)
    with pytest.raises(
        ConfigError, match="condition must return its result, not an awaitable: <coroutine object"
    ):
        await eventually(lambda: asyncio.sleep(0, False))
