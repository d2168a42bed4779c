"""Act when a signal asks the process to stop, before the web server does."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from .._core.signals import STOP_SIGNALS


@contextmanager
def calling_at_stop(call: Callable[[], object]) -> Iterator[None]:
    """Call a function in the event loop at SIGINT or SIGTERM, beside the handler that is there.

    Does nothing outside the main thread, which alone gets signals, and for signals that no handler waits for.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    before: dict[int, Any] = {}

    def stop(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(call)
        before[number](number, frame)

    for stop_signal in STOP_SIGNALS:
        if callable(handler := signal.getsignal(stop_signal)):
            before[stop_signal] = handler
            signal.signal(stop_signal, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            if signal.getsignal(number) is stop:  # else another one was set meanwhile
                signal.signal(number, handler)
