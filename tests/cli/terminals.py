"""A terminal, and the command line on it."""

from __future__ import annotations

import asyncio
import codecs
import os
import pty
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.e2e.processes import PATIENCE


class Terminal:
    """The output of a program on a terminal.

    Attributes:
        text: All of it, with the terminal's control sequences.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._news = asyncio.Event()
        self.text = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")()  # a character may come in two pieces
        asyncio.get_running_loop().add_reader(fd, self._read)

    async def shows(self, pattern: str) -> str:
        """Wait for a match; return it and the output after it."""
        async with asyncio.timeout(PATIENCE):
            while (match := re.search(pattern, self.text)) is None:
                self._news.clear()
                await self._news.wait()
        return self.text[match.start() :]

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._fd)
        os.close(self._fd)

    def _read(self) -> None:
        try:
            self.text += self._decoder.decode(os.read(self._fd, 65536))
        except OSError:  # the program has left it
            asyncio.get_running_loop().remove_reader(self._fd)
        self._news.set()


class OnTerminal:
    """A run of ``aioinformer`` on a terminal."""

    def __init__(self, process: asyncio.subprocess.Process, terminal: Terminal) -> None:
        self._process = process
        self.terminal = terminal

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    async def end(self) -> int:
        """Wait for its end; its exit code."""
        async with asyncio.timeout(PATIENCE):
            return await self._process.wait()


@asynccontextmanager
async def on_terminal(*args: str, output: Path | None = None) -> AsyncIterator[OnTerminal]:
    """Run ``aioinformer`` on a terminal of 80 columns, with its output led into a file where one is given."""
    ours, theirs = pty.openpty()
    terminal = Terminal(ours)
    out = theirs if output is None else os.open(output, os.O_WRONLY | os.O_CREAT)
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "aioinformer", *args),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
        )
    finally:
        for fd in {theirs, out}:
            os.close(fd)
    running = OnTerminal(process, terminal)
    try:
        yield running
    finally:
        if process.returncode is None:
            process.kill()
        await running.end()
        terminal.close()
