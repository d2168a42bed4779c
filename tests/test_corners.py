"""Every corner of client-go's behaviour is held by a test that names it, and docs/corners.md says which."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

TESTS = Path(__file__).parent
DOCS = TESTS.parent / "docs"

CORNERS = [f"C{number}" for number in range(1, 92)]
WEAK_POINTS = [f"W{number}" for number in range(1, 28)]

NOT_ABOUT_US = {
    "W12": "readers that starve the writer: there are no locks, as one event loop runs both",
}
"""Weak points of upstream that nothing here could have, each with the reason."""

VERDICTS = ("as upstream", "differs")

_IN_NAME = re.compile(r"(?<![a-z0-9])[cw]\d+(?![a-z0-9])")
_IN_TEXT = re.compile(r"\b[CW]\d+\b")


def named_tests() -> Iterator[tuple[str, set[str]]]:
    """``tests/file.py::test``, and the corners that its name, its docstring or its class name."""
    for path in sorted(TESTS.rglob("test_*.py")):
        yield from _tests_in(
            ast.parse(path.read_text()), f"tests/{path.relative_to(TESTS).as_posix()}", set()
        )


def _tests_in(node: ast.AST, file: str, outer: set[str]) -> Iterator[tuple[str, set[str]]]:
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.ClassDef):
            in_name = {number.upper() for number in re.findall(r"(?<![A-Za-z0-9])Test([CW]\d+)", each.name)}
            yield from _tests_in(each, file, in_name | set(_IN_TEXT.findall(ast.get_docstring(each) or "")))
        elif isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)) and each.name.startswith("test_"):
            in_name = {number.upper() for number in _IN_NAME.findall(each.name)}
            in_text = set(_IN_TEXT.findall(ast.get_docstring(each) or ""))
            yield f"{file}::{each.name}", outer | in_name | in_text


@pytest.fixture(scope="module")
def holding() -> dict[str, set[str]]:
    """The tests that name each corner."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for test, corners in named_tests():
        for corner in corners:
            found[corner].add(test)
    return found


class Row(NamedTuple):
    """A row of docs/corners.md."""

    corner: str
    says: str
    tests: list[str]
    verdict: str


def rows() -> list[Row]:
    found = re.findall(
        r"^\| ([CW]\d+) \| (.*?) \| (.*?) \| (.*?) \|$", (DOCS / "corners.md").read_text(), re.MULTILINE
    )
    return [
        Row(corner, says, re.findall(r"`([^`]+)`", cited), verdict) for corner, says, cited, verdict in found
    ]


def test_no_corner_is_without_a_test(holding: dict[str, set[str]]) -> None:
    wanted = [*CORNERS, *(point for point in WEAK_POINTS if point not in NOT_ABOUT_US)]
    assert [corner for corner in wanted if not holding.get(corner)] == []


def test_what_is_not_about_us_has_none(holding: dict[str, set[str]]) -> None:
    assert not NOT_ABOUT_US.keys() & holding.keys()
    assert NOT_ABOUT_US.keys() <= set(WEAK_POINTS)


def test_the_page_has_every_corner_once_in_order() -> None:
    expected = [*CORNERS, *(point for point in WEAK_POINTS if point not in NOT_ABOUT_US)]
    assert [row.corner for row in rows()] == expected
    assert {row.verdict for row in rows()} == set(VERDICTS)
    assert all(row.says for row in rows())
    text = (DOCS / "corners.md").read_text()
    assert [point for point in NOT_ABOUT_US if f"{point} is not about us" not in text] == []


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.corner)
def test_the_page_cites_tests_that_name_the_corner(row: Row, holding: dict[str, set[str]]) -> None:
    assert row.tests
    assert set(row.tests) <= holding[row.corner]


@pytest.mark.parametrize(
    "row", [row for row in rows() if row.verdict == "differs"], ids=lambda row: row.corner
)
def test_where_we_differ_the_difference_is_explained_with_the_same_test(row: Row) -> None:
    explained = (DOCS / "differences-from-client-go.md").read_text()
    assert any(f"`{test}`" in explained for test in row.tests)
