"""``aioinformer migrate`` as a program: what it says when there is nothing that it could migrate."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.e2e.processes import started_program

pytestmark = pytest.mark.asyncio(loop_factories=["asyncio"])  # the command has its own

OPERATOR = 'from aioinformer.operator import Operator\n\noperator = Operator("keeper")\n'


async def test_an_operator_without_definitions_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "keeper.py").write_text(OPERATOR)
    environment = {"PYTHONPATH": os.pathsep.join((str(tmp_path), str(Path(__file__).parents[2])))}
    command = (sys.executable, "-m", "aioinformer", "migrate", "keeper", "--server", "http://127.0.0.1:1")
    async with started_program(*command, environment=environment) as program:
        ended = await program.end()
    assert (ended.code, ended.output) == (1, "")
    assert "keeper has no CustomResource classes of its own" in ended.errors
    assert "--definition websites.example.com" in ended.errors
