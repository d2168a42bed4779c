"""Run a command until it ends, or until Ctrl-C or SIGTERM."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Coroutine
from contextlib import closing
from types import FrameType
from typing import Any

from .output import OutputError, interrupt_writes
from .reporting import LoopFactory, fail, report_errors


def run_interruptible(
    work: Coroutine[Any, Any, None],
    loop_factory: LoopFactory | None = None,
    unfinished: str = "",
) -> None:
    """Run a command until it ends, or until Ctrl-C or SIGTERM. A second signal exits immediately if the first is stuck.

    Args:
        work: The command.
        loop_factory: Creates the event loop.
        unfinished: The message if a signal interrupts the command; without one a signal is an ordinary end.
    """
    received: int | None = None  # the signal
    received_at = 0.0
    is_done = is_pending = False

    async def run_until_signal() -> None:
        nonlocal is_done
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def end(number: int, frame: FrameType | None) -> None:
            nonlocal received, received_at, is_pending
            if not is_pending and not task.done():
                received, received_at, is_pending = number, time.monotonic(), True
                loop.call_soon_threadsafe(cancel)
                interrupt_writes()
            elif (
                not is_done and time.monotonic() - received_at >= 1.0
            ):  # earlier ones repeat the same interruption
                os._exit(128 + number)  # a full pipe or a thread would block an orderly exit

        def cancel() -> None:
            nonlocal is_pending
            is_pending = False
            task.cancel()

        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, end)  # the loop's handlers would not run while the loop is blocked
        await work
        is_done = True

    with report_errors(), closing(work):
        try:
            with asyncio.Runner(loop_factory=loop_factory) as runner:
                runner.run(run_until_signal())
        except (asyncio.CancelledError, OutputError):
            if received is None:
                raise
            if unfinished:
                fail(unfinished, 128 + received)
