"""Build and call promtool."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.go_build import CACHE, GoBuild

PROMTOOL = GoBuild(
    "promtool",
    Path(__file__).resolve().parent,
    {"promtool": ("build", "github.com/prometheus/prometheus/cmd/promtool")},
    cache=CACHE / "prometheus",
    purpose="the tests evaluate the alerts of operators",
    expectation="some five minutes on two cores the first time",
)


def require_success(promtool: Path, *arguments: str) -> None:
    """Call promtool, and fail the test with what it says if it does not exit with 0."""
    command = [str(promtool / "promtool"), *arguments]
    called = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert called.returncode == 0, called.stdout + called.stderr


def write_yaml(path: Path, value: Any) -> str:
    """Write a value as YAML, and return the path."""
    path.write_text(yaml.safe_dump(value, sort_keys=False))
    return str(path)
