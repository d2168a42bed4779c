"""Programs that a test starts and reads from."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple

PATIENCE = 90.0
"""Seconds, for programs on a busy machine; below pytest's timeout."""


class Ended(NamedTuple):
    """The end of a program: its exit code and its unread output."""

    code: int
    output: str
    errors: str


class Lines:
    """The lines that a program prints, as they come."""

    def __init__(self, stream: asyncio.StreamReader) -> None:
        self._stream = stream

    async def next(self) -> str:
        """Return the next line; fail at the end of the output."""
        async with asyncio.timeout(PATIENCE):
            line = await self._stream.readline()
        assert line.endswith(b"\n"), f"the program has ended with {line!r}"
        return line.decode().rstrip()

    async def rest(self, within: float = PATIENCE) -> str:
        """Everything until its end, in seconds."""
        async with asyncio.timeout(within):
            return (await self._stream.read()).decode()


class Running:
    """A program that runs."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self.output = Lines(process.stdout)
        self.errors = Lines(process.stderr)

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    async def end(self, within: float = PATIENCE) -> Ended:
        """Wait for its end, for some seconds."""
        output, errors = await asyncio.gather(self.output.rest(within), self.errors.rest(within))
        async with asyncio.timeout(PATIENCE):
            return Ended(await self._process.wait(), output, errors)


@asynccontextmanager
async def started_program(
    *command: str, environment: Mapping[str, str] | None = None
) -> AsyncIterator[Running]:
    """A program; killed at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **(environment or {})},
        preexec_fn=_restore_interrupts,
    )
    started = Running(process)
    try:
        yield started
    finally:
        if process.returncode is None:
            process.kill()
        await started.end()


def _restore_interrupts() -> None:
    """Ctrl-C is what is tested; a shell that runs the tests in the background has it ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
