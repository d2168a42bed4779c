"""Encodes JSON values of any nesting; the counterpart of ``nesting.py``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from .brackets import MOST_LEVELS

_encode = msgspec.json.Encoder().encode


class _Text(bytes):
    """JSON that is ready."""


class _End(bytes):
    """The bracket that ends a level."""


def encode_nested(value: Any) -> bytes:
    """Encode a JSON value, even if msgspec refuses its nesting. That is slow and used only after msgspec has failed.

    Raises:
        TypeError: A value is of a type that msgspec does not encode.
        ValueError: A string cannot be encoded as UTF-8.
        RecursionError: It has more than MOST_LEVELS levels, which servers refuse, or contains itself.
    """
    try:
        return _encode(value)
    except RecursionError:
        return _by_steps(value)


def _by_steps(value: Any) -> bytes:
    out = bytearray()
    levels = 0
    remaining: list[Any] = [value]  # the next part is the last
    while remaining:
        part = remaining.pop()
        if type(part) is _Text:
            out += part
            continue
        if type(part) is _End:
            out += part
            levels -= 1
            continue
        if isinstance(part, msgspec.Struct):
            part = _fields(part)
        if isinstance(part, dict):
            remaining.append(_End(b"}"))
            steps: list[Any] = []
            for name, below in part.items():
                text = _encode(name) if type(name) is str else _encode({name: 0})[1:-3]
                steps += (_Text((b"," if steps else b"{") + text + b":"), below)
            remaining += reversed(steps or [_Text(b"{")])
        elif isinstance(part, (list, tuple)):
            remaining.append(_End(b"]"))
            steps = []
            for below in part:
                steps += (_Text(b"," if steps else b"["), below)
            remaining += reversed(steps or [_Text(b"[")])
        else:
            out += _encode(part)
            continue
        levels += 1
        if levels > MOST_LEVELS:
            raise RecursionError(f"it is nested more than {MOST_LEVELS} levels deep")
    return bytes(out)


def _fields(struct: msgspec.Struct) -> Mapping[str, Any]:
    """Return the fields of a Struct as they are in JSON."""
    config = struct.__struct_config__
    fields = {} if config.tag is None else {config.tag_field or "type": config.tag}
    for field in msgspec.structs.fields(struct):
        if (value := getattr(struct, field.name)) is not msgspec.UNSET:
            fields[field.encode_name] = value
    return fields
