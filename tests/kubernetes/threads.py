"""Run blocking steps from an event loop."""

import asyncio
import contextlib
import threading
from collections.abc import Callable


async def in_thread(step: Callable[[threading.Event], None]) -> None:
    """Run a blocking step in a thread.

    Cancellation: sets the step's abort event, waits until the step has ended, then raises.
    """
    abort = threading.Event()
    work = asyncio.ensure_future(asyncio.to_thread(step, abort))
    try:
        await asyncio.shield(work)
    except asyncio.CancelledError:
        abort.set()
        while not work.done():
            with contextlib.suppress(asyncio.CancelledError):  # a second cancellation changes nothing
                await asyncio.wait([work])
        if not work.cancelled():
            work.exception()  # retrieved: the cancellation matters more than the step's error
        raise
