"""Every corner of client-go's behaviour has a test that names it, and a row in docs/corners.md."""

from __future__ import annotations

import re

import pytest

from .docs_tables import (
    CORNERS_PAGE,
    DOCS,
    EXPECTED,
    NOT_ABOUT_US,
    WEAK_POINTS,
    corners_page,
    find_tests_of_corners,
)

VERDICTS = ("as upstream", "differs")

ROWS = re.findall(r"^\| ([CW]\d+) \| (.+?) \| ([a-z ]+) \|$", CORNERS_PAGE.read_text(), re.MULTILINE)
DIFFERENCES = (DOCS / "differences-from-client-go.md").read_text()


def test_every_corner_has_a_test() -> None:
    by_corner = find_tests_of_corners()
    assert [corner for corner in EXPECTED if corner not in by_corner] == []


def test_excluded_weak_points_have_no_test_and_the_page_says_so() -> None:
    assert not NOT_ABOUT_US.keys() & find_tests_of_corners().keys()
    assert NOT_ABOUT_US.keys() <= set(WEAK_POINTS)
    text = CORNERS_PAGE.read_text()
    assert [point for point in NOT_ABOUT_US if f"{point} does not apply" not in text] == []


def test_page_lists_every_corner_once_in_order() -> None:
    assert [corner for corner, _, _ in ROWS] == EXPECTED
    assert {verdict for _, _, verdict in ROWS} == set(VERDICTS)


def test_table_of_tests_is_current() -> None:
    text = CORNERS_PAGE.read_text()
    assert corners_page(text) == text, "run `make docs-tables`"


@pytest.mark.parametrize("corner", [corner for corner, _, verdict in ROWS if verdict == "differs"])
def test_differing_corner_is_named_in_the_differences(corner: str) -> None:
    assert re.search(rf"\b{corner}\b", DIFFERENCES)
