"""Says why a value does not fit a type, without the value, which may be secret: many people can read logs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, cast

import msgspec

from .models import ModelMismatchError

_PLACE = re.compile(r" - at `\$\.?([^`]*)`$")
"""Where msgspec found a mismatch, at the end of its message."""

_QUOTES_VALUE = re.compile(r"Invalid (?:enum )?value\b")
"""How msgspec's messages about an enum's or a tag's value begin; the value follows."""

_MISSING = re.compile(r"Object missing required field `([^`]*)`$")

_FIELD = re.compile(r"[Ii]nvalid value for `(\w+)`")
"""How a message of a kubernetes_asyncio model names a field."""

_MOST = 3
"""Mismatches that a text has."""

_LONGEST_PLACE = 200
"""Characters of a place, which may have keys of the object's mappings."""


class Mismatch(NamedTuple):
    """Why a value does not fit.

    Attributes:
        text: The field, the expected and the actual type.
        field: The field alone, such as ``"spec.host"``; ``""`` if it is unknown.
        problem: The rest, such as ``"is required"``; ``""`` if it is unknown.
    """

    text: str
    field: str = ""
    problem: str = ""


def mismatch_of(error: Exception) -> Mismatch:
    """Return what an error of msgspec, pydantic or a model class says about fields and types.

    Texts of user code, such as of a ``__post_init__``, may have the object's values, and are left out.
    """
    if isinstance(error, msgspec.ValidationError):
        return _of_msgspec(error)
    if isinstance(error, msgspec.MsgspecError):
        return Mismatch(str(error))
    errors = getattr(error, "errors", None)
    if callable(errors) and (text := _of_pydantic(cast("Callable[..., Iterable[dict[str, Any]]]", errors))):
        return Mismatch(text)
    field = _FIELD.search(str(error))
    return Mismatch(f"{type(error).__name__}{f' for the field {field[1]}' if field else ''}")


def _of_msgspec(error: msgspec.ValidationError) -> Mismatch:
    text = str(error)
    place = _PLACE.search(text)
    problem, field, where = (text[: place.start()], place[1], place[0]) if place else (text, "", "")
    if isinstance(error.__cause__, ModelMismatchError):
        return _of_model(error.__cause__.problems, field)
    if error.__cause__ is not None:  # raised by user code
        problem = type(error.__cause__).__name__
    elif quoting := _QUOTES_VALUE.match(problem):
        problem = quoting[0]
    text = problem + where
    if missing := _MISSING.match(problem):
        return Mismatch(text, f"{field}.{missing[1]}".strip("."), "is required")
    return Mismatch(text, field, problem)


def _of_model(problems: list[tuple[str, str]], place: str) -> Mismatch:
    """Return the mismatches of a pydantic model at a place."""
    paths = [f"{place}.{path}"[:_LONGEST_PLACE].strip(".") for path, _ in problems]
    texts = [f"{path}: {problem}" for path, (_, problem) in zip(paths, problems, strict=True)]
    return Mismatch("; ".join(texts[:_MOST]), paths[0], problems[0][1])


def _of_pydantic(errors: Callable[..., Iterable[dict[str, Any]]]) -> str:
    """Return the mismatches of a pydantic ValidationError; ``""`` if the method is another library's."""
    try:
        return "; ".join(_of_pydantic_error(error) for error in [*errors()][:_MOST])
    except Exception:
        return ""


def _of_pydantic_error(error: dict[str, Any]) -> str:
    place, kind = ".".join(map(str, error["loc"]))[:_LONGEST_PLACE], error["type"]
    return f"{place}: {kind}" + ("" if kind == "missing" else f", from a {type(error['input']).__name__}")
