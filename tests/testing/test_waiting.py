"""Waiting for a condition."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import assert_type

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

    def is_there() -> bool:
        seen.append(1)
        if len(seen) == 1:
            raise NotFoundError("default/a is not in the cache")
        if len(seen) == 2:
            raise StatusError(404)
        return True

    await eventually(is_there)
    assert len(seen) == 3


async def test_timeout_shows_the_last_not_found_error() -> None:
    missing = NotFoundError("default/a")

    def find() -> bool:
        raise missing

    message = r"not within 0\.01 s: peace; the last call raised NotFoundError: object 'default/a' not found$"
    with pytest.raises(AssertionError, match=message) as caught:
        await eventually(find, within=0.01, what="peace")
    assert caught.value.__cause__ is missing


@pytest.mark.parametrize("error", [StatusError(409), KeyError("a"), ConfigError("no")], ids=repr)
async def test_other_errors_propagate_immediately(error: Exception) -> None:
    def fail() -> bool:
        raise error

    with pytest.raises(type(error)):
        await eventually(fail)


async def test_condition_is_named_by_its_source() -> None:
    with pytest.raises(
        AssertionError, match=r"not within 0\.01 s: await eventually\(lambda: .* \(test_waiting\.py:\d+\)$"
    ):
        await eventually(lambda: False, within=0.01)
    event = asyncio.Event()
    with pytest.raises(
        AssertionError, match=r"not within 0\.01 s: <bound method Event.is_set of .* \[unset\]>>$"
    ):
        await eventually(event.is_set, within=0.01)


async def test_result_of_the_condition_is_returned() -> None:
    assert await eventually(lambda: [1]) == [1]


async def test_type_checkers_know_that_the_result_is_not_none() -> None:
    values: dict[str, int] = {"a": 1}

    async def later(key: str) -> int | None:
        return values.get(key)

    assert_type(await eventually(lambda: values.get("a")), int)
    assert_type(await eventually(lambda: later("a")), int)
    assert_type(await eventually(lambda: [1]), list[int])


async def test_condition_may_be_a_coroutine() -> None:
    reads: list[int] = []

    async def read() -> list[int]:
        await asyncio.sleep(0)
        reads.append(1)
        if len(reads) < 3:
            raise NotFoundError("default/a is not on the server")
        return reads

    assert await eventually(read) is reads


async def test_coroutine_that_hangs_is_cancelled_in_time() -> None:
    async def read() -> bool:
        await asyncio.get_running_loop().create_future()
        return True

    with pytest.raises(AssertionError, match=r"not within 0\.05 s: read \(test_waiting\.py:\d+\)"):
        await eventually(read, within=0.05)


async def test_timeout_of_the_condition_itself_propagates() -> None:
    async def read() -> bool:
        raise TimeoutError("the server is slow")

    with pytest.raises(TimeoutError, match="the server is slow"):
        await eventually(read)


async def test_generator_is_refused() -> None:
    def values() -> Iterator[bool]:
        yield True

    with pytest.raises(ConfigError, match=r"condition must return its result, without yield: .*values"):
        await eventually(values)
