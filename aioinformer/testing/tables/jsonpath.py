"""The JSON paths of printer columns: names, indexes, wildcards, and filters by a field's value."""

from __future__ import annotations

import operator
import re
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    _Step = Callable[[Any], Iterable[Any]]

_STEP = re.compile(
    r"""
    (?P<all> \.\* | \[\*\] )
    | \.?\[ (?P<index> -?[0-9]+ ) \]
    | \.?\[ '(?P<quoted> [^']* )' \]
    | \.?\[ \?\( @ (?P<inner> (?: \.(?:\\.|[^\\.\[\]=!<>\s()])+ )+ )
        \s* (?: (?P<operator> == | != | <= | >= | < | > ) \s* (?P<operand> "[^"]*" | '[^']*' | [^\s()]+ ) \s* )? \) \]
    | \. (?P<name> (?: \\. | [^\\.\[\]] )+ )
    """,
    re.VERBOSE,
)
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def find(obj: Any, path: str) -> list[Any]:
    """Return the values at a path; an empty list for a missing field or an invalid path."""
    values = [obj]
    for step in _parse(path):
        values = [result for value in values for result in step(value)]
    return values


@cache
def _parse(path: str) -> tuple[_Step, ...]:
    steps, position = [], 0
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            return (_nothing,)
        steps.append(_step(match))
        position = match.end()
    return tuple(steps)


def _step(match: re.Match[str]) -> _Step:
    if match["all"]:
        return _all
    if (index := match["index"]) is not None:
        return lambda value: _item(value, int(index))
    if (inner := match["inner"]) is not None:
        return _filter(inner, match["operator"], match["operand"])
    if (quoted := match["quoted"]) is not None:
        return lambda value: find(value, f".{quoted}")  # as upstream, dots separate names here, too
    name = re.sub(r"\\(.)", r"\1", match["name"])
    return lambda value: [value[name]] if isinstance(value, dict) and name in value else []


def _filter(inner: str, compared: str | None, operand: str | None) -> _Step:
    if compared is None or operand is None:
        return lambda value: [element for element in _all(value) if find(element, inner)]
    holds, wanted = _OPERATORS[compared], _literal(operand)

    def matches(value: Any) -> bool:
        try:
            return any(holds(element, wanted) for element in find(value, inner))
        except TypeError:  # values of different types have no order
            return False

    return lambda value: [element for element in _all(value) if matches(element)]


def _literal(text: str) -> Any:
    if text[0] in "'\"":
        return text[1:-1]
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _all(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _item(value: Any, index: int) -> list[Any]:
    return [value[index]] if isinstance(value, list) and -len(value) <= index < len(value) else []


def _nothing(value: Any) -> list[Any]:
    return []
