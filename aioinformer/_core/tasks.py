"""Owned tasks: nothing here outlives the coroutine or object that began it."""

from __future__ import annotations

import asyncio
import inspect
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio

from ..errors import (
    AlreadyStartedError,
    StoppedError,
    WrongEventLoopError,
    said,
    traceback_of,
)

logger = logging.getLogger(__name__)

T = TypeVar("T")

START_PATIENCE = 10.0
"""Seconds after which the log names what somebody needs and nobody has started."""


async def finish(*tasks: asyncio.Task[Any], grace: float | None = None) -> None:
    """Cancel tasks and ``wait_ended``."""
    for task in tasks:
        task.cancel()
    await wait_ended(*tasks, grace=grace)


async def wait_ended(*tasks: asyncio.Future[Any], grace: float | None = None) -> None:
    """Wait until tasks have ended, also if the waiter is cancelled meanwhile.

    Args:
        *tasks: Which ones.
        grace: Seconds after which those that go on are left behind; None for never.
    """
    interrupted: asyncio.CancelledError | None = None
    now = asyncio.get_running_loop().time
    end = None if grace is None else now() + grace
    with anyio.CancelScope(shield=True):  # a cancelled scope around this would make it spin
        while running := [task for task in tasks if not task.done()]:
            left = None if end is None else end - now()
            if left is not None and left <= 0:
                break
            try:
                await asyncio.wait(running, timeout=left)
            except asyncio.CancelledError as error:
                interrupted = error
    if interrupted is not None:
        raise interrupted


async def run_until_first(*functions: Callable[[], Awaitable[object]]) -> None:
    """Run async functions in one task group until the first of them returns, then cancel the others.

    Raises:
        BaseException: What one of them raised.
        BaseExceptionGroup: What several of them raised.
    """

    async def run(function: Callable[[], Awaitable[object]]) -> None:
        await function()
        tasks.cancel_scope.cancel()

    try:
        async with anyio.create_task_group() as tasks:
            for function in functions:
                tasks.start_soon(run, function)
    except BaseExceptionGroup as group:
        raise only_error_of(group) from None


def only_error_of(error: BaseException) -> BaseException:
    """Return an error without the groups around it that hold nothing else."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        (error,) = error.exceptions
    return error


def raise_failures(message: str, *tasks: asyncio.Task[Any]) -> None:
    """Raise what tasks that have ended failed of: one error alone as it is, several as a group.

    Args:
        message: The group's.
        *tasks: Those that were cancelled have not failed. One that has waited for what has stopped (StoppedError) has
            failed only if no other one has: that one says why.

    Raises:
        BaseException: What one has failed of, without the groups around it that have nothing else in them.
        BaseExceptionGroup: What several have failed of.
    """
    found = [task.exception() for task in tasks if task.done() and not task.cancelled()]
    if failures := [failure for failure in found if failure is not None]:
        group = BaseExceptionGroup(message, failures)
        _, causes = group.split(StoppedError)  # also of what lies in groups
        raise only_error_of(causes or group)


async def with_grace(seconds: float, coroutine: Coroutine[Any, Any, T]) -> T:
    """Await what should not be left half done: cancelled meanwhile, it goes on for so many seconds at most.

    However often that is: a cancelled scope of anyio does it in each turn of the event loop. Whoever was cancelled
    does not hear of a failure then: it is logged.
    """
    task = asyncio.ensure_future(coroutine)
    try:
        await asyncio.wait((task,))  # whose cancellation is not the task's
        return task.result()
    except asyncio.CancelledError:
        try:
            await wait_ended(task, grace=seconds)
        finally:
            await finish(task)
            if not task.cancelled() and (failure := task.exception()) is not None:
                logger.error("failed after its caller was cancelled: %s", failure, exc_info=failure)
        raise


def is_cancelled() -> bool:
    """Whether the running task is being cancelled. If not, a CancelledError is of somebody else's making."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def is_own_cancellation(error: BaseException) -> bool:
    """Whether an error that something has raised is the cancellation of the running task, and no failure."""
    return isinstance(error, asyncio.CancelledError) and is_cancelled()


