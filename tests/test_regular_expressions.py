"""The package's regular expressions work in every Python 3.11.

CPython before 3.11.5 matches possessive quantifiers wrongly (gh-106052). Debian 12 has 3.11.2.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "aioinformer"
POSSESSIVE = re.compile(r"[\])}.\w\\][*+?}]\+|\(\?>")


def expressions_of(source: str) -> list[str]:
    """Return the texts in a module that look like regular expressions, without docstrings."""
    tree = ast.parse(source)
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in prose and isinstance(node.value, str | bytes):
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            if re.search(r"\[\^|\(\?:", text):
                texts.append(text)
    return texts


@pytest.mark.parametrize(
    "path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE))
)
def test_no_possessive_quantifiers(path: Path) -> None:
    assert [text for text in expressions_of(path.read_text()) if POSSESSIVE.search(text)] == []


@pytest.mark.parametrize("text", [r'"[^"\\]*+"', r"(?:ab)++", r"(?>[^a]*)b", r"(?:a){2}+"])
def test_possessive_quantifiers_are_found(text: str) -> None:
    assert POSSESSIVE.search(text)
    assert expressions_of(f"import re\nre.compile({text!r})") == [text]
