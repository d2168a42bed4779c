"""Run blocking functions in threads, which cannot be cancelled."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from .._core.threads import call_in

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(func: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a blocking function in a thread of its own, and return when the thread has ended.

    A thread cannot be cancelled. When a reconcile that awaits ``asyncio.to_thread`` is cancelled, the thread continues
    beside the next reconcile of the same object, or beside the next leader. A reconcile that awaits ``in_thread``
    counts as running until its thread has ended. It also leaves the few threads of ``asyncio.to_thread`` to others:
    asyncio uses them to resolve names, such as the API server's.

    Cancellation: takes effect when the thread has ended, unless the function raised.

    Args:
        func: The function.
        *args: Its arguments.
        **kwargs: Its keyword arguments.

    Returns:
        What the function returned.

    Raises:
        BaseException: What the function raised; RuntimeError for a StopIteration, as in any coroutine.
    """
    executor = ThreadPoolExecutor(1, "in_thread")
    try:
        return await call_in(executor, partial(func, *args, **kwargs))
    finally:
        executor.shutdown(wait=False)
