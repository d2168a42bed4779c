"""Write the tables and excerpts of docs/comparison.md: ``python -m benchmarks.websites``.

A line ``part: NAME`` in a comment begins a part of a file. What is counted has no blank lines, comments, docstrings or
imports.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "comparison.md"
PARTS = ("types and CRD", "reconcile", "finalizer", "webhook", "rights and manifests", "main")
HEADINGS = {"webhook": "Webhook", "finalizer": "Finalizer"}
"""Parts that the page shows side by side."""
FILES = {
    "aioinformer": ("examples/website", ("py", "yaml")),
    "kopf": ("benchmarks/websites/kopf", ("py", "yaml")),
    "kube-rs": ("benchmarks/websites/kube_rs", ("rs", "yaml", "toml")),
    "controller-runtime": ("benchmarks/websites/controller_runtime", ("go", "yaml", "mod", "Makefile")),
}
GENERATED = ("zz_generated", "/generated/", "go.mod")
"""Files that a tool writes."""
LANGUAGES = {"py": "python", "rs": "rust", "go": "go"}

_PART = re.compile(r"^\s*(?:#|//)\s*part: (.+)$")
_COMMENT = re.compile(r"^\s*(?:#(?!\[)|//)(?!\s*\+)")
"""Not Rust's attributes, and not the markers of controller-gen, which are code."""


def files(framework: str) -> list[Path]:
    """Return the files of a framework's operator, without those that a tool writes."""
    folder, kinds = FILES[framework]
    sources = [file for file in sorted((ROOT / folder).rglob("*")) if file.name.endswith(kinds)]
    return [file for file in sources if not any(mark in file.as_posix() for mark in GENERATED)]


def parts(path: Path) -> dict[str, list[str]]:
    """Return the lines of each part of a file, without imports and docstrings. What comes first is ``main``."""
    by_part: dict[str, list[str]] = {}
    part = "main"
    every = path.read_text().splitlines()
    left_out = _imports(every) | (_docstrings(path) if path.suffix == ".py" else set())
    for number, line in enumerate(every, 1):
        if mark := _PART.match(line):
            part = mark[1]
        elif number not in left_out:
            by_part.setdefault(part, []).append(line)
    return by_part


def counts(framework: str) -> Counter[str]:
    """Return the number of lines of code of each part."""
    counted: Counter[str] = Counter()
    for path in files(framework):
        for part, lines in parts(path).items():
            code = [line for line in lines if is_code(line, path)]
            counted[part] += len(code)
    return counted


def is_code(line: str, path: Path) -> bool:
    """Return whether a line is neither blank nor a comment."""
    text = line.strip()
    return bool(text) and text != "---" and not _COMMENT.match(text)


def table() -> str:
    """Return the table of lines of code."""
    counted = {framework: counts(framework) for framework in FILES}
    rows = [f"| part | {' | '.join(FILES)} |", f"| --- |{' ---: |' * len(FILES)}"]
    rows += [
        f"| {part} | {' | '.join(str(by_part[part]) for by_part in counted.values())} |" for part in PARTS
    ]
    sums = (sum(by_part[part] for part in PARTS) for by_part in counted.values())
    rows.append(f"| **together** | {' | '.join(f'**{total}**' for total in sums)} |")
    return "\n".join(rows) + "\n"


def excerpts(part: str) -> str:
    """Return a part of each operator as code blocks, with the names of the files."""
    blocks = []
    for framework in FILES:
        for path in files(framework):
            language = LANGUAGES.get(path.suffix[1:])
            lines = parts(path).get(part)
            if language and lines and any(is_code(line, path) for line in lines):
                code = re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines)).strip("\n")
                blocks.append(f"{framework}, `{path.relative_to(ROOT)}`:\n\n```{language}\n{code}\n```\n")
    return "\n" + "\n".join(blocks) + "\n"


def page(text: str) -> str:
    """Return the page with its tables and excerpts written again."""
    made = {"lines": "\n" + table() + "\n"} | {part: excerpts(part) for part in HEADINGS}
    for name, block in made.items():
        begin, end = f"<!-- {name} -->\n", "<!-- end -->"
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}{block}{end}{rest.partition(end)[2]}"
    return text


def _imports(lines: list[str]) -> set[int]:
    """Return the numbers of the lines of imports, in Python, Rust and Go."""
    numbers: set[int] = set()
    end = ""
    for number, line in enumerate(lines, 1):
        if end:
            numbers.add(number)
            end = "" if line == end else end
        elif re.match(r"(from .* import|import|use|package) ?", line):
            numbers.add(number)
            end = ")" if line.endswith("(") else ""
    return numbers


def _docstrings(path: Path) -> set[int]:
    """Return the numbers of the lines of docstrings."""
    numbers: set[int] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            first = node.body[0] if node.body else None
            if ast.get_docstring(node) is not None and first is not None:
                numbers |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return numbers


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
