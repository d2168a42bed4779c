"""The project's metadata and pages."""

from __future__ import annotations

import re
import subprocess
import tomllib
from itertools import chain
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[1]


def test_no_url_of_a_code_host_that_others_may_own() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("no checkout")
    place = re.compile(rb"(github|gitlab|codeberg|bitbucket|ghcr)\.[a-z]+/aioinformer")
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    assert [str(path) for path in paths if path.is_file() and place.search(path.read_bytes())] == []
    assert "urls" not in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_the_lowest_versions_that_are_tested_are_the_lower_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    requirements = [
        Requirement(dependency) for dependency in [*project["dependencies"], *chain.from_iterable(extras)]
    ]
    bounds = {
        requirement.name: Version(specifier.version)
        for requirement in requirements
        for specifier in requirement.specifier
        if specifier.operator == ">="
    }
    lines = (ROOT / "tests" / "constraints-lowest.txt").read_text().splitlines()
    tested = [Requirement(line) for line in lines if not line.startswith("#")]
    assert tested
    assert bounds.keys() >= {requirement.name for requirement in tested} - {"click"}  # typer's
    for requirement in tested:
        if requirement.name == "click":
            continue
        (specifier,) = requirement.specifier
        assert (specifier.operator, Version(specifier.version)) == ("==", bounds[requirement.name]), (
            requirement.name
        )
