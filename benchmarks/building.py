"""Build the Go and Rust clients, and the server.

    python -m benchmarks.building

Builds are cached in folders that are named by a hash of the sources, as in ``tests/go_build.py``. A program that
cannot be built is not an error here: the report lists it as missing, with the reason.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.go_build import CACHE, BuildError, GoBuild, Report, ToolchainMissingError, report_to_stderr

FOLDER = Path(__file__).resolve().parent
BUILDS = CACHE / "benchmarks"


def _go(program: str, module: str, package: str, *sources: str) -> GoBuild:
    return GoBuild(
        program,
        FOLDER / module,
        {program: ("build", package)},
        cache=BUILDS / program,
        flags=("-trimpath",),
        sources=sources or (".",),
        purpose="run the benchmarks again",
        expectation="a minute or two the first time",
    )


@dataclass(frozen=True)
class CargoBuild:
    """The programs of one Rust package, built together.

    The sources are copied first, because cargo writes its lock file beside them.

    Attributes:
        package: The folder of Cargo.toml.
        programs: The names of its binaries.
        cache: The folder of the builds. Other packages must not use it.
    """

    package: Path
    programs: tuple[str, ...]
    cache: Path

    @property
    def is_built(self) -> bool:
        """Whether all programs are in the cache."""
        return self._complete(self.cache / self._fingerprint())

    def ensure(self, *, report: Report = report_to_stderr) -> Path:
        """Return the folder with all programs; build those that are missing.

        Raises:
            ToolchainMissingError: A build is needed and cargo is missing.
            BuildError: The cargo build failed.
        """
        folder = self.cache / self._fingerprint()
        if not self._complete(folder):
            cargo = shutil.which("cargo")
            if cargo is None:
                raise ToolchainMissingError("no cargo on PATH: install Rust (https://rustup.rs)")
            self.cache.mkdir(parents=True, exist_ok=True)
            with (self.cache / "lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not self._complete(folder):
                    self._build(cargo, folder, report)
        return folder

    def _complete(self, folder: Path) -> bool:
        return all((folder / program).exists() for program in self.programs)

    def _sources(self) -> list[Path]:
        return sorted([self.package / "Cargo.toml", *(self.package / "src").rglob("*.rs")])

    def _fingerprint(self) -> str:
        digest = hashlib.sha256(repr((self.programs, sys.platform, os.uname().machine)).encode())
        for source in self._sources():
            digest.update(f"\0{source.relative_to(self.package)}\0".encode())
            digest.update(source.read_bytes())
        return digest.hexdigest()[:16]

    def _build(self, cargo: str, folder: Path, report: Report) -> None:
        names = ", ".join(self.programs)
        report(f"cargo: building {names} (five minutes the first time)")
        began = time.monotonic()
        copy = self.cache / "source"
        shutil.rmtree(copy / "src", ignore_errors=True)
        for source in self._sources():
            target = copy / source.relative_to(self.package)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)  # with its modification time, which cargo uses
        built = subprocess.run(
            [cargo, "build", "--release", "--target-dir", str(self.cache / "target")],
            cwd=copy,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        if built.returncode:
            raise BuildError(f"cargo build failed:\n{built.stdout[-4000:]}")
        for former in self.cache.iterdir():
            if former.is_dir() and former.name not in ("source", "target"):
                shutil.rmtree(former)
        folder.mkdir(exist_ok=True)
        for program in self.programs:
            shutil.copy2(self.cache / "target" / "release" / program, folder / program)
        report(f"cargo: built {names} in {time.monotonic() - began:.0f} s")


BUILDERS: Mapping[str, GoBuild | CargoBuild] = {
    **{
        build.name: build
        for build in (
            _go("replay-server", "replay_server", "."),
            _go("client-go", "peers_go", "./clientgo", "clientgo", "internal"),
            _go("controller-runtime", "peers_go", "./operator", "operator", "internal"),
            _go("go-queues", "peers_go", "./queue", "queue"),
            _go("controller-runtime-webhook", "peers_go", "./webhook", "webhook"),
            _go("webhook-load", "peers_go", "./load", "load"),
            _go("websites-controller-runtime", "websites/controller_runtime", "."),
        )
    },
    **dict.fromkeys(
        ("kube-rs", "kube-rs-operator"),
        CargoBuild(FOLDER / "peers_rust", ("kube-rs", "kube-rs-operator"), BUILDS / "kube-rs"),
    ),
    "websites-kube-rs": CargoBuild(
        FOLDER / "websites" / "kube_rs", ("websites-kube-rs",), BUILDS / "websites-kube-rs"
    ),
}
"""The build of each program, by name."""


@dataclass(frozen=True)
class Built:
    """The result of a build.

    Attributes:
        programs: The paths of the built programs.
        missing: The reasons of failed builds, by program.
    """

    programs: dict[str, Path] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


def build(names: Iterable[str] = tuple(BUILDERS), *, report: Report = report_to_stderr) -> Built:
    """Build programs unless they are built already.

    Args:
        names: Names of ``BUILDERS``.
        report: Called with a line before and after each build that takes minutes.
    """
    built = Built()
    for name in names:
        try:
            built.programs[name] = BUILDERS[name].ensure(report=report) / name
        except (ToolchainMissingError, BuildError) as error:
            lines = str(error).strip().splitlines()
            built.missing[name] = lines[-1]
            report(f"{name} is missing: {error}")
    return built


if __name__ == "__main__":
    built = build()
    for program, path in built.programs.items():
        print(f"{program}: {path}")
    for program, reason in built.missing.items():
        print(f"{program}: missing: {reason}")
    sys.exit(bool(built.missing))
