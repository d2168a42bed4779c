"""The writer of YAML: texts stay texts for every reader, and nothing else writes YAML."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from aioinformer._core.yaml_text import dump_yaml

ROOT = Path(__file__).parents[2]
WRITERS = {"aioinformer/_core/yaml_text.py", "aioinformer/testing/http/yaml.py"}
"""For users and kubectl; and the embedded server's answers, which look as the real server's."""


@pytest.mark.parametrize(
    "text", ["1e3", "0o7", "08", "y", "N", "on", "~", "null", "12:30", "=", "", "a\rb", " a\nb"]
)
def test_texts_that_readers_may_take_for_something_else_are_quoted(text: str) -> None:
    written = dump_yaml([{"k": text}])
    assert written.startswith('k: "')
    assert yaml.safe_load(written) == {"k": text}


def test_lines_are_a_block_and_short_lists_one_line() -> None:
    assert dump_yaml([{"a": "one\n  two\n", "b": ["x", "y"]}]) == 'a: |\n  one\n    two\nb: [x, "y"]\n'


def test_nothing_else_writes_yaml() -> None:
    dumps = re.compile(r"\byaml\.\w*dump\w*\(|\bSafeDumper\b")
    writers = [
        str(path.relative_to(ROOT))
        for folder in ("aioinformer", "pytest_aioinformer", "examples", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
        if dumps.search(path.read_text())
    ]
    assert set(writers) == WRITERS
