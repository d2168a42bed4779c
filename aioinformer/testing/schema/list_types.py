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


def list_faults(node: Node, value: Any) -> Iterator[Fault]:
    """Yield the duplicates of lists that are sets or maps."""
    for known, part, path in _parts(node, value, ""):
        if isinstance(part, list):
            yield from _duplicates(known, part, path)


def embedded_faults(node: Node, value: Any, *, is_whole: bool = True) -> Iterator[Fault]:
    """Yield the faults of embedded objects' kind, apiVersion and labels.

    Args:
        node: The schema.
        value: The value.
        is_whole: Whether the value is a custom resource, whose own fields of this kind are checked elsewhere.
    """
    for known, part, path in _parts(node, value, ""):
        if known.is_embedded and (path or not is_whole) and isinstance(part, dict):
            yield from _object_faults(part, path)


def _parts(node: Node, value: Any, path: str) -> Iterator[tuple[Node, Any, str]]:
    """Yield a value and the lists and objects in it that have a schema, with schemas and paths."""
    yield node, value, path
    if isinstance(value, list) and node.items is not None:
        for number, element in enumerate(value):
            yield from _parts(node.items, element, f"{path}[{number}]")
    elif isinstance(value, dict):
        for name, entry in value.items():
            if not isinstance(entry, _WITH_PARTS):
                continue
            if (known := node.properties.get(name)) is not None:
                yield from _parts(known, entry, child(path, name))
            elif node.items is not None:
                yield from _parts(node.items, entry, f"{path}[{name}]")


def _object_faults(value: dict[str, Any], path: str) -> Iterator[Fault]:
    for name in ("apiVersion", "kind"):
        field, given = child(path, name), value.get(name)
        if name not in value:
            yield Fault("Required", field)
        elif not isinstance(given, str):
            yield Fault("Invalid", field, given, "must be a string")
        elif not given:
            yield Fault("Invalid", field, given, "must not be empty")
        elif name == "apiVersion" and given.count("/") > 1:
            yield Fault("Invalid", field, given, f"unexpected GroupVersion string: {given}")
    metadata = value.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    for key, label in (labels if isinstance(labels, dict) else {}).items():
        field = child(path, "metadata.labels")
        yield from (Fault("Invalid", field, key, why) for why in label_key_faults(key))
        yield from (Fault("Invalid", field, label, why) for why in label_value_faults(str(label)))


def _duplicates(node: Node, value: list[Any], path: str) -> Iterator[Fault]:
    if node.list_type == "map":
        for number, element in enumerate(value):
            if element is not None and not isinstance(element, dict):
                why = "must be an object for an array of list-type map"
                yield Fault("Invalid", f"{path}[{number}]", element, why)
                return
        value = [
            {key: (element or {})[key] for key in node.list_keys if key in (element or {})}
            for element in value
        ]
    elif node.list_type != "set":
        return
    seen: dict[str, int] = {}
    for number, element in enumerate(value):
        shown = show(element)
        seen[shown] = seen.get(shown, 0) + 1
        if seen[shown] == 2:
            yield Fault("Duplicate", f"{path}[{number}]", element)
