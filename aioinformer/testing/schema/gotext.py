"""Decoded JSON as Go's package fmt writes it, for the real server's messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.testing.schema.faults import number

if TYPE_CHECKING:
    from collections.abc import Iterable


def text(value: Any) -> str:
    """Return a value as `%v` writes it: `map[a:1 b:[x y]]`."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{text(value[name])}' for name in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(text, value))}]"
    if value is None or isinstance(value, bool):
        return {None: "<nil>", True: "true", False: "false"}[value]
    return value if isinstance(value, str) else number(value)


def syntax(value: Any) -> str:
    """Return a value as `%#v` writes it: `[]interface {}{"a"}`."""
    if isinstance(value, dict):
        entries = (f"{syntax(name)}:{syntax(value[name])}" for name in sorted(value))
        return f"map[string]interface {{}}{{{', '.join(entries)}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(syntax, value))}}}"
    if value is None:
        return "interface {}(nil)"
    return msgspec.json.encode(value).decode() if isinstance(value, str) else text(value)


def quote(texts: Iterable[str]) -> str:
    """Return texts as `%q` writes them: `["a" "b"]`."""
    listed = " ".join(f'"{part}"' for part in texts)
    return f"[{listed}]"


def type_name(value: Any) -> str:
    """Return a value's type as `%T` writes it."""
    names = {
        dict: "map[string]interface {}",
        list: "[]interface {}",
        str: "string",
        bool: "bool",
        int: "int64",
    }
    return names.get(type(value), "float64")


def group_version(api_version: str) -> str:
    """Return an apiVersion as Go writes it: `apps/v1`, and `/v1` for the core group."""
    return api_version if "/" in api_version else f"/{api_version}"
