"""Schemas of types that contain no others. What they take, Python's types can hold.

Formats alone take more: the year 0000, zones such as +99:99, UUIDs with some of their dashes.
"""

from __future__ import annotations

from typing import Any

from msgspec import inspect

from .annotations import EXTENSION

Schema = dict[str, Any]

NO_LIST: Schema = {"minItems": 1, "maxItems": 0}
"""For texts with a format: servers take a list for them, whatever is in it. No list has both."""

ANYTHING: Schema = {f"{EXTENSION}preserve-unknown-fields": True}

_BASE64: Schema = {"type": "string", "pattern": "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}(==|[A-Za-z0-9+/]=))?$"}
"""Not the format "byte", which accepts any text."""

_SECONDS = r"[0-9]{1,9}(\.[0-9]+)?S"
_CLOCK = rf"T([0-9]{{1,9}}H([0-9]{{1,9}}M)?({_SECONDS})?|[0-9]{{1,9}}M({_SECONDS})?|{_SECONDS})"
_DURATION: Schema = {"type": "string", "pattern": rf"^[+-]?P([0-9]{{1,8}}D({_CLOCK})?|{_CLOCK})$"}
"""Days, hours, minutes and seconds of ISO 8601. Not the format "duration", which is Go's and others."""

_HOURS = "([01][0-9]|2[0-3]):[0-5][0-9]"
_TIME: Schema = {"type": "string", "pattern": rf"^{_HOURS}:[0-5][0-9](\.[0-9]+)?(Z|[+-]{_HOURS})?$"}
_DECIMAL: Schema = {"type": "string", "pattern": r"^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,4})?$"}

_FROM_YEAR_1 = "0[1-9]|00[1-9]|000[1-9]"
"""How Python's first years begin; the formats "date" and "date-time" also have the year 0000."""

_DAY_AND_CLOCK = "[0-9-]+T[0-9:]{8}"

_MOMENT: Schema = {
    "type": "string",
    "format": "date-time",
    "pattern": (
        rf"^(([1-8]|{_FROM_YEAR_1}){_DAY_AND_CLOCK}(\.[0-9]+)?"
        rf"|9{_DAY_AND_CLOCK}(\.[0-9]{{1,6}})?)"  # not rounded, as the last second of 9999 must not be
        rf"(Z|[+-]{_HOURS})$"
    ),
    **NO_LIST,
}
"""RFC 3339, as Python has it. The format "date-time" also takes lower case, any character for the point, any zone."""

_DATE: Schema = {"type": "string", "format": "date", "pattern": f"^([1-9]|{_FROM_YEAR_1})", **NO_LIST}

_UUID: Schema = {
    "type": "string",
    "format": "uuid",
    "pattern": "^([0-9A-Fa-f]{32}|[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$",
    **NO_LIST,
}
"""The format "uuid" also takes some of the dashes."""

SCALARS: dict[type, Schema] = {
    inspect.AnyType: ANYTHING,
    inspect.RawType: ANYTHING,
    inspect.BoolType: {"type": "boolean"},
    inspect.StrType: {"type": "string"},
    inspect.DateTimeType: _MOMENT,
    inspect.DateType: _DATE,
    inspect.BytesType: _BASE64,
    inspect.ByteArrayType: _BASE64,
    inspect.UUIDType: _UUID,
    inspect.TimeType: _TIME,
    inspect.TimeDeltaType: _DURATION,
    inspect.DecimalType: _DECIMAL,
}
"""Types that contain no others. Only those that are strings in JSON have limits."""
