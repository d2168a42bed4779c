"""Run programs in the folder of a new project."""

from __future__ import annotations

import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from tests.e2e.processes import Ended, Running, started_program

ROOT = Path(__file__).parents[2]


def program(folder: Path, *command: str, **environment: str) -> AbstractAsyncContextManager[Running]:
    own = {"COLUMNS": "200", "NO_COLOR": "1", "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    return started_program("env", "-C", str(folder), *command, environment={**own, **environment})


async def run_to_end(folder: Path, *command: str, **environment: str) -> Ended:
    async with program(folder, *command, **environment) as started:
        return await started.end()


async def make(folder: Path, *args: str, **environment: str) -> Ended:
    done = await run_to_end(folder, "make", f"PYTHON={sys.executable}", *args, **environment)
    assert done.code == 0, done.output + done.errors
    return done
