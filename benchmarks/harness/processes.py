"""The processes of a run: the replay server and a client."""

from __future__ import annotations

import json
import os
import re
import selectors
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

ANSWER_TIMEOUT = 600.0
"""Seconds to wait for an answer."""
GOODBYE = 5.0
UNSUPPORTED = 3
"""The exit status of a client that cannot do what a scenario wants."""
ROOT = Path(__file__).parents[2]


class ClientFailedError(Exception):
    """A client gave no answer or a wrong one."""


class ClientUnsupportedError(Exception):
    """A client does not support the scenario; the message says why."""


def start(command: Sequence[str], cores: Iterable[int], **options: Any) -> subprocess.Popen[bytes]:
    """Start a process on these cores, ignoring cores that do not exist."""
    here = os.sched_getaffinity(0)
    os.sched_setaffinity(0, here.intersection(cores) or here)
    try:
        return subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, **options
        )
    finally:
        os.sched_setaffinity(0, here)


def end(process: subprocess.Popen[bytes], goodbye: float = GOODBYE) -> None:
    """Close its standard input, and kill it if it does not end in time."""
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.close()
    try:
        process.wait(goodbye)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    assert process.stdout is not None
    process.stdout.close()


class Server(Protocol):
    """The server of a cell, and its commands."""

    @property
    def http(self) -> str: ...
    @property
    def https(self) -> str: ...
    @property
    def ca(self) -> Path: ...
    def configure(self, objects: int) -> None: ...
    def expire(self) -> None: ...
    def flow(self, events: int, rate: float, watchers: int) -> dict[str, Any]: ...
    def counts(self) -> dict[str, int]: ...


class ReplayServer:
    """The replay server, as a context manager.

    Args:
        binary: The program.
        pods: The file of pod templates.
        ca: The file to which it writes its certificate authority.
        cores: The cores that it may use.
        nice: How much it gives way to others on these cores, as of ``nice``.
    """

    def __init__(self, binary: Path, pods: Path, ca: Path, cores: Iterable[int], nice: int = 0) -> None:
        self._command = ["nice", "-n", str(nice), str(binary), "-pods", str(pods), "-ca", str(ca)]
        self._cores = list(cores)
        self.ca = ca
        self.http = self.https = ""

    def __enter__(self) -> Self:
        self._process = start(self._command, self._cores)
        assert self._process.stdout is not None
        addresses = json.loads(self._process.stdout.readline())
        self.http, self.https = addresses["http"], addresses["https"]
        self._control = addresses["control"]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        end(self._process)

    def configure(self, objects: int) -> None:
        """Restart with a number of objects and no watches."""
        self._ask("configure", objects=objects)

    def expire(self) -> None:
        """End all watches with 410 Gone."""
        self._ask("expire")

    def flow(self, events: int, rate: float, watchers: int) -> dict[str, Any]:
        """Send changes, and wait until they are sent."""
        return self._ask("flow", events=events, rate=rate, watchers=watchers)

    def counts(self) -> dict[str, int]:
        """Return the numbers of lists, watches, and requests that wrote Events since ``configure``."""
        return self._ask("counts")

    def sent(self) -> dict[str, int]:
        """Return the bytes sent over plain HTTP since ``configure``, by User-Agent."""
        return self._ask("sent")

    def _ask(self, path: str, **query: float) -> dict[str, Any]:
        url = f"{self._control}/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=ANSWER_TIMEOUT) as response:
                answer: dict[str, Any] = json.load(response)
        except urllib.error.HTTPError as error:
            raise ClientFailedError(error.read().decode().strip()) from None
        return answer


class ClientProcess:
    """A client process, as a context manager.

    Args:
        command: Its command line.
        cores: The cores that it may use.
        goodbye: Seconds for it to end before it is killed.
    """

    def __init__(self, command: Sequence[str], cores: Iterable[int], goodbye: float = GOODBYE) -> None:
        self._command = list(command)
        self._cores = list(cores)
        self._goodbye = goodbye
        self._pending = b""

    def __enter__(self) -> Self:
        self._errors = tempfile.TemporaryFile()
        self._process = start(self._command, self._cores, stderr=self._errors)
        self._readable = selectors.DefaultSelector()
        assert self._process.stdout is not None
        self._readable.register(self._process.stdout, selectors.EVENT_READ)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._process.kill()
        end(self._process, self._goodbye)
        self._readable.close()
        self._errors.close()

    def send(self, line: str) -> None:
        """Send a command."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # the missing answer is reported
            self._process.stdin.write(f"{line}\n".encode())

    def answer(self, phase: str, timeout: float = ANSWER_TIMEOUT) -> dict[str, Any]:
        """Wait for the line of a phase.

        Raises:
            ClientFailedError: The client gave no answer or another one.
            ClientUnsupportedError: The client exited because it does not support the scenario.
        """
        line = self._line(time.monotonic() + timeout)
        if not line:
            self._process.wait()
            self._fail(f"exited with status {self._process.returncode}")
        try:
            answer: dict[str, Any] = json.loads(line)
        except ValueError:
            self._fail(f"said {line[:200]!r}")
        if answer.get("phase") != phase:
            self._fail(f"said {line[:200]!r} instead of {phase}")
        return answer

    def _line(self, deadline: float) -> bytes:
        assert self._process.stdout is not None
        while b"\n" not in self._pending:
            if not self._readable.select(max(0.0, deadline - time.monotonic())):
                self._fail("gave no answer")
            if not (more := os.read(self._process.stdout.fileno(), 65536)):
                return b""
            self._pending += more
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def _fail(self, what: str) -> Any:
        self._errors.seek(0)
        lines = [line for line in self._errors.read().decode(errors="replace").splitlines() if line.strip()]
        last = lines[-1].strip()[:300] if lines else ""
        if self._process.poll() == UNSUPPORTED:
            raise ClientUnsupportedError(last.removeprefix("not supported: "))
        raise ClientFailedError(f"{what}; {last}" if last else what)

    @property
    def resident(self) -> int:
        """Resident memory in bytes."""
        text = Path(f"/proc/{self._process.pid}/smaps_rollup").read_text()
        return _kilobytes(text, "Rss") * 1024

    @property
    def peak(self) -> int:
        """The maximum of resident bytes since the last ``forget_peak``."""
        return _kilobytes(Path(f"/proc/{self._process.pid}/status").read_text(), "VmHWM") * 1024

    @property
    def logged(self) -> int:
        """Bytes that it has written to standard error."""
        return os.fstat(self._errors.fileno()).st_size

    def forget_peak(self) -> None:
        Path(f"/proc/{self._process.pid}/clear_refs").write_text("5")


def _kilobytes(text: str, name: str) -> int:
    match = re.search(rf"^{name}:\s+(\d+) kB$", text, re.MULTILINE)
    assert match is not None
    return int(match[1])


def python_client(name: str) -> list[str]:
    """Return the command line of a client of ``benchmarks.clients``."""
    return [sys.executable, "-m", "benchmarks.clients", name]
