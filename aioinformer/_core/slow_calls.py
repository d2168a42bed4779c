"""SlowCalls: names in the log who keeps everything else in the event loop waiting."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Generator
from inspect import isawaitable
from time import perf_counter
from typing import Any

SLOW_CALL = 0.1
"""Seconds of a call over which it is slow, and its caller logged if it held the event loop for as long."""
WARN_EVERY = 10.0
"""Seconds between warnings about one caller."""


class StepTimer:
    """Awaits something and times each of its steps: what runs between two waits.

    Args:
        awaitable: What is awaited in its place; whatever can be.

    Attributes:
        longest: Seconds of the longest step.
    """

    __slots__ = ("_awaitable", "longest")

    def __init__(self, awaitable: Awaitable[Any]) -> None:
        self.longest = 0.0
        self._awaitable = awaitable

    def __await__(self) -> Generator[Any, Any, Any]:
        steps = _awaiting(self._awaitable)
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
            except BaseException as raised:  # a cancellation, which is the awaitable's to see
                error = raised


async def _awaiting(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


class SlowCalls:
    """Slow calls of one function, plain or async, and the warnings about them.

    Args:
        name: What the log calls the function.
        logger: Where it is warned of.

    Attributes:
        times_steps: Whether to await a StepTimer in place of a call: once an async one was slow, so that quick ones
            cost nothing.
    """

    __slots__ = ("_logger", "_name", "_next_warning", "times_steps")

    def __init__(self, name: str, logger: logging.Logger) -> None:
        self.times_steps = False
        self._name = name
        self._logger = logger
        self._next_warning = 0.0

    def note(self, key: str, took: float, call: object, waiting: int) -> bool:
        """A call was slow: warn if nothing else could run meanwhile.

        Args:
            key: The object's.
            took: Seconds.
            call: What it returned, or the StepTimer of that.
            waiting: How many wait for their turn.

        Returns:
            Whether nothing else could run.
        """
        held = took
        if isawaitable(call):
            held = call.longest if isinstance(call, StepTimer) else 0.0
            self.times_steps = True
        if held > SLOW_CALL:
            self.warn(f"held the event loop for {held * 1000:.0f} ms on {key}, with {waiting} waiting")
        return held > SLOW_CALL

    def warn(self, what: str) -> None:
        """Say something about the function, but not too often."""
        now = perf_counter()
        if now >= self._next_warning:
            self._next_warning = now + WARN_EVERY
            self._logger.warning("%s %s", self._name, what)
