"""Loading MODULE:OBJECT."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from aioinformer import ConfigError
from aioinformer.cli.loading import load
from aioinformer.operator import Operator


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    return tmp_path


OPERATOR = """
from aioinformer.operator import Operator
operator = Operator("tests")
other = Operator("other")
number = 3
def make(client): ...
class Maker: ...
class Names:
    inner = other
"""


def test_operators_and_factories(folder: Path) -> None:
    (folder / "package").mkdir()
    (folder / "package" / "main.py").write_text(OPERATOR)
    for target, name in (
        ("package.main", "tests"),
        ("package.main:operator", "tests"),
        ("package.main:Names.inner", "other"),
    ):
        loaded = load(target)
        assert isinstance(loaded, Operator)
        assert loaded.name == name
    assert callable(load("package.main:make"))


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("", "'' is no module: write MODULE:OBJECT, such as websites.main:operator"),
        ("main:", "'main:' names no object: write MODULE:OBJECT, such as main:operator"),
        ("./main.py", "'./main.py' is no module: .*; here main:operator"),
        ("package/main.py:other", "; here package.main:other"),
        ("package.main", "there is no module 'package' in .*; run this in the folder that has package"),
        ("main.sub", "there is no module 'main.sub'"),
        ("main:operatr", "the module main has no 'operatr'; its operators: main:operator, main:other"),
        ("main:number", "main:number is a int, neither an Operator nor a function that returns a Manager"),
        ("main:Maker", "main:Maker is a class"),
    ],
)
def test_a_name_that_means_nothing_says_what_to_write(folder: Path, target: str, message: str) -> None:
    (folder / "main.py").write_text(OPERATOR)
    with pytest.raises(ConfigError, match=message):
        load(target)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "def f():\n    return 1 / 0\nf()\n",
            r"line 2 \(return 1 / 0\): ZeroDivisionError: division by zero",
        ),
        ("x = (\n", r"line 1: SyntaxError: '\(' was never closed"),
        (
            "import nothing_here\n",
            r"line 1 \(import nothing_here\): ModuleNotFoundError: No module named 'noth",
        ),
        ("import json\njson.loads('x')\n", r"line 2 \(json.loads\('x'\)\): JSONDecodeError: Expecting value"),
        ("import sys\nsys.exit(3)\n", r"line 2 \(sys.exit\(3\)\): SystemExit: 3"),
        (
            "from aioinformer.operator import Operator\noperator = Operator('No')\n",
            r"line 2 \(operator = Operator\('No'\)\): ConfigError: Operator\('No'\): name must be",
        ),
    ],
)
def test_a_module_that_fails_is_named_with_its_own_last_line(folder: Path, source: str, message: str) -> None:
    (folder / "failing.py").write_text(source)
    with pytest.raises(ConfigError, match=rf"^failing cannot be imported: failing\.py, {message}"):
        load("failing")


SITES = """
from aioinformer.operator import CustomResource, Operator
class Site(CustomResource, group="example.com", version="v1"):
    spec: {first}
class Page(CustomResource, group="example.com", version="v1", kind="Site"):
    spec: int
operator = Operator("tests")
operator.controller(Site)(lambda request: None)
operator.controller(Page)(lambda request: None)
"""


@pytest.mark.parametrize(
    ("first", "message"),
    [
        ("tuple[int, str]", r"line 8 \(.*\): ConfigError: tests: the controller <lambda>: Site: spec: a schema has "),
        ("int", r"line 9 .*: the controller <lambda> has 2 mistakes:\s+- failing\.Site and failing\.Page are both "),
    ],
)  # fmt: skip
def test_classes_that_make_no_definition_are_named(folder: Path, first: str, message: str) -> None:
    (folder / "failing.py").write_text(SITES.format(first=first))
    with pytest.raises(ConfigError, match=rf"^failing cannot be imported: failing\.py, {message}"):
        load("failing")
