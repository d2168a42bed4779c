"""Blocking functions in threads, which cannot be cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from contextvars import Context, copy_context
from typing import Any, TypeVar, cast

from .tasks import wait_ended

T = TypeVar("T")


async def call_in(executor: Executor, function: Callable[..., T], *args: Any) -> T:
    """Call a blocking function in a thread of an executor, in a copy of this context, and wait until it has ended.

    Cancellation: a call that no thread has begun is dropped. Any other is waited for, and its error is raised in place
    of the CancelledError.

    Raises:
        BaseException: What the function raised; RuntimeError for a StopIteration, as in any coroutine.
        RuntimeError: The executor was shut down.
    """
    call = executor.submit(_outcome, copy_context(), function, args)
    ended = asyncio.wrap_future(call)
    try:
        await asyncio.wait((ended,))  # does not cancel it
    except asyncio.CancelledError:
        if not call.cancel():
            try:
                await wait_ended(ended)
            finally:
                _result_of(ended.result())
        raise
    return cast("T", _result_of(ended.result()))


def _outcome(
    context: Context, function: Callable[..., T], args: tuple[Any, ...]
) -> tuple[Any, BaseException | None]:
    """Return a function's result or error. An asyncio future cannot carry every error: no StopIteration."""
    try:
        return context.run(function, *args), None
    except BaseException as error:
        return None, error


def _result_of(outcome: tuple[Any, BaseException | None]) -> Any:
    result, error = outcome
    if error is not None:
        raise error
    return result
