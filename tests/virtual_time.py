"""An event loop whose clock jumps to the next timer when nothing else is ready: hours pass in milliseconds."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Deadlock(Exception):  # noqa: N818 - what it is
    """Everything waits and no timer is set: nothing could ever happen."""


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An asyncio loop with a clock of its own, which begins at 1000 s.

    Attributes:
        steps: How often the loop has gone round.
        failures: What was given to the loop's exception handler, such as exceptions that nobody retrieved.
    """

    def __init__(self) -> None:
        self._now = 1000.0
        self.steps = 0
        self.failures: list[dict[str, Any]] = []
        super().__init__(_JumpingSelector(self))
        self.set_exception_handler(lambda _, context: self.failures.append(context))

    def time(self) -> float:
        return self._now

    def jump(self, seconds: float) -> None:
        """Let time pass."""
        self._now += seconds


class _JumpingSelector(selectors.DefaultSelector):
    """Finds what is ready, and instead of waiting lets virtual time pass."""

    def __init__(self, loop: VirtualTimeLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._loop.steps += 1
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise Deadlock
        self._loop.jump(timeout)
        return ready


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time, and see to it that it leaves no task and no unhandled exception behind."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        result = runner.run(main)
        loop = runner.get_loop()
        assert isinstance(loop, VirtualTimeLoop)
        runner.run(asyncio.sleep(0))  # callbacks of what has just ended
        left = asyncio.all_tasks(loop)
        assert not left, f"left running: {left}"
        assert not loop.failures, loop.failures
    return result


def virtual_time(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Turns a coroutine test into a plain one that runs in virtual time."""

    @wraps(test)
    def in_virtual_time(*args: P.args, **kwargs: P.kwargs) -> None:
        run(test(*args, **kwargs))

    return in_virtual_time


async def settled(rounds: int = 50) -> None:
    """Let everything that is ready run, without letting time pass."""
    for _ in range(rounds):
        await asyncio.sleep(0)


async def cancel_after(steps: int, task: asyncio.Task[Any]) -> bool:
    """Cancel a task after so many rounds of the loop and wait for its end; whether it ended by the cancelling."""
    for _ in range(steps):
        if task.done():
            break
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})
    return task.cancelled()
