"""The guard of user code: whose cancellation arrived. ``docs/internals.md``, "Cancellation", has the rule."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from inspect import isawaitable
from typing import Any

import anyio.lowlevel

from ..errors import AioInformerError, message_of, traceback_of

logger = logging.getLogger(__name__)

CALL_ERRORS = (Exception, asyncio.CancelledError)
"""What a call of user code raises when it fails. A plain function awaits nothing, so a CancelledError is its own."""

_endings: dict[asyncio.Task[Any], Callable[[], bool]] = {}
"""What says whether a task has to end, by task: see ``ends_when``."""


def ends_when(task: asyncio.Task[Any], is_ending: Callable[[], bool]) -> None:
    """Let the guard ask ``is_ending`` whether a cancellation of the task is real, until the task has ended.

    The count of requests is not enough: if a child of a TaskGroup fails while the group waits for its end, Python
    before 3.13 leaves a request to the task behind.
    """
    _endings[task] = is_ending
    task.add_done_callback(_endings.pop)


@contextmanager
def ending_when(task: asyncio.Task[Any], is_ending: Callable[[], bool]) -> Iterator[None]:
    """Let the guard ask as by ``ends_when``, inside the block."""
    _endings[task] = is_ending
    try:
        yield
    finally:
        del _endings[task]


def is_cancelled(task: asyncio.Task[object] | None = None) -> bool:
    """Return whether a task is being cancelled; by default, the running one."""
    task = task or asyncio.current_task()
    return task is None or task.cancelling() > 0


def failure_of(error: BaseException, is_ending: Callable[[], bool] = is_cancelled) -> Exception:
    """Return the failure of user code that raised one of CALL_ERRORS.

    Args:
        error: What it raised.
        is_ending: Returns whether the task has to end: then a CancelledError is the task's, and is raised.
    """
    if isinstance(error, Exception):
        return error
    if is_ending():
        raise error
    failure = AioInformerError(
        f"user code raised CancelledError, but its task was not cancelled (it may have awaited one that was): {error!r}"
    )
    failure.__cause__ = error
    return failure


async def maybe_await(result: object) -> Any:
    """Return what a plain function of the user returned, or await what an async one returned.

    Raises:
        CancelledError: The running task was cancelled meanwhile, also if the user's function swallowed that, or raised
            another error in its place, which is logged.
        Exception: The user's function failed. A CancelledError that it made itself becomes an AioInformerError.
    """
    if not isawaitable(result):
        return result
    task = asyncio.current_task()
    assert task is not None
    before = task.cancelling()  # a clean-up runs in a task that was cancelled before
    value = None
    try:
        value = await result
    except asyncio.CancelledError as error:
        raise failure_of(error) from error
    except Exception as error:
        if task.cancelling() == before or await _undo_leftover(task, before):
            raise
        logger.error(
            "user code failed when it was cancelled: %s", message_of(error), exc_info=traceback_of(error)
        )
    if task.cancelling() > before and not await _undo_leftover(task, before):
        await anyio.lowlevel.checkpoint_if_cancelled()  # a cancel scope catches only its own CancelledError
        raise asyncio.CancelledError
    return value


async def _undo_leftover(task: asyncio.Task[Any], before: int) -> bool:
    """Undo requests to cancel the task that a TaskGroup of user code left behind. Return whether it was that."""
    is_ending = _endings.get(task)
    if is_ending is None or is_ending():
        return False
    try:
        await asyncio.sleep(0)  # delivers a cancellation that user code requested of its own task
    except asyncio.CancelledError:
        return False
    if is_ending():
        return False
    while task.cancelling() > before:
        task.uncancel()
    return True


@asynccontextmanager
async def time_limit(
    seconds: float | None, late: Callable[[], Exception | None]
) -> AsyncIterator[asyncio.Timeout]:
    """Cancel user code once after so many seconds, and then raise what ``late`` returns, unless that is None."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield limit
    except Exception as error:
        if not limit.expired():
            raise
        if (failure := late()) is not None:
            raise failure from error


async def forget_own_cancellation(task: asyncio.Task[object], is_ending: Callable[[], bool]) -> None:
    """Undo cancellations that user code requested of its own task, delivered or not.

    Args:
        task: The current task.
        is_ending: Returns whether the task has to end. Then the cancellation is kept.

    Raises:
        asyncio.CancelledError: The task has to end.
    """
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)  # delivers a cancellation that is still pending
    if is_ending():
        raise asyncio.CancelledError
    while task.cancelling():
        task.uncancel()
