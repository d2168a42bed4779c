"""Run something until the process gets a signal."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from ..errors import ConfigError

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Ctrl-C, and what ends a pod."""


async def run_until_signal(
    run: Callable[[], Awaitable[object]],
    owner: object,
    signals: Sequence[signal.Signals],
    on_first: Callable[[], None] | None = None,
) -> None:
    """Await ``run()``, and cancel it when a signal arrives; each further signal cancels it again.

    The signals' former handlers are restored at the end.

    Args:
        run: What to run.
        owner: What errors call it.
        signals: The signals that end it.
        on_first: Called for the first signal, before it ends anything.

    Raises:
        ConfigError: This is not the main thread, the only one that can handle signals.
        BaseException: What ``run`` raises.
    """
    if threading.current_thread() is not threading.main_thread():
        raise ConfigError(
            f"{owner!r}: only the main thread can handle signals, and this is {threading.current_thread().name}: "
            "await run() here, and cancel it to end it"
        )
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    received, before = 0, task.cancelling()  # a failed TaskGroup of the caller may have left a request behind
    is_over = False
    handlers_before: dict[signal.Signals, Any] = {}

    def stop() -> None:
        nonlocal received
        if not is_over:
            received += 1
            if received == 1 and on_first is not None:
                on_first()
            task.cancel()

    try:
        for number in signals:
            # Not the loop's add_signal_handler, which forgets the handler before.
            handlers_before[number] = signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop))
        await run()
    except asyncio.CancelledError:
        if not received or task.cancelling() > before + received:  # the caller was cancelled too
            raise
    finally:
        is_over = True
        for number, handler in handlers_before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for _ in range(received):
            task.uncancel()
