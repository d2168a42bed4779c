"""Shorten the descriptions of a schema, so that a definition stays within the servers' limits."""

from __future__ import annotations

from typing import Any

from .scalars import Schema

_ELLIPSIS = "…"
_SCHEMAS_BY_NAME = ("properties", "patternProperties")
_DATA = ("default", "example", "enum")
"""Keys whose values are data, which may have a key ``description`` of their own."""


def shorten_descriptions(schema: Schema, limit: int) -> Schema:
    """Return a schema whose descriptions have at most this many characters; 0 drops them."""
    shortened: Schema = {}
    for name, value in schema.items():
        if name == "description":
            if limit:
                shortened[name] = value if len(value) <= limit else value[: limit - 1] + _ELLIPSIS
        elif name in _SCHEMAS_BY_NAME:
            shortened[name] = {field: shorten_descriptions(part, limit) for field, part in value.items()}
        else:
            shortened[name] = value if name in _DATA else _shorten(value, limit)
    return shortened


def _shorten(value: Any, limit: int) -> Any:
    if isinstance(value, dict):
        return shorten_descriptions(value, limit)
    return [_shorten(part, limit) for part in value] if isinstance(value, list) else value
