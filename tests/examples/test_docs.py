"""What the docs say is so: their code runs, and what they name exists.

A block that begins with three backticks and ``python runnable`` runs as the body of a coroutine, asyncio imported.
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import inspect
import re
from collections.abc import Coroutine, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

from aioinformer import (
    Phase,
    ReflectorOptions,
    errors,
    events,
    leaderelection,
    operator,
    resources,
    workqueue,
)
from aioinformer.testing import Faults

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").glob("*.md"))
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))
ROOMS = [operator, workqueue, resources, leaderelection, events]


def runnable() -> list[Any]:
    blocks = []
    for path in DOCS:
        text = path.read_text()
        for found in re.finditer(r"^```python runnable\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            line = text.count("\n", 0, found.start(1))
            blocks.append(pytest.param("\n" * line + found[1], path, id=f"{path.name}:{line}"))
    return blocks


@pytest.mark.parametrize(("source", "path"), runnable())
async def test_code_runs(source: str, path: Path) -> None:
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code: CodeType = compile(source, path, "exec", flags, dont_inherit=True)
    names = {"asyncio": asyncio, "__name__": path.stem, "__builtins__": builtins}
    result = FunctionType(code, names)()
    if inspect.isawaitable(result):
        coroutine: Coroutine[Any, Any, None] = result  # type: ignore[assignment]
        await coroutine


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_tests_and_files_that_are_named_exist(path: Path) -> None:
    text = path.read_text()
    for file, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text):
        assert re.search(rf"def {name}\(", (ROOT / file).read_text()), f"{file}::{name}"
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", text):
        assert (path.parent / target).exists(), target
    if path.name == "architecture.md":
        for file in re.findall(r"`([\w/]+/(?:\w+\.py)?)`", text):
            assert (ROOT / "aioinformer" / file).exists() or (ROOT / file).exists(), file


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.__name__)
def test_every_public_name_has_a_page_and_an_example(room: ModuleType) -> None:
    spans = re.compile(r"```.*?```|`[^`]+`", re.DOTALL)
    code = "\n".join(found for path in DOCS for found in spans.findall(path.read_text()))
    assert [name for name in room.__all__ if not re.search(rf"\b{name}\b", code)] == []
    used = {name for path in EXAMPLES for name in _names(path)}
    constants = {name for name in room.__all__ if name.isupper()}
    assert [name for name in room.__all__ if name not in used | constants] == []


def _names(path: Path) -> Iterator[str]:
    """What a program speaks of; to import something is not enough."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Name):
            yield node.id


def test_every_error_and_phase_is_explained() -> None:
    text = (ROOT / "docs" / "troubleshooting.md").read_text()
    assert [name for name in errors.__all__ if f"**{name}**" not in text and name != "AioInformerError"] == []
    assert [phase for phase in Phase if f"| `{phase}` |" not in text] == []


def test_every_option_is_explained() -> None:
    text = (ROOT / "docs" / "tuning.md").read_text()
    assert [name for name in ReflectorOptions.__annotations__ if f"| `{name}` |" not in text] == []


def test_every_fault_is_explained() -> None:
    text = (ROOT / "docs" / "testing-your-operator.md").read_text()
    for_tests = list(vars(Faults))
    for_tests = for_tests[: for_tests.index("failure_for")]  # the rest is for the server
    assert [name for name in for_tests if name[0] != "_" and f"{name}(" not in text] == []
