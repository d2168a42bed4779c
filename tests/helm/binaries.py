"""Build helm from its Go module."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.go_build import CACHE, GoBuild, Report, report_to_stderr

HELM = GoBuild(
    "helm",
    Path(__file__).resolve().parent,
    {"helm": ("build", "helm.sh/helm/v4/cmd/helm")},
    cache=CACHE / "helm",
    purpose="the tests lint, render and install charts",
    expectation="some two minutes on two cores the first time",
)


def ensure_helm(*, report: Report = report_to_stderr, abort: threading.Event | None = None) -> Path:
    """Return the folder with helm: see ``GoBuild.ensure``."""
    return HELM.ensure(report=report, abort=abort)
