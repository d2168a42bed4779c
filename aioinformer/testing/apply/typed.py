"""Whether an applied configuration fits its schema, with the messages of the module structured-merge-diff."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.testing.apply.fieldsets import Path, key_element, show, value_element
from aioinformer.testing.errors import StatusError
from aioinformer.testing.objects import value_at
from aioinformer.testing.schema.gotext import group_version, quote, syntax, text, type_name
from aioinformer.testing.schema.node import OF_EVERY_OBJECT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.objects import Object
    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.schema.node import Node

    _Faults = Iterator[tuple[Path, str]]


def check_typed(resource: ResourceType, node: Node, applied: Object, name: str) -> None:
    """Refuse a configuration with unknown fields, values of other types or duplicate items.

    Raises:
        StatusError: 500, as on the real server.
    """
    faults = [f"{show(path)}: {why}" for path, why in _faults(node, applied, ())]
    if faults:
        why = faults[0] if len(faults) == 1 else "errors:\n  " + "\n  ".join(faults)
        namespace = value_at(applied, ("metadata", "namespace")) or ""
        raise StatusError(
            500,
            "",
            f"failed to create typed patch object ({namespace}/{name}; "
            f"{group_version(resource.api_version)}, Kind={resource.kind}): {why}",
        )


def _faults(node: Node, value: Any, path: Path) -> _Faults:
    if value is None or (not node.type and not node.format):
        return
    if node.type == "object":
        if isinstance(value, dict):
            yield from _map_faults(node, value, path)
        else:
            yield path, f"expected map, got &{{{text(value)}}}"
    elif node.type == "array":
        if isinstance(value, list):
            yield from _list_faults(node, value, path)
        else:
            yield path, f"expected list, got &{{{text(value)}}}"
    elif why := _scalar_fault(node, value):
        yield path, why


def _scalar_fault(node: Node, value: Any) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if node.type in ("integer", "number"):
        return "" if is_number else f"expected numeric (int or float), got {type_name(value)}"
    if node.type == "boolean":
        return "" if isinstance(value, bool) else f"expected boolean, got &{{{text(value)}}}"
    if node.type == "string" and node.format in ("", "byte"):
        is_string = isinstance(value, str)
        return "" if is_string else f"expected string, got &value.valueUnstructured{{Value:{syntax(value)}}}"
    if node.format == "int-or-string" or not isinstance(value, dict | list):
        return ""
    return f"expected any scalar, got &{{{text(value)}}}"


def _map_faults(node: Node, value: Object, path: Path) -> _Faults:
    known_here = OF_EVERY_OBJECT if node.is_embedded or not path else ()
    for name, entry in value.items():
        below = (*path, f"f:{name}")
        known = node.properties.get(name, node.items)
        if known is not None:
            yield from _faults(known, entry, below)
        elif node.properties and not node.preserves_unknown and name not in known_here:
            yield below, "field not declared in schema"


def _list_faults(node: Node, value: list[Any], path: Path) -> _Faults:
    if node.items is None:
        return
    elements = []
    for number, entry in enumerate(value):
        if node.list_type not in ("map", "set"):
            elements.append(f"i:{number}")
        elif why := _element_fault(node, entry):
            yield path, f"element {number}: {why}"
            return
        else:
            elements.append(key_element(node, entry) if node.list_type == "map" else value_element(entry))
    for element, count in Counter(elements).items():
        if count > 1:
            yield path, f"duplicate entries for key {show((element,))}"
    for element, entry in zip(elements, value, strict=True):
        yield from _faults(node.items, entry, (*path, element))


def _element_fault(node: Node, entry: Any) -> str:
    """Return why an item of a list that merges has no identity, or `""`."""
    if node.list_type == "set":
        if entry is None:
            return "associative list without keys has an element that's an explicit null"
        if isinstance(entry, dict):
            return "associative list without keys has an element that's a map type"
        return "not supported: associative list with lists as elements" if isinstance(entry, list) else ""
    if not isinstance(entry, dict):
        what = "an element that's an explicit null" if entry is None else ""
        return f"associative list with keys {f'has {what}' if what else 'may not have non-map elements'}"
    properties = {} if node.items is None else node.items.properties
    for key in node.list_keys:
        if key in entry or (key in properties and properties[key].default is not msgspec.UNSET):
            return ""
    return (
        f"associative list with keys has an element that omits all key fields {quote(node.list_keys)} "
        "(and doesn't have default values for any key fields)"
    )
