"""Builds programs of the tests' own Go modules, once per state of their sources.

A build of the same sources is found again by a hash in its folder's name. Builds of several processes
(pytest-xdist workers) wait for each other on a file lock, and whoever comes second finds everything done.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

CACHE = Path(__file__).resolve().parents[1] / ".cache"

_POLL = 0.1

Report = Callable[[str], None]


class ToolchainMissingError(Exception):
    """There is no Go toolchain that could build it, and no build of it in the cache."""


class BuildError(Exception):
    """The Go toolchain refused; the end of its output is in the message."""


class AbortedError(Exception):
    """Whoever waited for this has given up."""


def report_to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201


@dataclass(frozen=True)
class GoBuild:
    """Programs that are built together.

    Attributes:
        name: What reports call it.
        module: The folder of go.mod.
        commands: For each program the words of its build, the package last: ``("build", "./cmd/etcd")``.
        cache: Where the builds lie; it is this one's own.
        flags: Between the words and the package.
        sources: The folders of the module whose Go files the programs are made of; empty stands for all.
        purpose: What a Go toolchain would be good for, for the advice to install one.
        expectation: How long it may take, for the reports.
    """

    name: str
    module: Path
    commands: Mapping[str, tuple[str, ...]]
    cache: Path
    flags: tuple[str, ...] = ("-trimpath", "-ldflags", "-s -w")
    sources: tuple[str, ...] = (".",)
    purpose: str = "these tests run too"
    expectation: str = "a minute the first time"

    def ensure(self, *, report: Report = report_to_stderr, abort: threading.Event | None = None) -> Path:
        """The folder that holds all of ``commands``; builds what it lacks.

        Raises:
            ToolchainMissingError: something is to be built and Go is not there, or is too old.
            BuildError: Go could not build it.
            AbortedError: ``abort`` was set meanwhile.
        """
        abort = abort or threading.Event()
        folder = self.cache / self._fingerprint()
        if self._missing(folder):
            go = self._toolchain()
            self.cache.mkdir(parents=True, exist_ok=True)
            with self._locked(report, abort):
                folder.mkdir(exist_ok=True)
                for command in self._missing(folder):
                    self._build(go, command, folder, report, abort)
                self._forget_others(folder)
        return folder

    def _missing(self, folder: Path) -> list[str]:
        return [command for command in self.commands if not (folder / command).exists()]

    def _fingerprint(self) -> str:
        """What a build depends on as far as this project decides it. Go's own version does not count."""
        settings = (self.flags, sorted(self.commands.items()), sys.platform, os.uname().machine)
        digest = hashlib.sha256(repr(settings).encode())
        found = {path for folder in self.sources for path in (self.module / folder).rglob("*.go")}
        for source in sorted({self.module / "go.mod", self.module / "go.sum", *found}):
            digest.update(f"\0{source.relative_to(self.module)}\0".encode())
            digest.update(source.read_bytes())
        return digest.hexdigest()[:16]

    def _toolchain(self) -> str:
        """The path of a Go that can build the module."""
        wanted = re.search(r"^go (\d+)\.(\d+)", (self.module / "go.mod").read_text(), re.MULTILINE)
        assert wanted is not None
        needed = f"Go {wanted[1]}.{wanted[2]} or later"
        advice = f"install {needed} (https://go.dev/dl/), then {self.purpose}"
        go = shutil.which("go")
        if go is None:
            raise ToolchainMissingError(f"no Go toolchain on PATH: {advice}")
        # Asked in the module's folder: there a `go` that may fetch newer ones names the one it would use.
        asked = subprocess.run(
            [go, "env", "GOVERSION"], cwd=self.module, capture_output=True, text=True, check=False
        )
        found = re.match(r"go(\d+)\.(\d+)", asked.stdout)
        if asked.returncode or (found and (int(found[1]), int(found[2])) < (int(wanted[1]), int(wanted[2]))):
            said = asked.stdout.strip() or asked.stderr.strip()
            raise ToolchainMissingError(f"the Go toolchain {go} is too old ({said}): {advice}")
        return go

    @contextmanager
    def _locked(self, report: Report, abort: threading.Event) -> Iterator[None]:
        with (self.cache / "lock").open("w") as lock:
            waiting = False
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if not waiting:
                        report(f"{self.name}: waiting for the build that another process has begun")
                    waiting = True
                if abort.wait(_POLL):
                    raise AbortedError("waiting for another process's build")
            yield  # closing the file gives the lock back

    def _build(self, go: str, command: str, folder: Path, report: Report, abort: threading.Event) -> None:
        report(f"{self.name}: building {command} ({self.expectation})")
        began = time.monotonic()
        partial, log = folder / f"{command}.partial", folder / f"{command}.log"
        *words, package = self.commands[command]
        with log.open("w") as output:
            process = subprocess.Popen(
                [go, *words, *self.flags, "-o", str(partial), package],
                cwd=self.module,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "CGO_ENABLED": "0"},
            )
            try:
                while process.poll() is None:
                    if abort.wait(_POLL):
                        raise AbortedError(f"building {command}")
            finally:
                if process.poll() is None:
                    process.terminate()
                    process.wait()
        if process.returncode:
            said = log.read_text(errors="replace")[-4000:]
            raise BuildError(f"go {' '.join(words)} {package} failed:\n{said}")
        partial.rename(folder / command)
        log.unlink()
        report(f"{self.name}: built {command} in {time.monotonic() - began:.0f} s")

    def _forget_others(self, folder: Path) -> None:
        """Removes builds of former sources: they are large, and seconds to make again."""
        for other in self.cache.iterdir():
            if other.is_dir() and other != folder:
                shutil.rmtree(other, ignore_errors=True)


def build_before_tests(session: pytest.Session, ensure: Iterable[Callable[[], object]]) -> Exception | None:
    """Builds before the first test begins: the minutes of a cold build are no test's and no timeout's.

    Returns:
        Why it cannot be built, for the tests that need it to say; the others go on.
    """
    capture: Any = session.config.pluginmanager.getplugin("capturemanager")
    try:
        for each in ensure:
            if capture is None:
                each()
            else:
                with capture.global_and_fixture_disabled():  # so that the progress is seen
                    each()
    except (ToolchainMissingError, BuildError) as error:
        return error
    return None


def ensured(ensure: Callable[[], Path], error: Exception | None) -> Path:
    """What a fixture gives of a build: where it is.

    Without Go the test skips and says what to install; where ``CI`` is set in the environment it fails.

    Args:
        ensure: Builds it, or finds it built.
        error: What ``build_before_tests`` gave.
    """
    if error is None:
        try:
            return ensure()
        except (ToolchainMissingError, BuildError) as raised:
            error = raised
    if isinstance(error, ToolchainMissingError) and os.environ.get("CI", "").lower() in ("", "0", "false"):
        pytest.skip(str(error))
    pytest.fail(str(error), pytrace=False)
