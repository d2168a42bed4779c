"""What blocks, in threads, which nobody can cancel."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import ParamSpec, TypeVar

from .._core.tasks import wait_ended

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(func: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run what blocks in a thread of its own, and end no sooner than that does.

    Nothing ends a thread from outside. Cancelled while one runs, ``asyncio.to_thread`` ends, and the thread goes on
    beside the next reconcile of the same object, or beside the next leader. A reconcile that awaits this counts as
    running for as long as its thread does. Nor does it wait for one of the few threads that ``asyncio.to_thread`` has,
    or keep them from others: asyncio resolves names in them, also those of the API server.

    Cancellation: takes effect once the thread has ended, unless that has failed.

    Args:
        func: What to call.
        *args: What with.
        **kwargs: What with.

    Returns:
        What it returned.

    Raises:
        BaseException: What it raised; of a StopIteration a RuntimeError, as any coroutine does.
    """
    context, executor = copy_context(), ThreadPoolExecutor(1, "in_thread")
    outcome = executor.submit(lambda: context.run(func, *args, **kwargs))
    try:
        # What comes next in the same thread: a future of asyncio's never ends by a StopIteration.
        await wait_ended(asyncio.get_running_loop().run_in_executor(executor, lambda: None))
    finally:
        executor.shutdown(wait=False)
        result = outcome.result()
    return result
