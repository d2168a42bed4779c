"""The command line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_it_shows_what_the_operator_does() -> None:
    command = [sys.executable, "-W", "error", "-m", "examples.storage_operator"]
    root = Path(__file__).parents[3]
    shown = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60, check=True)
    lines = shown.stdout.splitlines()
    assert lines[:5] == [
        "cave deep: Protected, mounted by 2 pods",
        "kubectl delete cave deep",
        "cave deep: Releasing, mounted by 2 pods",
        "kubectl delete backend web",
        "cave deep: gone",
    ]
    events = {line.partition(":")[0] for line in lines[5:]}
    assert events >= {"Cave Protected", "Cave StillMounted", "Cave Released", "Backend Mounted"}
    assert shown.stderr == ""
