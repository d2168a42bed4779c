"""Build actionlint from its Go module."""

from __future__ import annotations

from pathlib import Path

from tests.go_build import CACHE, GoBuild

ACTIONLINT = GoBuild(
    "actionlint",
    Path(__file__).resolve().parent,
    {"actionlint": ("build", "github.com/rhysd/actionlint/cmd/actionlint")},
    cache=CACHE / "actionlint",
    purpose="the tests check the workflows of new projects",
    expectation="some seconds",
)
