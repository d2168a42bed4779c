"""What to do when user code cancels its own task."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

PLAIN_CALL_ERRORS = (Exception, asyncio.CancelledError)
"""What a plain function of the user raises when it fails. Nothing is awaited, so a CancelledError is its own."""


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
