"""Unequal traces, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any

import msgspec

from .differences import Difference


def listing(
    script: Any,
    ours: Sequence[str],
    expected: Sequence[str],
    theirs: Sequence[str],
    known: Iterable[Difference],
) -> str | None:
    """Return a listing of two traces, or None if theirs starts as expected.

    Args:
        script: A Struct with ``ops``.
        ours: Our trace.
        expected: The trace that theirs must be, apart from known differences.
        theirs: client-go's trace.
        known: The known differences that were met.
    """
    if list(theirs[: len(expected)]) == list(expected):
        return None
    options = {
        name: value for name, value in msgspec.structs.asdict(script).items() if value and name != "ops"
    }
    lines = [
        f"operations:        {'; '.join(' '.join(op) for op in script.ops)}",
        f"options:           {', '.join(f'{name}={value}' for name, value in options.items())}",
        f"known differences: {', '.join(sorted(known)) or 'none'}",
        "",
    ]
    for mine, wanted, other in zip_longest(ours, expected, theirs, fillvalue=""):
        if mine == wanted == other:
            lines.append(f"    both        {mine}")
            continue
        lines.append(f"{'  ' if other == wanted else '=>'}  aioinformer {mine}")
        lines.append(f"    client-go   {other}")
        if wanted not in (mine, other):
            lines.append(f"    expected    {wanted}")
    return "\n".join(lines)
