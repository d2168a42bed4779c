"""Waiting for what comes true by itself."""

from __future__ import annotations

import asyncio
import linecache
from collections.abc import Callable
from pathlib import Path
from types import FunctionType

from aioinformer.errors import NotFoundError
from aioinformer.handlers import require_at_once, require_plain

from .errors import StatusError


async def eventually(
    condition: Callable[[], object], within: float = 10.0, what: str = "", every: float = 0.01
) -> None:
    """Wait for a condition.

    Args:
        condition: A plain function, asked again and again. Where it raises a NotFoundError, or the embedded server's
            StatusError of 404, it has not come true yet; any other error passes.
        within: Seconds of the event loop's clock in which it has to come true.
        what: What is waited for, for the error.
        every: Seconds between two looks.

    Raises:
        AssertionError: It did not come true in time.
        ConfigError: The condition is async.
    """
    __tracebackhide__ = True
    require_plain("condition", condition)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    while True:
        missing: Exception | None = None
        try:
            if require_at_once("condition", condition()):
                return
        except NotFoundError as error:
            missing = error
        except StatusError as error:
            if error.code != 404:
                raise
            missing = error
        if loop.time() >= deadline:
            why = "" if missing is None else f"; at last it raised {type(missing).__name__}: {missing}"
            raise AssertionError(f"not within {within:g} s: {what or _told(condition)}{why}") from missing
        await asyncio.sleep(every)


def _told(condition: Callable[[], object]) -> str:
    if not isinstance(condition, FunctionType) or condition.__name__ != "<lambda>":
        return repr(condition)
    code = condition.__code__
    line = linecache.getline(code.co_filename, code.co_firstlineno).strip()
    return f"{line or repr(condition)} ({Path(code.co_filename).name}:{code.co_firstlineno})"
