"""StepTimer: how long one step of a coroutine keeps everything else in the event loop waiting."""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from time import perf_counter
from typing import Any


class StepTimer:
    """Awaits something and times each of its steps: what runs between two waits.

    Attributes:
        longest: Seconds of the longest step of what was awaited last.
    """

    def __init__(self) -> None:
        self.longest = 0.0
        self._awaitable: Awaitable[Any] | None = None

    def timing(self, awaitable: Awaitable[Any]) -> StepTimer:
        """Await the result of this instead of the awaitable."""
        self._awaitable = awaitable
        self.longest = 0.0
        return self

    def __await__(self) -> Generator[Any, Any, Any]:
        assert self._awaitable is not None
        steps: Any = self._awaitable.__await__()
        error: BaseException | None = None
        while True:
            started = perf_counter()
            try:
                waiting_for = next(steps) if error is None else steps.throw(error)
            except StopIteration as end:
                return end.value
            finally:
                self.longest = max(self.longest, perf_counter() - started)
            try:
                yield waiting_for
                error = None
            except BaseException as raised:  # a cancellation, which is the coroutine's to see
                error = raised
