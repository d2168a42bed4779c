"""Build kube-apiserver and its companions from their Go modules."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

from tests.go_build import CACHE, GoBuild, Report, report_to_stderr

MODULE = Path(__file__).resolve().parent
COMMANDS = (
    "etcd",
    "kube-apiserver",
    "kubectl",
    "kube-controller-manager",
    "protobuf-schema",
    "builtin-schema",
)

VERSION = "v1.36.3"

_STAMPS = {
    "k8s.io/component-base/version.gitVersion": VERSION,
    "k8s.io/component-base/version.gitMajor": "1",
    "k8s.io/component-base/version.gitMinor": "36",
    "k8s.io/client-go/pkg/version.gitVersion": VERSION,
}

KUBERNETES = GoBuild(
    "kubernetes",
    MODULE,
    {command: ("build", f"./cmd/{command}") for command in COMMANDS},
    cache=CACHE / "kubernetes",
    flags=("-trimpath", "-ldflags", " ".join(["-s -w", *(f"-X {k}={v}" for k, v in _STAMPS.items())])),
    purpose="make test runs against the real kube-apiserver too",
    expectation="all six: some four minutes on two cores the first time",
)


def testdata() -> Path:
    """Return Kubernetes' own examples of every kind, as JSON and protobuf: k8s.io/api's ``testdata``.

    Call this after the binaries are built, when the module has been downloaded.
    """
    command = ["go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/api"]
    return Path(subprocess.check_output(command, cwd=MODULE, text=True).strip()) / "testdata"


def ensure_binaries(*, report: Report = report_to_stderr, abort: threading.Event | None = None) -> Path:
    """Return the folder with all of COMMANDS: see ``GoBuild.ensure``. A cold build takes minutes."""
    return KUBERNETES.ensure(report=report, abort=abort)
