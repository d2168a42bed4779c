"""Sets of fields in the notation of `managedFields`, for server-side apply.

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

# Atomic fields by their schemas: they have a single owner for everything inside.
_ATOMIC = frozenset(
    [
        "configMapKeyRef",
        "controllerExpandSecretRef",
        "controllerPublishSecretRef",
        "dataSource",
        "fieldRef",
        "hostIPs",
        "involvedObject",
        "labelSelector",
        "nodeExpandSecretRef",
        "nodePublishSecretRef",
        "nodeSelector",
        "nodeStageSecretRef",
        "podSelector",
        "port",
        "regarding",
        "related",
        "required",
        "requiredDuringSchedulingIgnoredDuringExecution",
        "resource",
        "resourceFieldRef",
        "roleRef",
        "scopeSelector",
        "secretKeyRef",
        "secretRef",
        "selector",
        "taints",
    ]
)

# Lists that merge by a key, with a single owner for each item.
_ATOMIC_ITEMS = frozenset(["imagePullSecrets", "ownerReferences", "secrets"])

# A second key of list items besides their strategic merge key, with its default.
_SECOND_KEYS = {
    "containerPort": ("protocol", "TCP"),
    "port": ("protocol", "TCP"),
    "topologyKey": ("whenUnsatisfiable", None),
}


def paths(resource: ResourceType, obj: Object) -> dict[Path, Any]:
    """Return the fields that can have owners, with their values; an item's value counts the items with its keys."""
    found: dict[Path, Any] = {}
    for name, value in obj.items():
        if name == "metadata":
            value = {key: entry for key, entry in value.items() if key not in _SYSTEM_METADATA}
            if not value:
                continue
        if name not in ("apiVersion", "kind"):
            _collect(_schema(resource, name), name, value, (f"f:{name}",), found)
    return found


def _schema(resource: ResourceType, part: str) -> str | None:
    """Return the kind whose schema applies to a part of an object; None means no schema and atomic lists."""
    return None if resource.custom and part != "metadata" else resource.kind


def _collect(kind: str | None, field: str, value: Any, path: Path, found: dict[Path, Any]) -> None:
    if not value or (kind is not None and field in _ATOMIC):
        found[path] = value
    elif isinstance(value, dict):
        for name, entry in value.items():
            _collect(kind, name, entry, (*path, f"f:{name}"), found)
    elif isinstance(value, list) and kind is not None and field in SETS:
        for entry in value:
            found[(*path, _value_element(entry))] = entry
    elif isinstance(value, list) and kind is not None and (key := merge_key(kind, field, value)) is not None:
        for item in value:
            place = (*path, _key_element(key, item))
            if field in _ATOMIC_ITEMS:
                found[place] = item
                continue
            itself = (*place, ".")
            found[itself] = found.get(itself, 0) + 1
            for name, entry in item.items():
                _collect(kind, name, entry, (*place, f"f:{name}"), found)
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


def merge(resource: ResourceType, live: Object, applied: Object) -> Object:
    """Return the live object merged with an applied configuration."""
    merged = {
        name: _merge(_schema(resource, name), name, live.get(name), value) for name, value in applied.items()
    }
    return {**live, **merged}


def _merge(kind: str | None, field: str, live: Any, applied: Any) -> Any:
    if kind is not None and field in _ATOMIC:
        return applied
    if isinstance(applied, dict) and isinstance(live, dict):
        merged = {name: _merge(kind, name, live.get(name), value) for name, value in applied.items()}
        return {**live, **merged}
    if kind is not None and isinstance(applied, list) and isinstance(live, list):
        if field in SETS:
            return live + [entry for entry in applied if entry not in live]
        key = merge_key(kind, field, live + applied)
        if key is not None:
            return _merge_items(kind, field, live, applied, key)
    return applied


def _merge_items(kind: str, field: str, live: list[Any], applied: list[Any], key: str) -> list[Any]:
    wanted = {_key_element(key, item): item for item in applied}
    known = [_key_element(key, item) for item in live]

    def merged(element: str, item: Any) -> Any:
        if element not in wanted:
            return item
        return wanted[element] if field in _ATOMIC_ITEMS else _merge(kind, "", item, wanted[element])

    both = [merged(element, item) for element, item in zip(known, live, strict=True)]
    return both + [item for item in applied if _key_element(key, item) not in known]


def remove(value: Any, path: Path, kept: Set[Path] = frozenset(), within: Path = ()) -> Any:
    """Return a value without a field and without parents that become empty; None if nothing remains.

    Args:
        value: The value at `within`; at first the object itself.
        path: The field's path in the value.
        kept: Paths to keep even if they become empty.
        within: The value's path in the object.
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
                item = None if rest in ((), (".",)) else remove(item, rest, kept, below)
            if item is not None:
                items.append(item)
        value = items
    return value if value or within in kept else None


def with_parents(fields: Iterable[Path]) -> set[Path]:
    """Paths, and those of the fields that they are in; an item's own path, its `.`, is no parent of its fields."""
    return {path[:length] for path in fields for length in range(1, len(path) + 1)}


def encode(fields: Iterable[Path]) -> Object:
    """Return paths as FieldsV1."""
    tree: Object = {}
    for path in sorted(fields):
        node = tree
        for element in path:
            node = node.setdefault(element, {})
    return tree


def decode(tree: Object) -> set[Path]:
    """Return FieldsV1 as paths."""
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
    """Return a path in the notation of messages: `.spec.containers[name="app"].image`."""
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
