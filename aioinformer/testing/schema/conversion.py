"""The error of Go's converter of decoded JSON, which reads the result of a strategic merge patch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.schema.zeros import is_struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.schema.node import Node

_OWN_READERS = ("byte", "int-or-string", "microTime", "quantity", "time")
"""Formats that read JSON themselves, with its errors."""
_GO_KINDS = {"boolean": "bool", "integer": "int32", "number": "float64", "string": "string"}


def conversion_fault(node: Node, value: Any) -> str:
    """Return the first error of converting a value to its Go type, or `""`."""
    return next(_faults(node, value), "")


def _faults(node: Node, value: Any) -> Iterator[str]:
    if value is None or node.format in _OWN_READERS or not node.type:
        return
    kind = _kind(value)
    if node.type not in ("array", "object"):
        if not _fits(node.type, value):
            yield _scalar_fault(node, kind)
    elif kind != ("slice" if node.type == "array" else "map"):
        wanted = "slice from" if node.type == "array" else "struct from:" if is_struct(node) else "map from"
        yield f"cannot restore {wanted} {kind}"
    elif is_struct(node):
        for name, part in node.properties.items():
            yield from _faults(part, value.get(name))
    elif node.items is not None:
        for element in value if node.type == "array" else value.values():
            yield from _faults(node.items, element)


def _kind(value: Any) -> str:
    """Return Go's kind of a decoded value."""
    kinds = {dict: "map", list: "slice", str: "string", bool: "bool", int: "int64"}
    return kinds.get(type(value), "float64")


def _fits(type_: str, value: Any) -> bool:
    match type_:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return not isinstance(value, bool) and isinstance(value, int | float) and value == int(value)
    return not isinstance(value, bool) and isinstance(value, int | float)


def _scalar_fault(node: Node, kind: str) -> str:
    is_number = kind in ("int64", "float64")
    if (node.type == "string" and kind == "int64") or (node.type == "integer" and is_number):
        return f"cannot convert {kind} to {node.go}"  # Go could, but JSON cannot
    return f"unrecognized type: {node.format or _GO_KINDS[node.type]}"
