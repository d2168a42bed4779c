"""The package uses no private names of other libraries."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "aioinformer"
LIBRARIES = {"aiohttp", "anyio", "asyncio", "kubernetes", "kubernetes_asyncio", "msgspec", "uvloop"}
EXCEPTIONS = ("testing/simulation/",)
"""The simulation is an event loop."""


def is_private(name: str) -> bool:
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


class _PrivateNames(ast.NodeVisitor):
    """Finds imports of private names, private attributes of imported names, and private attributes that no class of the
    package defines.
    """

    def __init__(self, own: set[str]) -> None:
        self._own = own
        self._imported: set[str] = set()
        self.uses: list[tuple[int, str]] = []

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name.partition(".")[0] in LIBRARIES:
                self._imported.add((alias.asname or alias.name).partition(".")[0])
                if any(map(is_private, alias.name.split("."))):
                    self.uses.append((node.lineno, alias.name))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        if node.level or (node.module or "").partition(".")[0] not in LIBRARIES:
            return
        for name in (*(node.module or "").split("."), *(alias.name for alias in node.names)):
            if is_private(name):
                self.uses.append((node.lineno, name))
        self._imported.update(alias.asname or alias.name for alias in node.names)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if is_private(node.attr):
            root: ast.expr = node.value
            while isinstance(root, ast.Attribute):
                root = root.value
            is_imported = isinstance(root, ast.Name) and root.id in self._imported
            if is_imported or node.attr not in self._own:
                self.uses.append((node.lineno, ast.unparse(node)))
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in ("getattr", "setattr", "hasattr", "delattr"):
            name = node.args[1] if len(node.args) > 1 else None
            text = name.value if isinstance(name, ast.Constant) else None
            if isinstance(text, str) and is_private(text) and text not in self._own:
                self.uses.append((node.lineno, ast.unparse(node)))
        self.generic_visit(node)


def private_names_of(source: str, own: set[str]) -> list[tuple[int, str]]:
    visitor = _PrivateNames(own)
    visitor.visit(ast.parse(source))
    return visitor.uses


def names_defined_in(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a module defines itself."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value  # __slots__


def sources() -> list[Path]:
    return [
        path
        for path in sorted(PACKAGE.rglob("*.py"))
        if not path.relative_to(PACKAGE).as_posix().startswith(EXCEPTIONS)
    ]


OWN = {
    name for path in sources() for name in names_defined_in(ast.parse(path.read_text())) if is_private(name)
}
OWN |= {"_asdict", "_exit", "_replace"}  # documented as public


@pytest.mark.parametrize("path", sources(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_no_private_name_of_a_library(path: Path) -> None:
    assert private_names_of(path.read_text(), OWN) == []


@pytest.mark.parametrize(
    "source",
    [
        "from aiohttp.client_proto import _x",
        "import asyncio\nasyncio.tasks._enter_task()",
        "from asyncio import tasks\ntasks._enter_task()",
        "def f(connector):\n    return connector._ssl",
        "getattr(response, '_payload')",
    ],
)
def test_private_names_are_found(source: str) -> None:
    assert private_names_of(source, {"_mine"}) != []
