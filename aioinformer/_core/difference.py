"""Where two states of an object differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class _Nothing:
    """What stands where one of two states has nothing."""

    def __repr__(self) -> str:
        return "nothing"


_NOTHING = _Nothing()


def difference(before: Any, after: Any, path: str = "") -> tuple[str, Any, Any] | None:
    """Where two states of an object first differ, and both values there; None where they do not.

    They are compared by their parts, whatever their classes take for equal. In dicts and lists 1 and True are equal, as
    everywhere in Python.
    """
    if before is after or (type(before) in (dict, list) and before == after):
        return None
    if type(before) is not type(after):
        return path, before, after
    old, new = _parts(before), _parts(after)
    if old is None or new is None:
        return None if before == after else (path, before, after)
    for name in {**old, **new}:
        was, now = old.get(name, _NOTHING), new.get(name, _NOTHING)
        # What cannot be changed in place is the very same in a copy.
        if was is not now and (found := difference(was, now, f"{path}.{name}" if path else str(name))):
            return found
    return None


def _parts(value: Any) -> Mapping[Any, Any] | None:
    """What a value is made of, by name or position; None for what is compared as a whole."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, (list, tuple)):
        return dict(enumerate(value))
    kind = type(value)
    for fields in ("__struct_fields__", "attribute_map", "model_fields", "__dataclass_fields__"):
        if (names := getattr(kind, fields, None)) is not None:
            return {name: getattr(value, name, _NOTHING) for name in names}
    knows_equals = kind.__eq__ is not object.__eq__  # type: ignore[comparison-overlap]
    return None if knows_equals else getattr(value, "__dict__", None)
