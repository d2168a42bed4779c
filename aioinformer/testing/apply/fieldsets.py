"""Sets of fields in the notation of `managedFields`, for server-side apply.

A path is a tuple of elements in the notation of FieldsV1: `f:spec` is a field, `k:{"name":"app"}` the item of a
list that merges by a key, and `v:"x"` the value of a list that is a set. Maps, lists and items that have fields are
in the set by their own paths, for which FieldsV1 writes `.` beside the fields.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.testing.objects import SYSTEM_METADATA
from aioinformer.testing.schema.node import Node, field_of, items_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Set

    from aioinformer.testing.objects import Object

Path = tuple[str, ...]

_UNOWNED = frozenset([*SYSTEM_METADATA, "managedFields", "namespace"])

PARENT = object()
"""The value of a map or a list with fields."""


def paths(node: Node, obj: Object) -> dict[Path, Any]:
    """Return the fields that can have owners, with their values.

    The value of a map or a list with fields is PARENT; an item's value counts the items with its keys.
    """
    fields: dict[Path, Any] = {}
    for name, value in obj.items():
        if name == "metadata":
            value = {key: entry for key, entry in value.items() if key not in _UNOWNED}
            if not value:
                continue
        if name not in ("apiVersion", "kind"):
            _collect(field_of(node, name), value, (f"f:{name}",), fields)
    fields.pop(("f:metadata",), None)
    return fields


def _is_atomic(node: Node) -> bool:
    return node.rules.get("x-kubernetes-map-type") == "atomic"


def _collect(node: Node, value: Any, path: Path, leaves: dict[Path, Any]) -> None:
    items = items_of(node)
    if not value or _is_atomic(node):
        leaves[path] = value
    elif isinstance(value, dict):
        leaves[path] = PARENT
        for name, entry in value.items():
            _collect(field_of(node, name), entry, (*path, f"f:{name}"), leaves)
    elif isinstance(value, list) and node.list_type == "set":
        leaves[path] = PARENT
        for entry in value:
            leaves[(*path, value_element(entry))] = entry
    elif isinstance(value, list) and node.list_type == "map":
        leaves[path] = PARENT
        for item in value:
            place = (*path, key_element(node, item))
            if _is_atomic(items):
                leaves[place] = item
                continue
            leaves[place] = leaves.get(place, 0) + 1
            for name, entry in item.items():
                _collect(field_of(items, name), entry, (*place, f"f:{name}"), leaves)
    else:
        leaves[path] = value


def key_element(node: Node, item: Object) -> str:
    """Return the element of an item of a list that merges by keys; a missing key has its default."""
    items = items_of(node)
    keys = {}
    for key in sorted(node.list_keys):
        default = field_of(items, key).default
        keys[key] = item.get(key, None if default is msgspec.UNSET else default)
    return "k:" + msgspec.json.encode(keys).decode()


def value_element(value: Any) -> str:
    """Return the element of an item of a list that is a set."""
    return "v:" + msgspec.json.encode(value).decode()


def merge(node: Node, live: Object, applied: Object) -> Object:
    """Return the live object merged with an applied configuration."""
    merged = {name: _merge(field_of(node, name), live.get(name), value) for name, value in applied.items()}
    return {**live, **merged}


def _merge(node: Node, live: Any, applied: Any) -> Any:
    if _is_atomic(node):
        return applied
    if isinstance(applied, dict) and isinstance(live, dict):
        return merge(node, live, applied)
    if isinstance(applied, list) and isinstance(live, list):
        if node.list_type == "set":
            pairs = _pairs([*map(value_element, live)], [*map(value_element, applied)])
            return [live[left] if right is None else applied[right] for left, right in pairs]
        if node.list_type == "map":
            return _merge_items(node, live, applied)
    return applied


def _merge_items(node: Node, live: list[Any], applied: list[Any]) -> list[Any]:
    pairs = _pairs([key_element(node, item) for item in live], [key_element(node, item) for item in applied])

    def merge_element(left: int, right: int | None) -> Any:
        if right is None:
            return live[left]
        return applied[right] if left < 0 else _merge(items_of(node), live[left], applied[right])

    return [merge_element(left, right) for left, right in pairs]


def _pairs(live: list[str], applied: list[str]) -> Iterator[tuple[int, int | None]]:
    """Yield the places of the items of a merged list, in the order of structured-merge-diff.

    The applied order wins, and an item that only the live list has stays where it is among the others.

    Args:
        live: The elements of the live list.
        applied: Those of the applied list.

    Yields:
        The place in the live list, or -1, and the place in the applied list, or None.
    """
    places = {element: number for number, element in reversed([*enumerate(live)])}
    shared = [element for element in applied if element in places]
    wanted, done = {*applied}, set[str]()
    left = right = 0
    while left < len(live) or right < len(applied):
        here = live[left] if left < len(live) else None
        next_ = applied[right] if right < len(applied) else None
        if here is not None and here != next_:
            if here not in wanted:
                yield left, None
                left += 1
                continue
            if here in done or (shared and shared[0] != here):  # the applied order has another place for it
                left += 1
                continue
        if next_ is not None:
            yield places.get(next_, -1), right
            done.add(next_)
            right += 1
            left += here == next_
            if shared and shared[0] == next_:
                shared.pop(0)


def remove(node: Node, value: Any, fields: Iterable[Path], kept: Set[Path] = frozenset()) -> Any:
    """Return an object without fields and without parents that become empty; None if nothing remains.

    Args:
        node: The object's schema.
        value: The object.
        fields: The paths of the fields.
        kept: Paths to keep even if they become empty.
    """
    tree = encode(fields)
    return _without(node, value, tree, kept, ()) if tree else value


def _without(node: Node, value: Any, fields: Object, kept: Set[Path], within: Path) -> Any:
    """Return a value without fields, which are FieldsV1."""
    if not fields or "." in fields:
        return None

    def remove_from(element: str, part: Node, content: Any) -> Any:
        below = fields.get(element)
        return content if below is None else _without(part, content, below, kept, (*within, element))

    if isinstance(value, dict):
        parts = {
            name: remove_from(f"f:{name}", field_of(node, name), member) for name, member in value.items()
        }
        value = {name: part for name, part in parts.items() if part is not None or f"f:{name}" not in fields}
    elif isinstance(value, list) and node.list_type in ("map", "set"):
        element_of = partial(key_element, node) if node.list_type == "map" else value_element
        items = [remove_from(element_of(element), items_of(node), element) for element in value]
        value = [element for element in items if element is not None]
    return value if value or within in kept else None


def with_parents(fields: Iterable[Path]) -> set[Path]:
    """Paths, and those of the fields that they are in; an item is there only by its own path."""
    return {
        path[:length]
        for path in fields
        for length in range(1, len(path) + 1)
        if length == len(path) or path[length - 1].startswith("f:")
    }


def encode(fields: Iterable[Path]) -> Object:
    """Return paths as FieldsV1."""
    tree: Object = {}
    members = {*fields}
    for path in sorted(members):
        node = tree
        for length, element in enumerate(path):
            if path[:length] in members:
                node["."] = {}
            node = node.setdefault(element, {})
    return tree


def decode(tree: Object) -> set[Path]:
    """Return FieldsV1 as paths."""
    fields: set[Path] = set()
    pending: list[tuple[Path, Object]] = [((), tree)]
    while pending:
        path, node = pending.pop()
        for element, below in node.items():
            if element == ".":
                fields.add(path)
            elif below:
                pending.append(((*path, element), below))
            else:
                fields.add((*path, element))
    return fields


def show(path: Path) -> str:
    """Return a path in the notation of messages: `.spec.containers[name="app"].image`."""
    text = ""
    for element in path:
        if element.startswith("f:"):
            text += f".{element[2:]}"
        elif element.startswith("k:"):
            keys = msgspec.json.decode(element[2:])
            text += "[" + ",".join(f"{key}={msgspec.json.encode(keys[key]).decode()}" for key in keys) + "]"
        elif element.startswith("i:"):
            text += f"[{element[2:]}]"
        elif element.startswith("v:"):
            text += f"[={element[2:]}]"
    return text
