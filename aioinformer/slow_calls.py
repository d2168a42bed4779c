"""SlowCalls: names in the log who keeps everything else in the event loop waiting."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Coroutine
from inspect import isawaitable
from time import perf_counter
from typing import Any

from .tasks import Stepped

SLOW_CALL = 0.1
"""Seconds of a call over which it is slow, and its caller logged if it held the event loop for as long."""
WARN_EVERY = 10.0
"""Seconds between warnings about one caller."""


class StepTimer(Stepped[Any]):
    """Awaits something and times each of its steps.

    Args:
        awaitable: What is awaited in its place.

    Attributes:
        longest: Seconds of the longest step.
    """

    __slots__ = ("longest",)

    def __init__(self, awaitable: Awaitable[Any]) -> None:
        super().__init__(awaitable)
        self.longest = 0.0

    def _step(self, steps: Coroutine[Any, Any, Any], error: BaseException | None) -> Any:
        started = perf_counter()
        try:
            return super()._step(steps, error)
        finally:
            self.longest = max(self.longest, perf_counter() - started)


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
