"""The words that prose and names do without."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plain_english import findings


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("for each in range(3):\n    pass", "each"),
        ("numbers = [each for each in range(3)]", "each"),
        ("found = 1", "found"),
        ("(number, found), *_ = (1, 2), 3", "found"),
        ("if (found := 1):\n    pass", "found"),
        ("def read(found):\n    pass", "found"),
        ("first = min((1, 2), key=lambda each: -each)", "each"),
        ("class Log:\n    def __init__(self):\n        self._told_at = 0", "_told_at"),
        ("async def wake_somebody():\n    pass", "wake_somebody"),
        ("class NobodyWaits:\n    pass", "NobodyWaits"),
        ("import os as whoever", "whoever"),
        ("try:\n    pass\nexcept OSError as found:\n    pass", "found"),
        ("match 1:\n    case found:\n        pass", "found"),
    ],
)
def test_a_name_without_meaning_is_a_finding(tmp_path: Path, source: str, name: str) -> None:
    folder = tmp_path / "aioinformer"
    folder.mkdir()
    (folder / "planted.py").write_text(source)
    names = [line for path, _, line in findings(tmp_path) if path == Path("aioinformer/planted.py")]
    assert names == [f"the name {name}"]


@pytest.mark.parametrize("source", ["foundation = breaches = 1", "def teach(untold_story):\n    pass"])
def test_other_names_are_none(tmp_path: Path, source: str) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "fine.py").write_text(source)
    assert list(findings(tmp_path)) == []


def test_a_word_in_a_docstring_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.md").write_text("Fine.\nWhoever waits is told.\n")
    assert list(findings(tmp_path)) == [(Path("docs/page.md"), 2, "Whoever waits is told.")]


def test_the_project_has_none() -> None:
    assert list(findings()) == []
