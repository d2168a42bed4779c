"""Blocking steps seen from an event loop."""

import asyncio
import contextlib
import threading
from collections.abc import Callable


async def in_thread(step: Callable[[threading.Event], None]) -> None:
    """Runs a blocking step off the loop.

    Cancellation: sets the event that the step was given, waits until the step has given up, then raises.
    """
    abort = threading.Event()
    work = asyncio.ensure_future(asyncio.to_thread(step, abort))
    try:
        await asyncio.shield(work)
    except asyncio.CancelledError:
        abort.set()
        while not work.done():
            with contextlib.suppress(asyncio.CancelledError):  # a second time changes nothing
                await asyncio.wait([work])
        if not work.cancelled():
            work.exception()  # seen: what counts is that we are cancelled
        raise
