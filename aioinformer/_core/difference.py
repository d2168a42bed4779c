"""The first difference between two states of an object, for messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class _Nothing:
    """Stands for a part that one of two states does not have."""

    def __repr__(self) -> str:
        return "nothing"


_NOTHING = _Nothing()


def difference(before: Any, after: Any, path: str = "") -> tuple[str, Any, Any] | None:
    """Return the path of the first difference and both values there; None if there is no difference.

    Values are compared part by part, not by their classes' ``__eq__``. In dicts and lists 1 equals True, as in Python.
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
        # A deep copy shares what cannot be changed in place.
        if was is not now and (inner := difference(was, now, f"{path}.{name}" if path else str(name))):
            return inner
    return None


def _parts(value: Any) -> Mapping[Any, Any] | None:
    """Return a value's parts by name or position; None for a value that is compared as a whole."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, (list, tuple)):
        return dict(enumerate(value))
    kind = type(value)
    for fields in ("__struct_fields__", "attribute_map", "model_fields", "__dataclass_fields__"):
        if (names := getattr(kind, fields, None)) is not None:
            return {name: getattr(value, name, _NOTHING) for name in names}
    has_own_equality = kind.__eq__ is not object.__eq__  # type: ignore[comparison-overlap]
    return None if has_own_equality else getattr(value, "__dict__", None)
