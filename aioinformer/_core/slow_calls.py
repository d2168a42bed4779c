"""SlowCalls: warns of handlers and other user functions that block the event loop."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Generator
from inspect import isawaitable
from time import perf_counter
from typing import Any

SLOW_CALL = 0.1
"""Seconds after which a call is slow. A warning names its function if it blocked the event loop for that long."""
WARN_EVERY = 10.0
"""Seconds between warnings about one function."""
ADVICE = "run blocking work in a thread, such as with aioinformer.operator.in_thread"
"""What to do about a function that blocks the event loop. It is said once for each function."""


class StepTimer:
    """Awaits an awaitable and times each of its steps. A step runs from one wait to the next.

    Args:
        awaitable: Any awaitable.

    Attributes:
        longest: Seconds of the longest step.
    """

    __slots__ = ("_awaitable", "longest")

    def __init__(self, awaitable: Awaitable[Any]) -> None:
        self.longest = 0.0
        self._awaitable = awaitable

    def __await__(self) -> Generator[Any, Any, Any]:
        steps = _await(self._awaitable)
        error: BaseException | None = None
        while True:
            started = perf_counter()
            try:
                waiting_for = steps.send(None) if error is None else steps.throw(error)
            except StopIteration as end:
                return end.value
            finally:
                self.longest = max(self.longest, perf_counter() - started)
            try:
                yield waiting_for
                error = None
            except BaseException as raised:  # such as a cancellation, for the awaitable
                error = raised


async def _await(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


class SlowCalls:
    """Warns about slow calls of one function, sync or async.

    Args:
        name: The function's name in the log.
        logger: Writes the warnings.

    Attributes:
        times_steps: Whether to await a StepTimer in place of a call. It is set after the first slow async call, so that
            fast functions pay nothing.
    """

    __slots__ = ("_has_advised", "_logger", "_name", "_next_warning", "times_steps")

    def __init__(self, name: str, logger: logging.Logger) -> None:
        self.times_steps = self._has_advised = False
        self._name = name
        self._logger = logger
        self._next_warning = 0.0

    def record(self, key: str, took: float, call: object, waiting: int) -> bool:
        """Record a slow call, and warn if it blocked the event loop.

        Args:
            key: The object's key.
            took: Seconds that the call took.
            call: The call's result, or a StepTimer of the result.
            waiting: How many notifications wait.

        Returns:
            Whether the call blocked the event loop.
        """
        blocked = took
        if isawaitable(call):
            blocked = call.longest if isinstance(call, StepTimer) else 0.0
            self.times_steps = True
        if blocked > SLOW_CALL:
            text = f"blocked the event loop for {blocked * 1000:.0f} ms on {key}, with {waiting} waiting"
            if self.warn(text if self._has_advised else f"{text}; {ADVICE}"):
                self._has_advised = True
        return blocked > SLOW_CALL

    def warn(self, what: str) -> bool:
        """Log a warning about the function, at most every WARN_EVERY seconds; return whether it was logged."""
        now = perf_counter()
        if now < self._next_warning:
            return False
        self._next_warning = now + WARN_EVERY
        self._logger.warning("%s %s", self._name, what)
        return True
