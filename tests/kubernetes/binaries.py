"""Builds kube-apiserver and its companions from their Go modules, once per state of the Go sources.

A build of the same sources is found again by a hash in its folder's name. Builds of several processes
(pytest-xdist workers) wait for each other on a file lock, and whoever comes second finds everything done.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

MODULE = Path(__file__).resolve().parent
CACHE = MODULE.parents[1] / ".cache" / "kubernetes"
COMMANDS = ("etcd", "kube-apiserver", "kubectl", "kube-controller-manager")

_STAMPS = {
    "k8s.io/component-base/version.gitVersion": "v1.36.3",
    "k8s.io/component-base/version.gitMajor": "1",
    "k8s.io/component-base/version.gitMinor": "36",
    "k8s.io/client-go/pkg/version.gitVersion": "v1.36.3",
}
_BUILD = ("build", "-trimpath", "-ldflags", " ".join(["-s -w", *(f"-X {k}={v}" for k, v in _STAMPS.items())]))
_POLL = 0.1

Report = Callable[[str], None]


class ToolchainMissingError(Exception):
    """There is no Go toolchain that could build the server, and no build of it in the cache."""


class BuildError(Exception):
    """The Go toolchain refused; the end of its output is in the message."""


class AbortedError(Exception):
    """Whoever waited for this has given up."""


def report_to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201


def ensure_binaries(*, report: Report = report_to_stderr, abort: threading.Event | None = None) -> Path:
    """The folder that holds all of COMMANDS; builds what it lacks.

    Cold this takes minutes, from the Go build cache seconds, else milliseconds.

    Raises:
        ToolchainMissingError: something is to be built and Go is not there, or is too old.
        BuildError: Go could not build it.
        AbortedError: `abort` was set meanwhile.
    """
    abort = abort or threading.Event()
    folder = CACHE / _fingerprint()
    if _missing(folder):
        go = _toolchain()
        CACHE.mkdir(parents=True, exist_ok=True)
        with _locked(CACHE / "lock", report, abort):
            folder.mkdir(exist_ok=True)
            for command in _missing(folder):
                _build(go, command, folder, report, abort)
            _forget_others(folder)
    return folder


def _missing(folder: Path) -> list[str]:
    return [command for command in COMMANDS if not (folder / command).exists()]


def _fingerprint() -> str:
    """What a build depends on as far as this project decides it. Go's own version does not count."""
    digest = hashlib.sha256(repr((_BUILD, sys.platform, os.uname().machine)).encode())
    sources = [MODULE / "go.mod", MODULE / "go.sum", *MODULE.rglob("*.go")]
    for source in sorted(sources):
        digest.update(f"\0{source.relative_to(MODULE)}\0".encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _toolchain() -> str:
    """The path of a Go that can build the module."""
    wanted = re.search(r"^go (\d+)\.(\d+)", (MODULE / "go.mod").read_text(), re.MULTILINE)
    assert wanted is not None
    needed = f"Go {wanted[1]}.{wanted[2]} or later"
    advice = f"install {needed} (https://go.dev/dl/), then make test runs against the real kube-apiserver too"
    go = shutil.which("go")
    if go is None:
        raise ToolchainMissingError(f"no Go toolchain on PATH: {advice}")
    # Asked in the module's folder: there a `go` that may fetch newer ones names the one it would use.
    asked = subprocess.run([go, "env", "GOVERSION"], cwd=MODULE, capture_output=True, text=True, check=False)
    found = re.match(r"go(\d+)\.(\d+)", asked.stdout)
    if asked.returncode or (found and (int(found[1]), int(found[2])) < (int(wanted[1]), int(wanted[2]))):
        said = asked.stdout.strip() or asked.stderr.strip()
        raise ToolchainMissingError(f"the Go toolchain {go} is too old ({said}): {advice}")
    return go


@contextmanager
def _locked(path: Path, report: Report, abort: threading.Event) -> Iterator[None]:
    with path.open("w") as lock:
        waiting = False
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not waiting:
                    report("kubernetes: waiting for the build that another process has begun")
                waiting = True
            if abort.wait(_POLL):
                raise AbortedError("waiting for another process's build")
        yield  # closing the file gives the lock back


def _build(go: str, command: str, folder: Path, report: Report, abort: threading.Event) -> None:
    report(f"kubernetes: building {command} (all four: some four minutes on two cores the first time)")
    began = time.monotonic()
    partial, log = folder / f"{command}.partial", folder / f"{command}.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [go, *_BUILD, "-o", str(partial), f"./cmd/{command}"],
            cwd=MODULE,
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
        raise BuildError(f"go build ./cmd/{command} failed:\n{log.read_text(errors='replace')[-4000:]}")
    partial.rename(folder / command)
    log.unlink()
    report(f"kubernetes: built {command} in {time.monotonic() - began:.0f} s")


def _forget_others(folder: Path) -> None:
    """Removes builds of former sources: a quarter of a gigabyte each, and seconds to make again."""
    for other in CACHE.iterdir():
        if other.is_dir() and other != folder:
            shutil.rmtree(other, ignore_errors=True)
