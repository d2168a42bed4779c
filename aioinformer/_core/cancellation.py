"""User code that cancels its own task, told apart from the cancellation that ends the task."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress


async def forget_own_cancellation(task: asyncio.Task[object], is_ending: Callable[[], bool]) -> None:
    """Undo cancellations that user code requested of its own task, delivered or not.

    Args:
        task: The current task.
        is_ending: Whether the task must end. Then its cancellation stays.

    Raises:
        asyncio.CancelledError: The task must end.
    """
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(0)  # delivers a cancellation that is still pending
    if is_ending():
        raise asyncio.CancelledError
    while task.cancelling():
        task.uncancel()
