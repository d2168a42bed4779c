"""A server process: start it, wait for it, read its log, end it. Blocking code without an event loop."""

import os
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pytest_aioinformer.ports import free_ports as free_ports
from tests.go_build import AbortedError

_POLL = 0.05


class StartError(Exception):
    """A server ended or was not ready in time; the message has the end of its log."""


class ServerProcess:
    """A command that runs until it is stopped. It may be started again afterwards.

    Its standard input is a pipe from this process. It exits when the pipe closes (internal/leash), so it ends even if
    pytest is killed.
    """

    def __init__(self, command: Sequence[str | Path], log: Path, is_ready: Callable[[], bool]) -> None:
        self.name = Path(command[0]).name
        self._command = [str(word) for word in command]
        self._log = log
        self._is_ready = is_ready
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process id; None while it does not run."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self, *, deadline: float, abort: threading.Event) -> None:
        """Start the process and return once it is ready; end it if that fails."""
        if self.pid is not None:
            raise RuntimeError(f"{self.name} is running")
        self._release()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._log.parent,
                env={**os.environ, "AIOINFORMER_LEASH": "1"},
                start_new_session=True,  # pytest handles Ctrl-C, and ends the servers in order
            )
        try:
            self.wait_until_ready(deadline=deadline, abort=abort)
        except BaseException:
            self.kill()
            raise

    def wait_until_ready(self, *, deadline: float, abort: threading.Event) -> None:
        assert self._process is not None
        end = time.monotonic() + deadline
        while not self._is_ready():
            if self._process.poll() is not None:
                raise StartError(f"{self.name} ended with {self._process.returncode}:\n{self.log_tail()}")
            if time.monotonic() > end:
                raise StartError(f"{self.name} was not ready in time:\n{self.log_tail()}")
            if abort.wait(_POLL):
                raise AbortedError(f"starting {self.name}")

    def stop(self, *, grace: float) -> None:
        """Send SIGTERM, then SIGKILL if the process has not ended in time."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(grace)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._release()

    def kill(self) -> None:
        """Send SIGKILL, and return when the process has ended."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        self._release()

    def _release(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            process.stdin.close()

    def log_tail(self, lines: int = 30) -> str:
        if not self._log.exists():
            return ""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-lines:])
