"""The generated tables of the docs. ``make docs-tables`` writes them.

- docs/corners.md ends with the tests of each corner. A test belongs to the corners that its name, its docstring or its
  class names: ``test_slow_handler_does_not_delay_others_c55``, or "C55" in a docstring.
- docs/api.md has the first line of each public name's docstring.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import aioinformer
from aioinformer import (
    blocking,
    cache,
    events,
    leaderelection,
    metrics,
    operator,
    resources,
    testing,
    tracing,
    typed,
    web,
    workqueue,
)

TESTS = Path(__file__).parent
DOCS = TESTS.parent / "docs"
CORNERS_PAGE = DOCS / "corners.md"
API_PAGE = DOCS / "api.md"

ROOMS = [typed, operator, workqueue, resources, leaderelection, events, blocking, web]
PUBLIC = [aioinformer, cache, metrics, *ROOMS, tracing, testing]

CORNERS = [f"C{number}" for number in range(1, 92)]
WEAK_POINTS = [f"W{number}" for number in range(1, 28)]

NOT_ABOUT_US = {
    "W12": "readers that starve the writer: one event loop runs both, so there are no locks",
}
"""Weak points of upstream that cannot exist here, each with the reason."""

EXPECTED = [*CORNERS, *(point for point in WEAK_POINTS if point not in NOT_ABOUT_US)]
"""The corners that need a test and a row in docs/corners.md."""

_IN_NAME = re.compile(r"(?<![a-z0-9])[cw]\d+(?![a-z0-9])")
_IN_CLASS_NAME = re.compile(r"(?<![A-Za-z0-9])Test([CW]\d+)")
_IN_TEXT = re.compile(r"\b[CW]\d+\b")
_TABLE = re.compile(r"(?<=<!-- make docs-tables -->\n).*?(?=<!-- end -->)", re.DOTALL)


def find_tests_of_corners() -> dict[str, dict[str, list[str]]]:
    """Return, for each corner, the tests that name it, by file."""
    by_corner: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted(TESTS.rglob("test_*.py")):
        file = f"tests/{path.relative_to(TESTS).as_posix()}"
        for test, corners in _tests_in(ast.parse(path.read_text()), set()):
            for corner in corners:
                by_corner[corner][file].append(test)
    return {corner: dict(files) for corner, files in by_corner.items()}


def _tests_in(node: ast.AST, outer: set[str]) -> Iterator[tuple[str, set[str]]]:
    """Yield each test below a node, with the corners that it or its classes name."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            in_name = set(_IN_CLASS_NAME.findall(child.name))
            yield from _tests_in(child, outer | in_name | _corners_of_docstring(child))
        elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) and child.name.startswith("test_"):
            in_name = {number.upper() for number in _IN_NAME.findall(child.name)}
            yield child.name, outer | in_name | _corners_of_docstring(child)


def _corners_of_docstring(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    return set(_IN_TEXT.findall(ast.get_docstring(node) or ""))


def corners_page(text: str) -> str:
    """Return docs/corners.md with a current table of tests."""
    by_corner = find_tests_of_corners()
    rows = [
        "| | Tests |",
        "| --- | --- |",
        *(f"| {corner} | {_cell(by_corner.get(corner, {}))} |" for corner in EXPECTED),
    ]
    table = "\n".join(rows)
    return _TABLE.sub(lambda _: f"\n{table}\n\n", text)


def _cell(files: dict[str, list[str]]) -> str:
    return "; ".join(
        f"`{file}`: " + ", ".join(f"`{test}`" for test in sorted(set(tests)))
        for file, tests in sorted(files.items())
    )


def api_page(text: str) -> str:
    """Return docs/api.md with current first lines of docstrings; it adds and removes no names."""
    lines: list[str] = []
    module: ModuleType | None = None
    modules = {module.__name__: module for module in PUBLIC}
    for line in text.splitlines():
        if heading := re.fullmatch(r"## `([\w.]+)`", line):
            module = modules[heading[1]]
        row = re.fullmatch(r"\| `(\w+)` \| (.+) \|", line)
        if row and module is not None:
            first = first_paragraph(getattr(module, row[1], None)) or row[2]
            line = f"| `{row[1]}` | {first} |"
        lines.append(line)
    return "\n".join(lines) + "\n"


def first_paragraph(value: Any) -> str:
    """Return the first paragraph of an object's own docstring, as a table has it; ``""`` for a constant."""
    if not inspect.isclass(value) and not inspect.isroutine(inspect.unwrap(value)):
        return ""
    return (inspect.getdoc(value) or "").partition("\n\n")[0].replace("``", "`").replace("|", r"\|")


def main() -> None:
    for page, render in ((CORNERS_PAGE, corners_page), (API_PAGE, api_page)):
        page.write_text(render(page.read_text()))


if __name__ == "__main__":
    main()
