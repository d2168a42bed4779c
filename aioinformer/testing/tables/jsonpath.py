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
        values = [found for value in values for found in step(value)]
    return values


@cache
def _parse(path: str) -> tuple[_Step, ...]:
    steps, position = [], 0
    while position < len(path):
        found = _STEP.match(path, position)
        if found is None:
            return (_nothing,)
        steps.append(_step(found))
        position = found.end()
    return tuple(steps)


def _step(found: re.Match[str]) -> _Step:
    if found["all"]:
        return _all
    if (index := found["index"]) is not None:
        return lambda value: _item(value, int(index))
    if (inner := found["inner"]) is not None:
        return _filter(inner, found["operator"], found["operand"])
    if (quoted := found["quoted"]) is not None:
        return lambda value: find(value, f".{quoted}")  # as upstream, dots separate names here, too
    name = re.sub(r"\\(.)", r"\1", found["name"])
    return lambda value: [value[name]] if isinstance(value, dict) and name in value else []


def _filter(inner: str, compared: str | None, operand: str | None) -> _Step:
    if compared is None or operand is None:
        return lambda value: [each for each in _all(value) if find(each, inner)]
    holds, wanted = _OPERATORS[compared], _literal(operand)

    def matches(value: Any) -> bool:
        try:
            return any(holds(each, wanted) for each in find(value, inner))
        except TypeError:  # values of different types have no order
            return False

    return lambda value: [each for each in _all(value) if matches(each)]


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
