"""Build helm from its Go module."""

from __future__ import annotations

from pathlib import Path

from tests.go_build import CACHE, GoBuild

HELM = GoBuild(
    "helm",
    Path(__file__).resolve().parent,
    {"helm": ("build", "helm.sh/helm/v4/cmd/helm")},
    cache=CACHE / "helm",
    purpose="the tests lint, render and install charts",
    expectation="some two minutes on two cores the first time",
)
