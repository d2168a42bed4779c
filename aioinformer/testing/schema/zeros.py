"""What Go writes for fields that are missing or empty."""

from __future__ import annotations

import copy
from typing import Any

import msgspec

from aioinformer.testing.schema.node import Node


def is_struct(node: Node) -> bool:
    """Return whether a value has named fields."""
    return node.type == "object" and bool(node.properties)


def is_pointer(node: Node) -> bool:
    """Return whether Go tells an empty value from a missing one."""
    return node.nullable or is_struct(node)


def missing(node: Node) -> Any:
    """Return the value that Go writes for a missing field, or UNSET if it writes none."""
    value = node.zero if node.default is msgspec.UNSET else node.default
    if isinstance(value, dict) and is_struct(node):
        return _with_missing(node, value)
    return copy.deepcopy(value)


def blank(node: Node) -> dict[str, Any]:
    """Return what Go writes of a struct without any values or defaults."""
    return {
        name: blank(part) if is_struct(part) and part.zero is not None else copy.deepcopy(part.zero)
        for name, part in node.properties.items()
        if part.zero is not msgspec.UNSET
    }


def empty(node: Node) -> Any:
    """Return the value that Go writes for a null in a list or a map."""
    if is_struct(node):
        return _with_missing(node, {})
    match node.type:
        case "string":
            return "0" if node.format == "quantity" else ""
        case "integer" | "number":
            return 0
        case "boolean":
            return False
    return None


def _with_missing(node: Node, value: dict[str, Any]) -> dict[str, Any]:
    complete = {
        name: value.get(name, msgspec.UNSET) if name in value else missing(part)
        for name, part in node.properties.items()
    }
    return {
        name: copy.deepcopy(default) for name, default in complete.items() if default is not msgspec.UNSET
    }
