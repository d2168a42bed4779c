"""Find the worst words in prose (comments, docstrings, strings, documentation) and in the names that code defines.

python -m tests.plain_english            # a count for each folder
python -m tests.plain_english --strict   # every line, and exit code 1 if there is one
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORDS = re.compile(
    r"\b(nobody|whoever|somebody|anew|(?:is|are|was|were|be) told|worked off|holds? the (?:event )?loop)\b",
    re.IGNORECASE,
)
NAMES = re.compile(r"_(nobody|whoever|somebody|anybody|everybody|anew|told|holding_others)_")
"""Words that no name has. A name is compared in lower case, with an underscore on both sides."""
BARE_NAMES = {"each", "found"}
"""Names that say nothing of what a variable holds, or of what a function does."""
FOLDERS = ("aioinformer", "pytest_aioinformer", "tests", "examples", "benchmarks", "docs")
PAGES = ("README.md", "CHANGELOG.md")
LISTS = ("plain_english.py", "test_plain_english.py")
"""The files of the tests that list the words."""


def prose_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines of a file that people read."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        yield from enumerate(text.splitlines(), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            for offset, line in enumerate(token.string.splitlines()):
                yield token.start[0] + offset, line


def names_in(source: str) -> Iterator[tuple[int, str]]:
    """Yield the names that source code defines, with their lines: of functions, classes, arguments and variables."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name
            case ast.arg(arg=name):
                yield node.lineno, name
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                yield node.lineno, name
            case ast.alias(asname=str(name)):
                yield node.lineno, name


def is_bad_name(name: str) -> bool:
    """Return whether a name has one of the words, or says nothing."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_")
    return words in BARE_NAMES or NAMES.search(f"_{words}_") is not None


def findings(root: Path = ROOT) -> Iterator[tuple[Path, int, str]]:
    """Yield each line of prose with one of the words, and each name of that kind."""
    paths = [
        path for folder in FOLDERS for ending in ("py", "md") for path in (root / folder).rglob(f"*.{ending}")
    ]
    for path in sorted((*paths, *(root / page for page in PAGES if (root / page).exists()))):
        if path not in [root / "tests" / name for name in LISTS]:
            for number, line in prose_of(path):
                if WORDS.search(line):
                    yield path.relative_to(root), number, line.strip()
            if path.suffix == ".py":
                for number, name in names_in(path.read_text(encoding="utf-8")):
                    if is_bad_name(name):
                        yield path.relative_to(root), number, f"the name {name}"


def main(arguments: list[str]) -> int:
    lines = list(findings())
    if "--strict" in arguments:
        for path, number, line in lines:
            print(f"{path}:{number}: {line}")  # noqa: T201
        return 1 if lines else 0
    counts = Counter("/".join(path.parts[:2]) for path, _, _ in lines)
    for folder, count in sorted(counts.items()):
        print(f"{count:5} {folder}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
