"""docs/comparison.md agrees with the programs that it compares."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.websites.__main__ import FILES, PAGE, PARTS, counts, page, parts


def test_the_page_has_what_the_files_have() -> None:
    text = PAGE.read_text()
    assert page(text) == text, "python -m benchmarks.websites writes it"


@pytest.mark.parametrize("framework", FILES)
def test_every_line_belongs_to_a_part_of_the_table(framework: str) -> None:
    counted = counts(framework)
    assert [part for part, lines in counted.items() if lines and part not in PARTS] == []
    assert [part for part in PARTS if not counted[part]] == []


def test_blank_lines_comments_docstrings_and_imports_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(
        '"""Doc."""\nimport os\n\n# part: reconcile\ndef f() -> None:\n    """Doc."""\n    os.sync()\n'
    )
    assert parts(file) == {"main": [""], "reconcile": ["def f() -> None:", "    os.sync()"]}
