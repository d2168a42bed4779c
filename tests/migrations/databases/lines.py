"""Write the table of lines into docs/from-kopf.md: ``python -m tests.migrations.databases.lines``."""

from __future__ import annotations

from collections import Counter

from benchmarks.websites.__main__ import is_code, parts

from ..environments import ROOT

FOLDER = ROOT / "examples" / "migrations" / "kopf"
PAGE = ROOT / "docs" / "from-kopf.md"
SIDES = {"kopf": ("before.py", "definitions.yaml"), "aioinformer": ("after.py",)}
SHARED = ("agent.py", "children.py")
BEGIN, END = "<!-- lines -->\n", "<!-- end -->"


def count(*names: str) -> Counter[str]:
    """Return the number of lines of each part, without blank lines, comments, docstrings and imports."""
    counted: Counter[str] = Counter()
    for path in (FOLDER / name for name in names):
        for part, lines in parts(path).items():
            counted[part] += sum(is_code(line, path) for line in lines)
    return counted


def table() -> str:
    """Return the table of lines by part."""
    counted = {side: count(*names) for side, names in SIDES.items()}
    rows = [f"| part | {' | '.join(counted)} |", "| --- | ---: | ---: |"]
    named = [
        part
        for part in dict.fromkeys(part for by_part in counted.values() for part in by_part)
        if part != "main"
    ]
    rows += [
        f"| {part} | {' | '.join(str(by_part[part]) for by_part in counted.values())} |" for part in named
    ]
    rows.append(f"| **together** | {' | '.join(f'**{by_part.total()}**' for by_part in counted.values())} |")
    shared = count(*SHARED).total()
    rows.append(f"| the same in both | {shared} | {shared} |")
    return "\n".join(rows)


def page(text: str) -> str:
    """Return the page with its table written again."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
