"""Find the worst words in prose: comments, docstrings, strings and documentation.

python -m tests.plain_english            # a count for each folder
python -m tests.plain_english --strict   # every line, and exit code 1 if there is one
"""

from __future__ import annotations

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
FOLDERS = ("aioinformer", "tests", "examples", "benchmarks", "docs")
PAGES = ("README.md", "CHANGELOG.md")


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


def findings() -> Iterator[tuple[Path, int, str]]:
    """Yield each line of prose with one of the words."""
    found = [
        path for folder in FOLDERS for ending in ("py", "md") for path in (ROOT / folder).rglob(f"*.{ending}")
    ]
    for path in sorted((*found, *(ROOT / page for page in PAGES))):
        if path != Path(__file__).resolve():
            for number, line in prose_of(path):
                if WORDS.search(line):
                    yield path.relative_to(ROOT), number, line.strip()


def main(arguments: list[str]) -> int:
    found = list(findings())
    if "--strict" in arguments:
        for path, number, line in found:
            print(f"{path}:{number}: {line}")  # noqa: T201
        return 1 if found else 0
    counts = Counter("/".join(path.parts[:2]) for path, _, _ in found)
    for folder, count in sorted(counts.items()):
        print(f"{count:5} {folder}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
