"""Waiting for a condition."""

from __future__ import annotations

import asyncio

import pytest

from aioinformer.testing import eventually


async def test_what_comes_true_is_waited_for() -> None:
    seen: list[int] = []
    asyncio.get_running_loop().call_later(0.02, seen.append, 1)
    await eventually(lambda: seen)
    assert seen == [1]


async def test_what_does_not_come_true_is_named() -> None:
    with pytest.raises(AssertionError, match=r"not within 0\.05 s: peace"):
        await eventually(lambda: False, within=0.05, what="peace")
