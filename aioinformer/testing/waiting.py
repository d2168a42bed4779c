"""Wait for conditions."""

from __future__ import annotations

import asyncio
import inspect
import linecache
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar, overload

from aioinformer._core.callables import callable_name, is_of_kind, require_callable
from aioinformer._core.cancellation import maybe_await, time_limit
from aioinformer.errors import ConfigError, NotFoundError

from .errors import StatusError

T = TypeVar("T")


@overload
async def eventually(
    condition: Callable[[], Awaitable[T | None]], within: float = 10.0, what: str = "", every: float = 0.01
) -> T: ...


@overload
async def eventually(
    condition: Callable[[], T | None], within: float = 10.0, what: str = "", every: float = 0.01
) -> T: ...


async def eventually(
    condition: Callable[[], Any], within: float = 10.0, what: str = "", every: float = 0.01
) -> Any:
    """Wait for a condition, and return its first result that is true.

    Args:
        condition: A function or coroutine function that returns whether the condition holds, or an object once it
            exists. A NotFoundError, of a cache or of the server, or the embedded server's StatusError of 404, means not
            yet; any other error propagates.
        within: Seconds of the event loop's clock until the wait fails.
        what: A description of the condition, for the error.
        every: Seconds between two calls.

    Raises:
        AssertionError: The condition did not hold in time.
        ConfigError: The condition cannot be called, or is a generator.
    """
    __tracebackhide__ = True
    require_callable("condition", condition)
    if is_of_kind(condition, inspect.isgeneratorfunction, inspect.isasyncgenfunction):
        raise ConfigError(f"condition must return its result, without yield: {callable_name(condition)}")
    missing: Exception | None = None
    loop = asyncio.get_running_loop()
    end = loop.time() + within
    async with time_limit(within + every, lambda: None):  # the last check comes at the end
        while True:
            try:
                if result := await maybe_await(condition()):
                    return result
                missing = None
            except (NotFoundError, StatusError) as error:
                if isinstance(error, StatusError) and error.code != 404:
                    raise
                missing = error
            if loop.time() >= end:
                break
            await asyncio.sleep(every)
    why = f"; the last call raised {type(missing).__name__}: {missing}" if missing else ""
    raise AssertionError(f"not within {within:g} s: {what or _source(condition)}{why}") from missing


def _source(condition: Callable[..., object]) -> str:
    if not isinstance(condition, FunctionType):
        return repr(condition)
    code, text = condition.__code__, condition.__name__
    if text == "<lambda>":
        text = linecache.getline(code.co_filename, code.co_firstlineno).strip() or repr(condition)
    return f"{text} ({Path(code.co_filename).name}:{code.co_firstlineno})"
