"""A program under test is started again, and what each of its processes printed counts."""

from __future__ import annotations

import sys

import pytest

from tests.migrations import subjects
from tests.migrations.subjects import subject

PROGRAM = """
import json, os, sys, time
started = os.path.exists(sys.argv[1])
while time.process_time() < 0.05:  # the kernel reports CPU time in steps of 0.01 s
    pass
open(sys.argv[1], "w").close()
print("plain words")
print(json.dumps({"name": "b", "version": None if started else "1"}))
print(json.dumps({"name": "a", "version": "2" if started else "1"}))
if started:
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def no_restart_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subjects, "RESTART_PAUSE", 0.0)


async def test_program_that_ends_is_started_again_and_its_reports_remain(tmp_path: object) -> None:
    command = [sys.executable, "-c", PROGRAM, f"{tmp_path}/started"]
    async with subject(command, {}) as running:
        assert await running.knows({"a": "2"}, 20.0)
        assert running.starts == 2
        assert running.reports == {("a", "1"), ("b", "1"), ("a", "2"), ("b", None)}
        assert list(running.log) == ["plain words"] * 2
        assert running.cpu() >= 0.04
        assert running.memory > 0.0


async def test_restart_starts_a_process_that_knows_nothing_yet(tmp_path: object) -> None:
    command = [sys.executable, "-c", PROGRAM, f"{tmp_path}/started"]
    async with subject(command, {}) as running:
        assert await running.knows({"a": "2"}, 20.0)
        await running.restart()
        assert running.versions == {}
        assert await running.knows({"a": "2"}, 20.0)
        assert running.starts == 3
