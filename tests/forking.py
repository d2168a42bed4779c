"""What an object says in a child process that was forked from the test's."""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Callable
from contextlib import suppress

from aioinformer.errors import message_of


async def in_child(ask: Callable[[], object]) -> str:
    """Return what a function returns, or the type and text of its error, in a forked child. The parent's loop runs on.

    The child has a copy of the running event loop, which it cannot use; it may run another one.
    """
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks beside threads
        child = os.fork()
    if not child:
        answer = "the child failed"
        with suppress(BaseException):
            answer = _outcome(ask)
        os.write(writing, answer.encode())
        os._exit(0)
    os.close(writing)
    try:
        return (await asyncio.to_thread(_read, reading)).decode()
    finally:
        os.close(reading)
        await asyncio.to_thread(os.waitpid, child, 0)


def _outcome(ask: Callable[[], object]) -> str:
    try:
        return str(ask())
    except BaseException as error:
        return f"{type(error).__name__}: {message_of(error)}"


def _read(file: int) -> bytes:
    chunks = []
    while chunk := os.read(file, 65536):
        chunks.append(chunk)
    return b"".join(chunks)
