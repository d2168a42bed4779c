"""Whether aioinformer installs beside other programs' releases of today and of a year ago.

``python -m tests.migrations.installing [NAME...]`` prints the table. pip resolves and
installs nothing. It needs pip 26 for releases of a day, and an index that says when each was uploaded.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from itertools import chain

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from .environments import ROOT
from .tables import show

EXTRAS = ("cli", "otel", "pydantic", "web")
"""Those that a service or an operator may install."""

OPTIONS = ["--dry-run", "--ignore-installed", "--disable-pip-version-check"]

PROGRAMS = {
    "Airflow": ["apache-airflow", "apache-airflow-providers-cncf-kubernetes"],
    "KubeSpawner": ["jupyterhub-kubespawner", "jupyterhub"],
    "Prefect": ["prefect-kubernetes", "prefect"],
    "Dask": ["dask-kubernetes", "dask"],
    "kopf": ["kopf"],
    "kr8s": ["kr8s"],
    "FastAPI": ["fastapi"],
    "Litestar": ["litestar"],
}
"""Their packages by name; the first is shown."""


class Conflict(Exception):  # noqa: N818 - what it is
    """pip finds no versions that fit."""


def resolve(requirements: Sequence[str], before: datetime.date | None = None) -> dict[str, str]:
    """Return the versions that pip would install into an empty environment.

    Args:
        requirements: What to install.
        before: Only releases that were uploaded before this day; None for all.

    Raises:
        Conflict: No versions fit.
    """
    with tempfile.NamedTemporaryFile("r", suffix=".json") as report:
        command = [sys.executable, "-m", "pip", "install", *OPTIONS, "--report", report.name, *requirements]
        if before is not None:
            command += ["--uploaded-prior-to", before.isoformat()]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if "ResolutionImpossible" in result.stderr:
            raise Conflict("; ".join(re.findall(r"^ {4}(\S+ .+)$", result.stdout, re.MULTILINE)))
        if result.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{result.stderr}")
        items = json.load(report)["install"]
    return {canonicalize_name(item["metadata"]["name"]): item["metadata"]["version"] for item in items}


def pin(packages: Sequence[str], versions: dict[str, str]) -> list[str]:
    """Return requirements that pin these packages."""
    return [f"{package}=={versions[package]}" for package in packages]


def attempt(requirements: Sequence[str]) -> str:
    """Return "works", or what is in conflict with aioinformer."""
    try:
        resolve([f"{ROOT}[{','.join(EXTRAS)}]", *requirements])
    except Conflict as conflict:
        return f"conflict: {conflict}"
    return "works"


def too_old(versions: dict[str, str]) -> list[str]:
    """Return the versions that are below aioinformer's floors."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    texts = chain(project["dependencies"], *(project["optional-dependencies"][name] for name in EXTRAS))
    requirements = map(Requirement, sorted(set(texts)))
    return [
        f"{requirement.name} {versions[name]}"
        for requirement in requirements
        if (name := canonicalize_name(requirement.name)) in versions
        and not requirement.specifier.contains(versions[name], prereleases=True)
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(PROGRAMS)}; default: all")
    parser.add_argument("--before", type=datetime.date.fromisoformat, default=datetime.date(2025, 12, 1))
    given = parser.parse_args()
    table = [
        ["program", "present release", "beside it", "release then", "beside it", "libraries of then to raise"]
    ]
    for name in given.names or PROGRAMS:
        packages = PROGRAMS[name]
        present, then = resolve(packages), resolve(packages, given.before)
        table.append(
            [
                name,
                present[packages[0]],
                attempt(pin(packages, present)),
                then[packages[0]],
                attempt(pin(packages, then)),
                ", ".join(too_old(then)) or "none",
            ]
        )
        print(*table[-1], sep=" | ", flush=True)  # noqa: T201
    show(f"before {given.before}", table)


if __name__ == "__main__":
    main()
