"""The first difference between two answers, and its cause in a few words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.e2e.api import Answer

from .masks import mask
from .results import DIFFERS, WORDS

_INDEX = re.compile(r"\[\d+\]")
_TROUBLES = re.compile(
    "unknown field|cannot unmarshal|quantities must match|failed to create typed patch object"
)


class Difference(NamedTuple):
    """What two answers differ in.

    Attributes:
        outcome: WORDS or DIFFERS.
        cause: Equal for differences of the same kind.
        ours: The embedded server's.
        real: The real server's.
    """

    outcome: str
    cause: str
    ours: str
    real: str


def difference(ours: Answer, theirs: Answer) -> Difference | None:
    """Return the first difference of two answers, the most important first; None if there is none."""
    mine, other = _mask(ours.body), _mask(theirs.body)
    shown = _short(ours.status, mine), _short(theirs.status, other)
    if ours.status != theirs.status:
        return Difference(DIFFERS, _status_cause(ours.status, theirs), *shown)
    if ours.status >= 400:
        return None if mine == other else Difference(WORDS, f"{ours.status} in other words", *shown)
    first = next(_find_differing(mine, other, ""), None)
    if first is not None:
        where, left, right = first
        cause = f"{_INDEX.sub('[]', where)}: {_relation(left, right)}"
        return Difference(DIFFERS, cause, f"{where} = {_text(left)}", f"{where} = {_text(right)}")
    if ours.warnings != theirs.warnings:
        return Difference(DIFFERS, "warnings", "; ".join(ours.warnings), "; ".join(theirs.warnings))
    return None


class _Absent:
    """No value."""


_ABSENT = _Absent()


def _status_cause(ours: int, theirs: Answer) -> str:
    if ours < 400 <= theirs.status:
        return f"accepted, the real server answers {theirs.status} ({_trouble(theirs.body)})"
    if theirs.status < 400 <= ours:
        return f"refused with {ours}, the real server accepts"
    return f"{ours} instead of {theirs.status}"


def _trouble(status: Any) -> str:
    """Return what a server finds wrong, without the fields: the reasons of its causes, or a part of its message."""
    causes = (status.get("details") or {}).get("causes") or ()
    reasons = sorted({cause["reason"] for cause in causes if "reason" in cause})
    match = _TROUBLES.search(status.get("message", ""))
    return ", ".join(reasons) or (match[0] if match else status.get("reason", ""))


def _mask(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _mask_field(name, member) for name, member in value.items() if name not in _IGNORED}
    if isinstance(value, list):
        return [_mask(element) for element in value]
    return mask(value) if isinstance(value, str) else value


_IGNORED = ("managedFields", "description")


def _mask_field(name: str, value: Any) -> Any:
    if name == "resourceVersion":
        return "VERSION"
    if name in ("nodePort", "healthCheckNodePort") and isinstance(value, int) and value:
        return "NODE-PORT"
    return _mask(value)


def _find_differing(ours: Any, theirs: Any, where: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in sorted({*ours, *theirs}):
            yield from _find_differing(ours.get(name, _ABSENT), theirs.get(name, _ABSENT), f"{where}.{name}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from _find_differing(mine, other, f"{where}[{number}]")
    elif type(ours) is not type(theirs) or ours != theirs:
        yield where, ours, theirs


def _relation(ours: Any, theirs: Any) -> str:
    if ours is _ABSENT:
        return "missing"
    return "not on the real server" if theirs is _ABSENT else "another value"


def _text(value: Any) -> str:
    return "(absent)" if value is _ABSENT else json.dumps(value)[:500]


def _short(status: int, body: Any) -> str:
    if isinstance(body, dict) and body.get("kind") == "Status":
        return f"{status} {body.get('reason', '')}: {body.get('message', '')}"[:1500]
    return f"{status} {json.dumps(body)}"[:1500]
