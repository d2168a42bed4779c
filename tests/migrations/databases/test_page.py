"""docs/from-kopf.md agrees with the operators that it compares."""

from __future__ import annotations

from .lines import PAGE, SIDES, count, page


def test_the_page_has_the_lines_of_the_files() -> None:
    text = PAGE.read_text()
    assert page(text) == text, "python -m tests.migrations.databases.lines writes it"


def test_both_operators_have_the_same_parts() -> None:
    kopf, ours = (set(count(*names)) - {"main"} for names in SIDES.values())
    assert kopf == ours
