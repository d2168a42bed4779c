"""Code in the docs runs, and every name and file in them exists.

A block that begins with three backticks and ``python runnable`` runs as the body of a coroutine.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
from collections.abc import Coroutine, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, get_type_hints

import pytest

from aioinformer import errors
from aioinformer.cache import Phase, ReflectorOptions
from aioinformer.testing import Faults

from ..docs_tables import API_PAGE as REFERENCE
from ..docs_tables import PUBLIC, ROOMS, first_paragraph

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").glob("*.md"))
READMES = [ROOT / "README.md", *sorted((ROOT / "examples").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))


def runnable() -> list[Any]:
    blocks = []
    for path in DOCS:
        text = path.read_text()
        for match in re.finditer(r"^```python runnable\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            line = text.count("\n", 0, match.start(1))
            blocks.append(pytest.param("\n" * line + match[1], path, id=f"{path.name}:{line}"))
    return blocks


@pytest.mark.parametrize(("source", "path"), runnable())
async def test_code_runs(source: str, path: Path) -> None:
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code: CodeType = compile(source, path, "exec", flags, dont_inherit=True)
    names = {"__name__": path.stem, "__builtins__": builtins}
    result = FunctionType(code, names)()
    if inspect.isawaitable(result):
        coroutine: Coroutine[Any, Any, None] = result  # type: ignore[assignment]
        await coroutine


@pytest.mark.parametrize("path", [*DOCS, *READMES], ids=lambda path: str(path.relative_to(ROOT)))
def test_linked_files_and_headings_exist(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        if not target.startswith("https://"):
            file, _, heading = target.partition("#")
            linked = path.parent / file if file else path
            assert linked.exists(), target
            assert not heading or heading in headings(linked), target


def headings(path: Path) -> set[str]:
    """Return what links to the headings of a page end with, as GitHub makes it of their text."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_files_and_functions_in_internals_exist() -> None:
    text = (ROOT / "docs" / "internals.md").read_text()
    for file, member in re.findall(r"`([\w/]+/(?:\w+\.py)?)(?:::([\w.]+))?`", text):
        path = next((root / file for root in (ROOT / "aioinformer", ROOT) if (root / file).exists()), None)
        assert path is not None, file
        for name in member.split(".") if member else ():
            assert re.search(rf"(def|class) {name}\b|^\s*{name}\b.*[:=]", path.read_text(), re.MULTILINE), (
                f"{file}::{member}"
            )


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_prose_names_no_tests(path: Path) -> None:
    prose = re.sub(r"<!-- make docs-tables -->.*?<!-- end -->", "", path.read_text(), flags=re.DOTALL)
    assert re.findall(r"tests/[\w/]+\.py", prose) == []


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.__name__)
def test_every_public_name_has_a_page_and_an_example(room: ModuleType) -> None:
    spans = re.compile(r"```.*?```|`[^`]+`", re.DOTALL)
    pages = [path.read_text() for path in DOCS if path != REFERENCE]
    code = "\n".join(span for page in pages for span in spans.findall(page))
    assert [name for name in room.__all__ if not re.search(rf"\b{name}\b", code)] == []
    used = {name for path in EXAMPLES for name in _names(path)}
    constants = {name for name in room.__all__ if name.isupper()}
    assert [name for name in room.__all__ if name not in used | constants] == []


def _names(path: Path) -> Iterator[str]:
    """What a program speaks of; to import something is not enough."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Name):
            yield node.id


def test_the_reference_has_every_public_name_in_the_words_of_its_docstring() -> None:
    sections = re.split(r"^## `([\w.]+)`\n", REFERENCE.read_text(), flags=re.MULTILINE)[1:]
    said = {
        (room, name): text
        for room, section in zip(sections[::2], sections[1::2], strict=True)
        for name, text in re.findall(r"^\| `(\w+)` \| (.+) \|$", section, re.MULTILINE)
    }
    wanted: dict[tuple[str, str], str] = {}
    rooms: dict[tuple[str, int], str] = {}
    for room in PUBLIC:
        for name in set(room.__all__) - set(errors.__all__):
            value = getattr(room, name)
            if rooms.setdefault((name, id(value)), room.__name__) == room.__name__:
                listed = room.__name__, name
                wanted[listed] = first_paragraph(value) or said.get(listed, "missing")
    assert said == wanted, "run `make docs-tables`; add or remove names by hand"


@pytest.mark.parametrize("room", PUBLIC, ids=lambda room: room.__name__)
def test_every_public_class_and_method_has_a_docstring(room: ModuleType) -> None:
    classes = {name: value for name in room.__all__ if inspect.isclass(value := getattr(room, name))}
    silent = [
        f"{name}.{member}"
        for name, value in classes.items()
        for member, own in vars(value).items()
        if member[0] != "_"
        and isinstance(own, (FunctionType, classmethod, staticmethod, property))
        and not inspect.getdoc(getattr(value, member))
    ]
    assert silent == []
    assert [name for name, value in classes.items() if not value.__doc__] == []


@pytest.mark.parametrize("room", PUBLIC, ids=lambda room: room.__name__)
def test_every_public_annotation_can_be_read_at_run_time(room: ModuleType) -> None:
    unknown = set()
    for value in (getattr(room, name) for name in room.__all__):
        for member in (value, *vars(value).values()) if inspect.isclass(value) else (value,):
            if inspect.isclass(member) or inspect.isfunction(member):
                try:
                    get_type_hints(member)
                except NameError as error:
                    unknown.add(error.name)
    assert unknown <= {"Reflector"}, "which the options of one cannot import"


def test_every_error_and_phase_is_explained() -> None:
    text = (ROOT / "docs" / "troubleshooting.md").read_text()
    assert [name for name in errors.__all__ if f"**{name}**" not in text and name != "AioInformerError"] == []
    assert [phase for phase in Phase if f"| `{phase}` |" not in text] == []


def test_every_option_is_explained() -> None:
    text = (ROOT / "docs" / "informers.md").read_text()
    assert [name for name in ReflectorOptions.__annotations__ if f"| `{name}` |" not in text] == []


def test_every_fault_is_explained() -> None:
    text = (ROOT / "docs" / "testing-your-operator.md").read_text()
    for_tests = list(vars(Faults))
    for_tests = for_tests[: for_tests.index("failure_for")]  # the rest is for the server
    assert [name for name in for_tests if name[0] != "_" and f"{name}(" not in text] == []
