"""A program under test: it prints what it knows of a collection, a line of JSON for each change."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from aioinformer._core.tasks import finish

GRACE = 10.0
"""Seconds that a program may take to end after SIGTERM."""

LONGEST_LINE = 2**20
"""Bytes."""

RESTART_PAUSE = 1.0
"""Seconds after which a program that has ended is started again."""


class Subject:
    """A program that follows the ConfigMaps or pods of a namespace. If it ends, it is started again.

    It reads ``$KUBECONFIG``, ``$NAMESPACE`` and ``$PLURAL``, and prints a line of JSON whenever its own knowledge of an
    object changes: ``{"name": "a", "version": "12"}``, and ``{"name": "a", "version": null}`` when it knows that the
    object is gone. Everything else that it prints is its log.

    Attributes:
        versions: What its present process knows: the resourceVersion of each object by name.
        reports: Every name and version that any of its processes has printed.
        starts: How often it was started.
        log: The latest other lines.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._command = command
        self._environment = {**os.environ, "PYTHONUNBUFFERED": "1", **environment}
        self._process: asyncio.subprocess.Process | None = None
        self._changed = asyncio.Event()
        self._cpu = self._cpu_of_ended = 0.0
        self.versions: dict[str, str] = {}
        self.reports: set[tuple[str, str | None]] = set()
        self.starts = 0
        self.log: deque[str] = deque(maxlen=50)

    async def run(self) -> None:
        """Run the program, and start it again whenever it has ended."""
        while True:
            self.starts += 1
            process = self._process = await asyncio.create_subprocess_exec(
                *self._command,
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                limit=LONGEST_LINE,
                start_new_session=True,  # it and its children end together
            )
            try:
                assert process.stdout is not None
                async for line in process.stdout:
                    self._read(line)
                    self.cpu()  # cannot be read after its end
                await process.wait()
            finally:
                self.cpu()
                await _end(process)
            self.versions.clear()
            self._changed.set()
            self._cpu_of_ended, self._cpu = self._cpu_of_ended + self._cpu, 0.0
            await asyncio.sleep(RESTART_PAUSE)

    def _read(self, line: bytes) -> None:
        try:
            known = json.loads(line)
            name, version = known["name"], known["version"]
        except (ValueError, KeyError, TypeError):
            self.log.append(line.decode(errors="replace").rstrip())
            return
        self.tell(name, version)

    def tell(self, name: str, version: str | None) -> None:
        """Record what it knows of an object."""
        self.reports.add((name, version))
        if version is None:
            self.versions.pop(name, None)
        else:
            self.versions[name] = version
        self._changed.set()

    async def knows(self, wanted: Mapping[str, str], timeout: float) -> bool:
        """Return whether it knows exactly these objects, as soon as it does or after the timeout."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while self.versions != wanted:
                    self._changed.clear()
                    await self._changed.wait()
        return self.versions == wanted

    async def restart(self) -> None:
        """End its process, so that another one is started."""
        if self._process is not None:
            await _end(self._process)
            self.versions.clear()

    def cpu(self) -> float:
        """Return the CPU seconds that it and its children have used, in all its processes."""
        with suppress(OSError):
            fields = self._read_proc("stat").rpartition(")")[2].split()
            self._cpu = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        return self._cpu_of_ended + self._cpu

    @property
    def memory(self) -> float:
        """The resident memory of its present process in MiB; 0 if it has ended."""
        with suppress(OSError):
            return int(self._read_proc("statm").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
        return 0.0

    def _read_proc(self, name: str) -> str:
        if self._process is None:
            raise ProcessLookupError("it has not been started")
        return Path(f"/proc/{self._process.pid}/{name}").read_text()


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a process and its children."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with suppress(TimeoutError):
                async with asyncio.timeout(GRACE):
                    await process.wait()


@asynccontextmanager
async def subject(command: Sequence[str], environment: Mapping[str, str]) -> AsyncIterator[Subject]:
    """Run a program during the block."""
    running = Subject(command, environment)
    task = asyncio.create_task(running.run())
    try:
        yield running
    finally:
        await finish(task)
        if not task.cancelled():
            task.result()
