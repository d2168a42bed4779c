"""Wait for conditions."""

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
        condition: A sync function that returns whether the condition holds. A NotFoundError, or the embedded server's
            StatusError of 404, means not yet; any other error propagates.
        within: Seconds of the event loop's clock until the wait fails.
        what: A description of the condition, for the error.
        every: Seconds between two calls.

    Raises:
        AssertionError: The condition did not hold in time.
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
            why = "" if missing is None else f"; the last call raised {type(missing).__name__}: {missing}"
            raise AssertionError(f"not within {within:g} s: {what or _source(condition)}{why}") from missing
        await asyncio.sleep(every)


def _source(condition: Callable[[], object]) -> str:
    if not isinstance(condition, FunctionType) or condition.__name__ != "<lambda>":
        return repr(condition)
    code = condition.__code__
    line = linecache.getline(code.co_filename, code.co_firstlineno).strip()
    return f"{line or repr(condition)} ({Path(code.co_filename).name}:{code.co_firstlineno})"
