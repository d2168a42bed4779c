"""Lists that are sets or maps, and objects embedded in custom resources, checked as the real server does.

The rules are those of apiextensions-apiserver (pkg/apiserver/schema/listtype and objectmeta, v1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.objects.labels import label_key_faults, label_value_faults
from aioinformer.testing.schema.faults import Fault, child, show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.schema.node import Node

_WITH_PARTS = (dict, list)


def list_faults(node: Node, value: Any, path: str = "") -> Iterator[Fault]:
    """Yield the duplicates of lists that are sets or maps."""
    if isinstance(value, list):
        yield from _duplicates(node, value, path)
        if node.items is not None:
            for number, each in enumerate(value):
                yield from list_faults(node.items, each, f"{path}[{number}]")
    elif isinstance(value, dict):
        for below, known, entry in _fields(node, value, path):
            yield from list_faults(known, entry, below)


def embedded_faults(node: Node, value: Any, path: str = "", *, is_root: bool = True) -> Iterator[Fault]:
    """Yield the faults of embedded objects' kind, apiVersion and labels; those of the root are checked elsewhere."""
    if isinstance(value, list) and node.items is not None:
        for number, each in enumerate(value):
            yield from embedded_faults(node.items, each, f"{path}[{number}]", is_root=False)
    elif isinstance(value, dict):
        if node.is_embedded and not is_root:
            yield from _object_faults(value, path)
        for below, known, entry in _fields(node, value, path):
            yield from embedded_faults(known, entry, below, is_root=False)


def _fields(node: Node, value: dict[str, Any], path: str) -> Iterator[tuple[str, Node, Any]]:
    """Yield the paths, schemas and values of the fields that have parts."""
    for name, entry in value.items():
        if not isinstance(entry, _WITH_PARTS):
            continue
        if (known := node.properties.get(name)) is not None:
            yield child(path, name), known, entry
        elif node.items is not None:
            yield f"{path}[{name}]", node.items, entry


def _object_faults(value: dict[str, Any], path: str) -> Iterator[Fault]:
    for name in ("apiVersion", "kind"):
        field, given = child(path, name), value.get(name)
        if name not in value:
            yield Fault("Required", field)
        elif not isinstance(given, str):
            yield Fault("Invalid", field, given, "must be a string")
        elif not given:
            yield Fault("Invalid", field, given, "must not be empty")
    metadata = value.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    for key, label in (labels if isinstance(labels, dict) else {}).items():
        field = child(path, "metadata.labels")
        yield from (Fault("Invalid", field, key, why) for why in label_key_faults(key))
        yield from (Fault("Invalid", field, label, why) for why in label_value_faults(str(label)))


def _duplicates(node: Node, value: list[Any], path: str) -> Iterator[Fault]:
    if node.list_type == "map":
        for number, each in enumerate(value):
            if each is not None and not isinstance(each, dict):
                why = "must be an object for an array of list-type map"
                yield Fault("Invalid", f"{path}[{number}]", each, why)
                return
        value = [{key: (each or {})[key] for key in node.list_keys if key in (each or {})} for each in value]
    elif node.list_type != "set":
        return
    seen: dict[str, int] = {}
    for number, each in enumerate(value):
        shown = show(each)
        seen[shown] = seen.get(shown, 0) + 1
        if seen[shown] == 2:
            yield Fault("Duplicate", f"{path}[{number}]", each)
