"""A program under test: it prints what it knows of a collection, a line of JSON for each change."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

GRACE = 10.0
"""Seconds that a program may take to end after SIGTERM."""


class Subject:
    """A program that follows the ConfigMaps or pods of a namespace.

    It reads ``$KUBECONFIG``, ``$NAMESPACE`` and ``$PLURAL``, and prints a line of JSON whenever its own knowledge of an
    object changes: ``{"name": "a", "version": "12"}``, and ``{"name": "a", "version": null}`` when it knows that the
    object is gone. Everything else that it prints is its log.

    Attributes:
        versions: What it knows: the resourceVersion of each object by name.
        log: The latest other lines.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.versions: dict[str, str] = {}
        self.log: list[str] = []
        self._cpu = 0.0
        self._changed = asyncio.Event()

    async def read(self) -> None:
        """Read its output until it ends."""
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            try:
                known = json.loads(line)
                name, version = known["name"], known["version"]
            except (ValueError, KeyError, TypeError):
                self.log = [*self.log[-50:], line.decode(errors="replace").rstrip()]
                continue
            if version is None:
                self.versions.pop(name, None)
            else:
                self.versions[name] = version
            self._changed.set()

    async def knows(self, wanted: Mapping[str, str], timeout: float) -> bool:
        """Return whether it knows exactly these objects, as soon as it does or after the timeout."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while self.versions != wanted and self._process.returncode is None:
                    self._changed.clear()
                    await self._changed.wait()
        return self.versions == wanted

    def cpu(self) -> float:
        """Return the CPU seconds that it and its children have used; of one that has ended, at the last call."""
        with suppress(OSError):
            fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
            self._cpu = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        return self._cpu

    @property
    def memory(self) -> float:
        """Its resident memory in MiB; 0 if it has ended."""
        with suppress(OSError):
            pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
            return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
        return 0.0

    @property
    def has_ended(self) -> bool:
        """Whether it ended by itself."""
        return self._process.returncode is not None


@asynccontextmanager
async def subject(command: Sequence[str], environment: Mapping[str, str]) -> AsyncIterator[Subject]:
    """Run a program during the block."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,  # it and its children end together
    )
    running = Subject(process)
    reading = asyncio.create_task(running.read())
    try:
        yield running
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
                with suppress(TimeoutError):
                    async with asyncio.timeout(GRACE):
                        await process.wait()
        await reading
