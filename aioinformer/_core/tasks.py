"""Tasks with an owner: each ends before the coroutine or object that started it."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

import anyio

from ..errors import (
    AlreadyStartedError,
    StoppedError,
    message_of,
    traceback_of,
)
from .forks import require_same_process
from .loops import InOneLoop

logger = logging.getLogger(__name__)

T = TypeVar("T")

NOT_STARTED_WARNING_DELAY = 10.0
"""Seconds after which the log names an informer or recorder that is needed and was not started."""


async def finish(*tasks: asyncio.Task[Any], grace: float | None = None) -> None:
    """Cancel tasks and wait until they have ended; see ``wait_ended``."""
    for task in tasks:
        task.cancel()
    await wait_ended(*tasks, grace=grace)


async def wait_ended(*tasks: asyncio.Future[Any], grace: float | None = None) -> None:
    """Wait until tasks have ended, even if the caller is cancelled meanwhile.

    Args:
        *tasks: The tasks.
        grace: Seconds after which tasks that still run are abandoned; None waits for ever.

    Raises:
        CancelledError: The caller was cancelled. It is raised after the wait.
    """
    interrupted: asyncio.CancelledError | None = None
    now = asyncio.get_running_loop().time
    end = None if grace is None else now() + grace
    with anyio.CancelScope(shield=True):  # a cancelled scope cancels in each loop iteration
        while running := [task for task in tasks if not task.done()]:
            remaining = None if end is None else end - now()
            if remaining is not None and remaining <= 0:
                break
            try:
                await asyncio.wait(running, timeout=remaining)
            except asyncio.CancelledError as error:
                interrupted = error
    if interrupted is not None:
        raise interrupted


async def run_until_first(*functions: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Run async functions concurrently until the first of them returns, then cancel the others.

    Each is cancelled once, so user code that cleans up can await. A cancelled scope of anyio cancels every await.

    Raises:
        BaseException: One function failed with it. That includes a CancelledError that user code made itself.
        BaseExceptionGroup: Several functions failed.
    """
    tasks = [asyncio.ensure_future(function()) for function in functions]
    ended: set[asyncio.Task[object]] = set()
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        try:
            await finish(*tasks)
        finally:
            raise_failures("several functions failed", *tasks)
    for task in ended:
        task.result()  # raises a CancelledError that user code made


async def gather(*coroutines: Coroutine[Any, Any, T]) -> list[T]:
    """Run coroutines concurrently, and return their results. When one fails, the others are cancelled.

    A deadline around it is caught by its own scope. (A cancelled ``asyncio.gather`` may raise a CancelledError that
    does not say who cancelled it.)

    Raises:
        BaseException: The first error. All tasks have ended.
    """
    tasks = [asyncio.ensure_future(coroutine) for coroutine in coroutines]
    failures: list[BaseException] = []

    def record_failure(task: asyncio.Task[T]) -> None:
        if not task.cancelled() and (failure := task.exception()) is not None:
            failures.append(failure)

    for task in tasks:
        task.add_done_callback(record_failure)
    try:
        if tasks:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        await finish(*tasks)
    if failures:
        raise failures[0]
    return [task.result() for task in tasks]


def only_error_of(error: BaseException) -> BaseException:
    """Unwrap exception groups that hold a single error."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        (error,) = error.exceptions
    return error


def raise_failures(message: str, *tasks: asyncio.Task[Any]) -> None:
    """Raise the errors of tasks that have ended.

    Args:
        message: The exception group's message.
        *tasks: Running and cancelled tasks are skipped. A StoppedError counts only if no task failed with another
            error, which is then its cause.

    Raises:
        BaseException: One task failed with it.
        BaseExceptionGroup: Several tasks failed.
    """
    outcomes = [task.exception() for task in tasks if task.done() and not task.cancelled()]
    if failures := [failure for failure in outcomes if failure is not None]:
        group = BaseExceptionGroup(message, failures)
        _, causes = group.split(StoppedError)  # splits nested groups too
        raise only_error_of(causes or group)


async def shield(coroutine: Coroutine[Any, Any, T], *, grace: float) -> T:
    """Await a coroutine that should not be interrupted, such as a write.

    Cancellation: the coroutine continues for at most ``grace`` seconds, however often the caller is cancelled. Then
    CancelledError is raised; if the coroutine fails meanwhile, the error is logged. (A shielded anyio scope does not
    stop ``Task.cancel``.)
    """
    task = asyncio.ensure_future(coroutine)
    try:
        await asyncio.wait((task,))  # does not cancel the task
        return task.result()
    except asyncio.CancelledError:
        try:
            await wait_ended(task, grace=grace)
        finally:
            await finish(task)
            if not task.cancelled() and (failure := task.exception()) is not None:
                logger.error("failed after its caller was cancelled: %s", failure, exc_info=failure)
        raise


def _log_failure(task: asyncio.Task[None]) -> None:
    """Log a failure when it happens: ``__aexit__`` may raise it much later."""
    if not task.cancelled() and (failure := task.exception()) is not None:
        logger.error("%s failed: %s", task.get_name(), message_of(failure), exc_info=traceback_of(failure))


class Running(InOneLoop, ABC):
    """An object with a ``run()`` that can be awaited, or used with ``async with``.

    ``async with`` starts one task that runs ``run()``. Leaving cancels the task, waits until it has ended and raises
    its error. Entering and leaving may happen in different tasks, which an anyio task group forbids.
    """

    _task: asyncio.Task[None] | None = None
    _has_begun = False
    _is_running = False

    @property
    def _is_started(self) -> bool:
        """Whether ``async with`` or ``run()`` has started it."""
        return self._has_begun or self._task is not None

    def require_not_started(self, advice: str = "make another one") -> None:
        """Check that it was not started before, by ``async with`` or by ``run()``.

        Args:
            advice: What the caller can do, for the error.

        Raises:
            AlreadyStartedError: Another task has started it.
            ForkedError: It was started before this process was forked.
        """
        require_same_process(self._own_process, repr(self))
        if self._has_begun or (self._task is not None and self._task is not asyncio.current_task()):
            raise AlreadyStartedError(f"{self!r} was started before: {advice}")

    def record_begin(self) -> None:
        """Record that ``run()`` begins. It may do so once.

        Raises:
            AlreadyStartedError: It was started before.
            WrongEventLoopError: It belongs to another event loop.
        """
        self.require_not_started()
        self.require_own_loop()
        self._has_begun = True

    @contextmanager
    def in_one_run(self) -> Iterator[None]:
        """Run the block as a ``run()`` that may be called again after it has ended.

        Raises:
            AlreadyStartedError: Another ``run()`` has not ended.
            WrongEventLoopError: It belongs to another event loop.
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
        """Run until cancelled or failed. All tasks that this starts have ended when it returns."""

    def begin(self) -> asyncio.Task[None]:
        """Start and return the task that runs ``run()``. The caller has to finish it.

        Raises:
            AlreadyStartedError: It was started before.
            WrongEventLoopError: It belongs to another event loop.
        """
        self.require_not_started()
        self.require_own_loop()
        self._task = asyncio.create_task(self.run(), name=repr(self))
        self._task.add_done_callback(_log_failure)
        self._task.add_done_callback(self._record_end)  # run() may be cancelled before its first step
        return self._task

    def _record_end(self, task: object = None) -> None:
        """Record the end of ``run()``. May be called twice."""

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
