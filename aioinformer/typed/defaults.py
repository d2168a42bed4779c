"""Defaults of fields, as a CustomResourceDefinition has them."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import date, datetime
from datetime import time as clock
from typing import Any
from uuid import UUID

import msgspec
from msgspec import inspect

from ..objects.encoding import plain
from .scalars import Schema

_OF_A_MOMENT = (date, clock, UUID)  # a datetime is a date


def default_of(field: inspect.Field, check: Callable[[Any], object], schema: Schema) -> Any:
    """Return the default of a field as JSON; None if it has none.

    Args:
        field: The field.
        check: Raises msgspec.ValidationError or TypeError for a value in JSON that does not fit the field's type.
        schema: Its schema.

    Raises:
        ValueError: It does not fit the schema, or differs from call to call.
        msgspec.ValidationError: It does not fit the type.
        TypeError: It cannot be made, or is no JSON.
    """
    value = field.default
    if value is msgspec.NODEFAULT:
        if field.default_factory is msgspec.NODEFAULT:
            return None
        value = _make_default(field.default_factory)
    if value is None or value is msgspec.UNSET:
        return None
    built = plain(value)
    check(built)
    return _fit(built, schema)


def _make_default(factory: Any) -> Any:
    """Return what a factory makes, if it is always the same.

    Raises:
        ValueError: It differs from call to call.
    """
    value = factory()
    if isinstance(value, _OF_A_MOMENT) or plain(value) != _make_later(factory):
        raise ValueError(
            "it differs from call to call, and a definition has one value for all objects: make the field "
            "`X | None = None` and set it in a mutating webhook or a reconciler"
        )
    return value


def _make_later(factory: Any) -> Any:
    """Return as JSON what a factory makes when the clock shows another time."""
    before = datetime.now()  # noqa: DTZ005 - only compared
    while datetime.now() == before:  # noqa: DTZ005
        time.sleep(0)
    return plain(factory())


def _fit(value: Any, schema: Schema) -> Any:
    """Return a default without nulls that the schema has not.

    Raises:
        ValueError: Servers refuse it: a number that JSON or 64 bits cannot hold, or a time without a zone.
    """
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        fitted = {name: _fit(part, known.get(name, others)) for name, part in value.items()}
        return {
            name: part
            for name, part in fitted.items()
            if part is not None or name not in known or "nullable" in known[name]
        }
    if isinstance(value, list):
        return [_fit(item, schema.get("items", {})) for item in value]
    if isinstance(value, float) and not float("-inf") < value < float("inf"):
        raise ValueError(f"{value} is no number in JSON")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError(f"{value} is no number of 64 bits, as servers have them")
    if (
        isinstance(value, str)
        and schema.get("format") == "date-time"
        and not re.search(schema.get("pattern", ""), value)
    ):
        raise ValueError(f"{value!r} is no {schema['format']} of RFC 3339, which has a time zone")
    return value
