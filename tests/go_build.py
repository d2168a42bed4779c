"""Build programs of the tests' own Go modules, once per state of their sources.

A hash of the sources in the folder's name finds an earlier build. Processes (pytest-xdist workers) wait for each other
on a file lock; the second one finds the build done.
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
    """There is no suitable Go toolchain, and no earlier build in the cache."""


class BuildError(Exception):
    """The Go build failed; the message has the end of its output."""


class AbortedError(Exception):
    """The caller set ``abort`` during the build."""


def report_to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201


@dataclass(frozen=True)
class GoBuild:
    """Programs that are built together.

    Attributes:
        name: The name in reports.
        module: The folder of go.mod.
        commands: For each program the words of its build, the package last: ``("build", "./cmd/etcd")``.
        cache: The folder of the builds. No other build may use it.
        flags: Flags between the words and the package.
        sources: The folders of the module with the programs' Go files; empty stands for all.
        purpose: Why a Go toolchain is needed, for the advice to install one.
        expectation: How long the build may take, for reports.
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
        """Return the folder with all of ``commands``; build those that are missing.

        Raises:
            ToolchainMissingError: A program is missing, and Go is missing or too old.
            BuildError: The build failed.
            AbortedError: ``abort`` was set during the build.
        """
        abort = abort or threading.Event()
        folder = self.cache / self._fingerprint()
        if self._missing(folder):
            go = self._toolchain()
            self.cache.mkdir(parents=True, exist_ok=True)
            with self._lock(report, abort):
                folder.mkdir(exist_ok=True)
                for command in self._missing(folder):
                    self._build(go, command, folder, report, abort)
                self._forget_others(folder)
        return folder

    def _missing(self, folder: Path) -> list[str]:
        return [command for command in self.commands if not (folder / command).exists()]

    def _fingerprint(self) -> str:
        """Return a hash of the sources and flags. Go's own version does not count."""
        settings = (self.flags, sorted(self.commands.items()), sys.platform, os.uname().machine)
        digest = hashlib.sha256(repr(settings).encode())
        sources = {path for folder in self.sources for path in (self.module / folder).rglob("*.go")}
        for source in sorted({self.module / "go.mod", self.module / "go.sum", *sources}):
            digest.update(f"\0{source.relative_to(self.module)}\0".encode())
            digest.update(source.read_bytes())
        return digest.hexdigest()[:16]

    def _toolchain(self) -> str:
        """Return the path of a Go that can build the module."""
        wanted = re.search(r"^go (\d+)\.(\d+)", (self.module / "go.mod").read_text(), re.MULTILINE)
        assert wanted is not None
        needed = f"Go {wanted[1]}.{wanted[2]} or later"
        advice = f"install {needed} (https://go.dev/dl/), then {self.purpose}"
        go = shutil.which("go")
        if go is None:
            raise ToolchainMissingError(f"no Go toolchain on PATH: {advice}")
        # In the module's folder, a `go` that may download a newer toolchain prints the version that it would use.
        asked = subprocess.run(
            [go, "env", "GOVERSION"], cwd=self.module, capture_output=True, text=True, check=False
        )
        match = re.match(r"go(\d+)\.(\d+)", asked.stdout)
        if asked.returncode or (match and (int(match[1]), int(match[2])) < (int(wanted[1]), int(wanted[2]))):
            said = asked.stdout.strip() or asked.stderr.strip()
            raise ToolchainMissingError(f"the Go toolchain {go} is too old ({said}): {advice}")
        return go

    @contextmanager
    def _lock(self, report: Report, abort: threading.Event) -> Iterator[None]:
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
            yield  # closing the file releases the lock

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
        """Remove builds of earlier sources: they are large, and take seconds to build again."""
        for other in self.cache.iterdir():
            if other.is_dir() and other != folder:
                shutil.rmtree(other, ignore_errors=True)


def build_before_tests(session: pytest.Session, ensure: Iterable[Callable[[], object]]) -> Exception | None:
    """Build before the first test starts, so that no test's timeout includes the minutes of a cold build.

    Returns:
        Why the build failed, or None. Tests that need the build report it; other tests run.
    """
    capture: Any = session.config.pluginmanager.getplugin("capturemanager")
    try:
        for build in ensure:
            if capture is None:
                build()
            else:
                with capture.global_and_fixture_disabled():  # shows the progress
                    build()
    except (ToolchainMissingError, BuildError) as error:
        return error
    return None


_failures = pytest.StashKey[dict[str, Exception]]()


def build_for_fixture(session: pytest.Session, fixture: str, build: GoBuild) -> None:
    """Build what a fixture returns, before the first test starts, if a test of the session has the fixture."""
    wanted = any(fixture in getattr(item, "fixturenames", ()) for item in session.items)
    if not wanted or session.config.option.collectonly:
        return
    if error := build_before_tests(session, [build.ensure]):
        session.config.stash.setdefault(_failures, {})[build.name] = error


def require_for_fixture(config: pytest.Config, build: GoBuild) -> Path:
    """Return the folder of what ``build_for_fixture`` has built: see ``require_build``."""
    return require_build(build.ensure, config.stash.get(_failures, {}).get(build.name))


def require_build(ensure: Callable[[], Path], error: Exception | None) -> Path:
    """Return the folder of a build, for a fixture.

    Without Go the test skips and says what to install; if the environment has ``CI``, it fails.

    Args:
        ensure: Builds the programs, or finds them built.
        error: What ``build_before_tests`` returned.
    """
    if error is None:
        try:
            return ensure()
        except (ToolchainMissingError, BuildError) as raised:
            error = raised
    if isinstance(error, ToolchainMissingError) and os.environ.get("CI", "").lower() in ("", "0", "false"):
        pytest.skip(str(error))
    pytest.fail(str(error), pytrace=False)
