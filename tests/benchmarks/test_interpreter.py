"""interpreter.py: the Python that benchmarks run with."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.interpreter import candidates, fastest, seconds_of


def script(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(("#!/bin/sh", *lines)) + "\n")
    path.chmod(0o755)
    return path


def write_interpreter(path: Path, seconds: float) -> Path:
    """A script that prints this Python version and takes this many seconds."""
    major, minor = sys.version_info[:2]
    return script(path, f"echo {seconds} {major} {minor} {path}")


def test_each_file_of_the_path_is_a_candidate_once(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    python = script(tmp_path / "a" / "python3")
    (tmp_path / "a" / f"python3.{sys.version_info.minor}").symlink_to(python)
    (tmp_path / "b").symlink_to(tmp_path / "a")
    paths = candidates(f"{tmp_path / 'a'}:{tmp_path / 'b'}:{tmp_path / 'missing'}")
    assert paths == [python]


def test_python_is_timed_and_reports_its_path() -> None:
    timed = seconds_of(Path(sys.executable))
    assert timed is not None
    assert Path(timed[0]).samefile(sys.executable)
    assert timed[1] > 0


def test_other_programs_and_versions_are_skipped(tmp_path: Path) -> None:
    assert seconds_of(tmp_path / "missing") is None
    assert seconds_of(script(tmp_path / "broken", "exit 1")) is None
    assert seconds_of(script(tmp_path / "old", "echo 0.001 2 7 /old")) is None
    assert seconds_of(script(tmp_path / "silent")) is None


def test_fastest_python_is_chosen(tmp_path: Path) -> None:
    slow, fast = write_interpreter(tmp_path / "slow", 0.2), write_interpreter(tmp_path / "fast", 0.1)
    broken = script(tmp_path / "broken", "exit 1")
    assert fastest([slow, broken, fast]) == str(fast)


def test_running_python_is_chosen_if_no_other_answers(tmp_path: Path) -> None:
    assert fastest([tmp_path / "missing"]) == sys.executable
