"""Going through a coroutine step by step."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from aioinformer.tasks import finish

T = TypeVar("T")


async def until(condition: Callable[[], object]) -> None:
    """Let others run until something is so; the test's timeout ends what never comes."""
    while not condition():  # noqa: ASYNC110 - any condition, not only one that somebody announces
        await asyncio.sleep(0)


async def turns(count: int) -> None:
    """Let the loop go round a few times."""
    for _ in range(count):
        await asyncio.sleep(0)


async def cancel_after(count: int, coroutine: Coroutine[Any, Any, T]) -> T | None:
    """Cancel a coroutine after some rounds of the loop; its result if it had ended before, else None."""
    task = asyncio.create_task(coroutine)
    await turns(count)
    task.cancel()
    try:
        return await task
    except asyncio.CancelledError:
        return None


@asynccontextmanager
async def running(coroutine: Coroutine[Any, Any, Any]) -> AsyncIterator[asyncio.Task[Any]]:
    """A coroutine that runs meanwhile; what it raised is raised at the end."""
    task = asyncio.create_task(coroutine)
    try:
        yield task
    finally:
        await finish(task)
    if not task.cancelled():
        task.result()
