"""Build actionlint from its Go module."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.go_build import CACHE, GoBuild, Report, report_to_stderr

ACTIONLINT = GoBuild(
    "actionlint",
    Path(__file__).resolve().parent,
    {"actionlint": ("build", "github.com/rhysd/actionlint/cmd/actionlint")},
    cache=CACHE / "actionlint",
    purpose="the tests check the workflows of new projects",
    expectation="some seconds",
)


def ensure_actionlint(*, report: Report = report_to_stderr, abort: threading.Event | None = None) -> Path:
    """Return the folder with actionlint: see ``GoBuild.ensure``."""
    return ACTIONLINT.ensure(report=report, abort=abort)
