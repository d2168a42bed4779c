"""Compare JSON values: Python takes True for 1, JSON does not."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import msgspec

from .kube_object import encode


def same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal: numbers by value, objects in any order. Of any depth."""
    try:
        if one != other:
            return False
        if _encode(one) == _encode(other):
            return True
    except (RecursionError, TypeError, ValueError):  # nested deeply, or not JSON
        pass
    return _same_parts(one, other)


_encode = msgspec.json.Encoder(order="deterministic").encode


def _same_parts(one: Any, other: Any) -> bool:
    pairs = [(one, other)]
    while pairs:
        mine, theirs = pairs.pop()
        if mine is theirs:
            continue
        if isinstance(mine, dict) and isinstance(theirs, dict):
            if mine.keys() != theirs.keys():
                return False
            pairs += [(part, theirs[name]) for name, part in mine.items()]
        elif isinstance(mine, list) and isinstance(theirs, list):
            if len(mine) != len(theirs):
                return False
            pairs += zip(mine, theirs, strict=True)
        elif isinstance(mine, bool) != isinstance(theirs, bool) or mine != theirs:
            return False
    return True


def frozen(value: Any) -> Hashable:
    """Return a hashable value that is equal for JSON values that are the ``same``. Of any depth."""
    try:
        return _frozen(value)
    except RecursionError:  # equal in the same order of fields
        return encode(value)


def _frozen(value: Any) -> Hashable:
    if isinstance(value, dict):
        return "{", frozenset((name, _frozen(part)) for name, part in value.items())
    if isinstance(value, list):
        return "[", *map(_frozen, value)
    if isinstance(value, bool):
        return "?", value
    hashable: Hashable = value
    return hashable
