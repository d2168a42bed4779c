"""The command line."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.processes import started_program

ROOT = Path(__file__).parents[3]


def test_it_shows_what_the_operator_does() -> None:
    command = [sys.executable, "-W", "error", "-m", "examples.storage_operator"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
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


@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_aioinformer_runs_it() -> None:
    command = [sys.executable, "-m", "aioinformer", "run", "examples.storage_operator:operator", "--dev"]
    ports = ["--metrics-port=0", "--probe-port=0"]
    async with started_program("env", "-C", str(ROOT), *command, *ports) as program:
        while "starts its controllers" not in (line := await program.errors.next()):
            assert "WARNING" not in line
        program.signal(signal.SIGTERM)
        ended = await program.end()
    assert (ended.code, "ERROR" in ended.errors) == (0, False)
