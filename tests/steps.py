"""Helpers that run a coroutine step by step."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from aioinformer._core.tasks import finish

T = TypeVar("T")


async def until(condition: Callable[[], object]) -> None:
    """Let other tasks run until a condition holds; the test's timeout ends the wait."""
    while not condition():  # noqa: ASYNC110 - any condition, also one without an event
        await asyncio.sleep(0)


async def turns(count: int) -> None:
    """Let a few iterations of the event loop pass."""
    for _ in range(count):
        await asyncio.sleep(0)


async def cancel_after(count: int, coroutine: Coroutine[Any, Any, T]) -> T | None:
    """Cancel a coroutine after some loop iterations; return its result if it had ended before, else None."""
    task = asyncio.create_task(coroutine)
    await turns(count)
    task.cancel()
    try:
        return await task
    except asyncio.CancelledError:
        return None


@asynccontextmanager
async def run_during(coroutine: Coroutine[Any, Any, Any]) -> AsyncIterator[asyncio.Task[Any]]:
    """Run a coroutine during the block; raise its error at the end."""
    task = asyncio.create_task(coroutine)
    try:
        yield task
    finally:
        await finish(task)
    if not task.cancelled():
        task.result()


@asynccontextmanager
async def full_default_executor() -> AsyncIterator[None]:
    """Keep every thread of ``asyncio.to_thread`` busy during the block."""
    over, loop = threading.Event(), asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(2))
    busy = [asyncio.ensure_future(asyncio.to_thread(over.wait)) for _ in range(4)]
    try:
        yield
    finally:
        over.set()
        await asyncio.gather(*busy)
        await loop.shutdown_default_executor()
