"""Objects of custom resources as the real server reads them: unknown fields and nulls dropped, defaults set.

The rules are those of apiextensions-apiserver (pkg/apiserver/schema/pruning and defaulting, v1.36).
"""

from __future__ import annotations

import copy
from typing import Any

import msgspec

from aioinformer.testing.schema.node import OF_EVERY_OBJECT, Node

_ANYTHING, _NOTHING = Node(preserves_unknown=True), Node()


def coerce(node: Node, value: Any, unknown: list[str], path: str = "") -> Any:
    """Return a copy of a value without unknown fields and nulls that are no values, and with its defaults.

    Args:
        node: The schema.
        value: The value; parts of the wrong type stay for the validation.
        unknown: Gets the paths of the dropped unknown fields.
        path: The value's own path.
    """
    if isinstance(value, list):
        item = node.items or (_ANYTHING if node.preserves_unknown else _NOTHING)
        filled = [_default(item) if element is None and not item.nullable else element for element in value]
        return [coerce(item, element, unknown, f"{path}[{number}]") for number, element in enumerate(filled)]
    if not isinstance(value, dict):
        return _number(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value
    kept = {}
    for name, entry in value.items():
        below = f"{path}.{name}" if path else name
        known = node.properties.get(name, node.items)
        if node.is_embedded and name in OF_EVERY_OBJECT:
            kept[name] = entry
        elif known is None:
            if node.preserves_unknown:
                kept[name] = entry
            else:
                unknown.append(below)
        elif entry is not None or known.nullable:
            kept[name] = coerce(known, entry, unknown, below)
        elif known.default is not msgspec.UNSET:
            kept[name] = coerce(known, _default(known), unknown, below)
    for name, known in node.properties.items():
        if name not in kept and known.default is not msgspec.UNSET:
            kept[name] = coerce(known, _default(known), unknown, f"{path}.{name}")
    return kept


def _number(value: float) -> float:
    """Return a number as Go reads and writes it: whole if it is, and a float if it does not fit into 64 bits."""
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else float(value)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def prune(node: Node, value: Any) -> Any:
    """Return a copy of a value without unknown fields, as of an object that another version of its kind shows."""
    if isinstance(value, list):
        item = node.items or (_ANYTHING if node.preserves_unknown else _NOTHING)
        return [prune(item, element) for element in value]
    if not isinstance(value, dict):
        return value
    kept = {}
    for name, entry in value.items():
        known = node.properties.get(name, node.items)
        if node.is_embedded and name in OF_EVERY_OBJECT:
            kept[name] = entry
        elif known is not None:
            kept[name] = prune(known, entry)
        elif node.preserves_unknown:
            kept[name] = entry
    return kept


def _default(node: Node) -> Any:
    return None if node.default is msgspec.UNSET else copy.deepcopy(node.default)
