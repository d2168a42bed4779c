"""The project's metadata and pages."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_no_url_of_a_code_host_that_others_may_own() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("no checkout")
    place = re.compile(rb"(github|gitlab|codeberg|bitbucket|ghcr)\.[a-z]+/aioinformer")
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    assert [str(path) for path in paths if path.is_file() and place.search(path.read_bytes())] == []
    assert "urls" not in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