def heed_cancellation() -> None:
    """Raise the cancellation that somebody's code has swallowed, or has made a failure of."""
    if is_cancelled():
        raise asyncio.CancelledError


async def maybe_await(result: object) -> object:
    """What a plain-or-async callable returned, or what comes of awaiting that if it was async."""
    return await result if inspect.isawaitable(result) else result


def _log_failure(task: asyncio.Task[None]) -> None:
    """Tell of a death when it happens; whoever leaves may do so much later."""
    if not task.cancelled() and (failure := task.exception()) is not None:
        logger.error("%s failed: %s", task.get_name(), said(failure), exc_info=traceback_of(failure))


class InOneLoop:
    """Something that one event loop has to itself."""

    _loop: asyncio.AbstractEventLoop | None = None

    def require_own_loop(self) -> None:
        """Find out that another event loop or thread calls; the first one that does owns this.

        Raises:
            WrongEventLoopError: It is another one's.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            loop = None
        if self._loop is None:
            self._loop = loop
        if loop is None or self._loop is not loop:
            raise WrongEventLoopError(
                f"{self!r} runs in another event loop; from other threads, hand what is to be done to that "
                "loop by asyncio.run_coroutine_threadsafe or loop.call_soon_threadsafe"
            )


class Running(InOneLoop, ABC):
    """Something that ``run()`` keeps going, and that can be entered instead.

    ``async with`` starts one task that runs ``run()``; leaving cancels it, waits for its end and raises its
    error. Entering and leaving may happen in different tasks.
    """

    _task: asyncio.Task[None] | None = None
    _has_begun = False
    _is_running = False

    @property
    def _is_started(self) -> bool:
        """By ``async with``, also if the task has not begun yet, or by ``run()``."""
        return self._has_begun or self._task is not None

    def require_not_started(self) -> None:
        """Find out that it was started before, by ``async with`` or by ``run()``.

        Raises:
            AlreadyStartedError: It was, by another task than this one.
        """
        if self._has_begun or (self._task is not None and self._task is not asyncio.current_task()):
            raise AlreadyStartedError(f"{self!r} was started before")

    def record_begin(self) -> None:
        """``run()`` begins, which does so once.

        Raises:
            AlreadyStartedError: It was started before.
            WrongEventLoopError: It is another loop's.
        """
        self.require_not_started()
        self.require_own_loop()
        self._has_begun = True

    @contextmanager
    def in_one_run(self) -> Iterator[None]:
        """Around a ``run()`` that may be repeated, but not while one is going on.

        Raises:
            AlreadyStartedError: One is.
            WrongEventLoopError: It is another loop's.
        """
        self.require_own_loop()
        if self._is_running:
            raise AlreadyStartedError(f"{self!r} is running already")
        self._is_running = True
        try:
            yield
        finally:
            self._is_running = False

    @abstractmethod
    async def run(self) -> None:
        """Run until cancelled or failed; everything begun has ended when this returns."""

    def begin(self) -> asyncio.Task[None]:
        """Start the task that runs ``run()``; it is the caller's to finish.

        Raises:
            AlreadyStartedError: It was started before.
            WrongEventLoopError: It is another loop's.
        """
        self.require_not_started()
        self.require_own_loop()
        self._task = asyncio.create_task(self.run(), name=repr(self))
        self._task.add_done_callback(_log_failure)
        self._task.add_done_callback(self._record_end)  # also where it is cancelled before it has begun
        return self._task

    def _record_end(self, task: object = None) -> None:
        """It has ended; may be told so twice."""

    async def __aenter__(self) -> Self:
        self.begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._task is not None
        self.require_own_loop()
        await finish(self._task)
        if not self._task.cancelled() and (failure := self._task.exception()) is not None:
            raise failure
