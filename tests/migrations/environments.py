"""A virtual environment for each program, with the versions that its requirements pin."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".cache" / "migrations"
"""Where the environments are."""


def environment_of(requirements: Path) -> Path:
    """Return the Python of an environment with these requirements and with this checkout of aioinformer.

    It is made where it is missing, and made again when the requirements or those of aioinformer change.
    """
    project = repr(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]).encode()
    digest = hashlib.sha256(requirements.read_bytes() + project + sys.version.encode()).hexdigest()[:12]
    folder = FOLDER / f"{requirements.parent.name}-{digest}"
    python, finished = folder / "bin" / "python", folder / "finished"
    if not finished.exists():
        print(f"{requirements.parent.name}: installing {requirements.name} in a new environment", flush=True)  # noqa: T201
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        options = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([str(python), *options, "-r", str(requirements), "-e", str(ROOT)], check=True)
        finished.touch()
    return python


def variables() -> dict[str, str]:
    """Return environment variables by which a program finds this checkout first."""
    return {"PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)}
