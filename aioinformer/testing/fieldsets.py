"""Sets of an object's fields, as `managedFields` writes them: who owns what, for server-side apply.

A path is a tuple of elements in the notation of FieldsV1: `f:spec` is a field, `k:{"name":"app"}` the item of a
list that merges by a key, `v:"x"` the value of a list that is a set, and `.` the item itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.testing.strategic import SETS, merge_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Set

    from aioinformer.testing.objects import Object
    from aioinformer.testing.resources import ResourceType

Path = tuple[str, ...]

_SYSTEM_METADATA = frozenset(
    [
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generateName",
        "generation",
        "managedFields",
        "name",
        "namespace",
        "resourceVersion",
        "selfLink",
        "uid",
    ]
)

# What tells items apart besides the key by which a strategic merge patch merges them, and its default.
_SECOND_KEYS = {
    "containerPort": ("protocol", "TCP"),
    "port": ("protocol", "TCP"),
    "topologyKey": ("whenUnsatisfiable", None),
}


def paths(resource: ResourceType, obj: Object) -> dict[Path, Any]:
    """The fields of an object that can be owned, with their values."""
    found: dict[Path, Any] = {}
    for name, value in obj.items():
        if name == "metadata":
            value = {key: entry for key, entry in value.items() if key not in _SYSTEM_METADATA}
            if not value:
                continue
        if name not in ("apiVersion", "kind"):
            _collect(name, value, (f"f:{name}",), found, keyed=not resource.custom)
    return found


def _collect(field: str, value: Any, path: Path, found: dict[Path, Any], *, keyed: bool) -> None:
    if isinstance(value, dict) and value:
        for name, entry in value.items():
            _collect(name, entry, (*path, f"f:{name}"), found, keyed=keyed)
    elif isinstance(value, list) and value and field in SETS:
        for entry in value:
            found[(*path, _value_element(entry))] = entry
    elif isinstance(value, list) and value and keyed and (key := merge_key(field, value)) is not None:
        for item in value:
            place = (*path, _key_element(key, item))
            found[(*place, ".")] = None
            for name, entry in item.items():
                _collect(name, entry, (*place, f"f:{name}"), found, keyed=keyed)
    else:
        found[path] = value


def _key_element(key: str, item: Object) -> str:
    keys = {key: item.get(key)}
    if key in _SECOND_KEYS:
        second, default = _SECOND_KEYS[key]
        keys[second] = item.get(second, default)
    return "k:" + msgspec.json.encode(keys).decode()


def _value_element(value: Any) -> str:
    return "v:" + msgspec.json.encode(value).decode()


def merge(resource: ResourceType, live: Any, applied: Any, field: str = "") -> Any:
    """What is live with an applied configuration laid over it."""
    if isinstance(applied, dict) and isinstance(live, dict):
        result = dict(live)
        for name, value in applied.items():
            result[name] = merge(resource, live.get(name), value, name)
        return result
    if isinstance(applied, list) and isinstance(live, list):
        if field in SETS:
            return live + [entry for entry in applied if entry not in live]
        key = None if resource.custom else merge_key(field, live + applied)
        if key is not None:
            return _merge_items(resource, live, applied, key)
    return applied


def _merge_items(resource: ResourceType, live: list[Any], applied: list[Any], key: str) -> list[Any]:
    wanted = {_key_element(key, item): item for item in applied}
    known = [_key_element(key, item) for item in live]
    merged = [
        merge(resource, item, wanted[element]) if element in wanted else item
        for element, item in zip(known, live, strict=True)
    ]
    return merged + [item for item in applied if _key_element(key, item) not in known]


def remove(value: Any, path: Path, kept: Set[Path] = frozenset(), within: Path = ()) -> Any:
    """A value without a field, and without what is left empty around it and is not kept; None if nothing is left.

    Args:
        value: What is `within` the object; the object itself at first.
        path: Where in it the field is.
        kept: What stays even if it is empty.
        within: Where in the object the value is.
    """
    element, rest = path[0], path[1:]
    below = (*within, element)
    if element.startswith("f:") and isinstance(value, dict) and element[2:] in value:
        name = element[2:]
        left = remove(value[name], rest, kept, below) if rest else None
        value = {key: entry for key, entry in value.items() if key != name or left is not None}
        if left is not None:
            value[name] = left
    elif element.startswith("v:") and isinstance(value, list):
        value = [entry for entry in value if _value_element(entry) != element]
    elif element.startswith("k:") and isinstance(value, list):
        key, *_ = msgspec.json.decode(element[2:])
        items = []
        for item in value:
            if isinstance(item, dict) and _key_element(key, item) == element:
                item = None if rest == (".",) else remove(item, rest, kept, below)
            if item is not None:
                items.append(item)
        value = items
    return value if value or within in kept else None


def with_parents(fields: Iterable[Path]) -> set[Path]:
    """Paths, and those of the fields that they are in; an item's own path, its `.`, is no parent of its fields."""
    return {path[:length] for path in fields for length in range(1, len(path) + 1)}


def encode(fields: Iterable[Path]) -> Object:
    """Paths as FieldsV1."""
    tree: Object = {}
    for path in sorted(fields):
        node = tree
        for element in path:
            node = node.setdefault(element, {})
    return tree


def decode(tree: Object) -> set[Path]:
    """FieldsV1 as paths."""
    found: set[Path] = set()
    pending: list[tuple[Path, Object]] = [((), tree)]
    while pending:
        path, node = pending.pop()
        for element, below in node.items():
            if below:
                pending.append(((*path, element), below))
            else:
                found.add((*path, element))
    return found


def show(path: Path) -> str:
    """A path as messages write it: `.spec.containers[name="app"].image`."""
    text = ""
    for element in path:
        if element.startswith("f:"):
            text += f".{element[2:]}"
        elif element.startswith("k:"):
            keys = msgspec.json.decode(element[2:])
            text += "[" + ",".join(f"{key}={msgspec.json.encode(keys[key]).decode()}" for key in keys) + "]"
        elif element.startswith("v:"):
            text += f"[={element[2:]}]"
    return text
