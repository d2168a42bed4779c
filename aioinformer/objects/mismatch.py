"""Describes why a value does not fit a type, without the value, which may be secret: many people can read logs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

_PLACE = re.compile(r" - at `[^`]*`$")
"""Where msgspec found a mismatch, at the end of its message."""

_QUOTES_VALUE = re.compile(r"Invalid (?:enum )?value\b")
"""How msgspec's messages about an enum's or a tag's value begin; the value follows."""

_FIELD = re.compile(r"[Ii]nvalid value for `(\w+)`")
"""How a message of a kubernetes_asyncio model names a field."""

_MOST = 3
"""Mismatches that a description has."""

_LONGEST_PLACE = 200
"""Characters of a place, which may have keys of the object's mappings."""


def describe_mismatch(error: Exception) -> str:
    """Describe an error of msgspec, pydantic or a model class by field, expected and actual type.

    Texts of user code, such as of a ``__post_init__``, may have the object's values, and are left out.
    """
    if isinstance(error, msgspec.ValidationError):
        return _of_msgspec(error)
    if isinstance(error, msgspec.MsgspecError):
        return str(error)
    if callable(errors := getattr(error, "errors", None)) and (text := _of_pydantic(errors)):
        return text
    field = _FIELD.search(str(error))
    return f"{type(error).__name__}{f' for the field {field[1]}' if field else ''}"


def _of_msgspec(error: msgspec.ValidationError) -> str:
    text = str(error)
    place = _PLACE.search(text)
    where = place[0] if place else ""
    if error.__cause__ is not None:  # raised by user code
        return f"{type(error.__cause__).__name__}{where}"
    quoting = _QUOTES_VALUE.match(text)
    return f"{quoting[0]}{where}" if quoting else text


def _of_pydantic(errors: Callable[..., Iterable[dict[str, Any]]]) -> str:
    """Return the mismatches of a pydantic ValidationError; ``""`` if the method is another library's."""
    try:
        return "; ".join(_of_pydantic_error(each) for each in [*errors()][:_MOST])
    except Exception:
        return ""


def _of_pydantic_error(each: dict[str, Any]) -> str:
    place, kind = ".".join(map(str, each["loc"]))[:_LONGEST_PLACE], each["type"]
    return f"{place}: {kind}" + ("" if kind == "missing" else f", from a {type(each['input']).__name__}")
