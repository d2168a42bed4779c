"""Strategic merge patch: lists of objects merge by a key, with directives to delete, replace and order."""

from __future__ import annotations

import copy
from typing import Any

from aioinformer.testing.errors import StatusError, bad_request
from aioinformer.testing.schema.gotext import text
from aioinformer.testing.schema.node import Node

# Objects whose other fields the patch removes: sources of volumes, and a deployment's strategy.
_RETAIN_KEYS = "$retainKeys"
_ANY = Node()


def strategic_merge(target: dict[str, Any], patch: dict[str, Any], node: Node) -> dict[str, Any]:
    """Return an object, or a part of it, with a strategic merge patch applied; the arguments are not modified.

    Args:
        target: The object.
        patch: The patch.
        node: The object's schema, which says how its lists merge.

    Raises:
        StatusError: 400 for an unknown directive, 500 for an item without its key.
    """
    directive = patch.get("$patch")
    if directive == "replace":
        return {name: copy.deepcopy(value) for name, value in patch.items() if name != "$patch"}
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise bad_request(f"Unknown patch type found: {directive}")
    result = dict(target)
    if _RETAIN_KEYS in patch:
        retained = patch[_RETAIN_KEYS]
        result = {name: value for name, value in result.items() if name in retained}
    for name, value in patch.items():
        if name.startswith("$deleteFromPrimitiveList/"):
            field = name.partition("/")[2]
            result[field] = [entry for entry in result.get(field) or [] if entry not in value]
        elif name.startswith("$"):
            continue
        elif value is None:
            result.pop(name, None)
        elif isinstance(value, dict):
            current = result.get(name)
            result[name] = strategic_merge(
                current if isinstance(current, dict) else {}, value, _field(node, name)
            )
        elif isinstance(value, list):
            order = patch.get(f"$setElementOrder/{name}")
            result[name] = _merge_list(_field(node, name), result.get(name), value, order)
        else:
            result[name] = value
    for name, order in patch.items():
        field = name.partition("/")[2]
        if (
            name.startswith("$setElementOrder/")
            and field not in patch
            and _field(node, field).merges
            and isinstance(result.get(field), list)
        ):
            result[field] = _merge_list(_field(node, field), result[field], [], order)
    return result


def _field(node: Node, name: str) -> Node:
    return node.properties.get(name) or node.items or _ANY


def _merge_list(node: Node, current: Any, patch: list[Any], order: list[Any] | None) -> list[Any]:
    existing = list(current) if isinstance(current, list) else []
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return [
            {name: value for name, value in item.items() if name != "$patch"}
            if isinstance(item, dict)
            else item
            for item in patch
            if not (isinstance(item, dict) and set(item) == {"$patch"})
        ]
    key, part = node.merge_key, node.items or _ANY
    if not node.merges:
        return copy.deepcopy(patch)
    if len({type(item) for item in existing + patch}) > 1:
        raise StatusError(500, "", f"list element types are not identical: {text([existing, patch])}")
    if key and not all(isinstance(item, dict) for item in existing + patch):
        return copy.deepcopy(patch)
    if not key:
        merged = existing + [item for item in patch if item not in existing]
        return _ordered(merged, existing, patch if order is None else order, None)
    merged = list(existing)
    for item in patch:
        if key not in item:
            message = f"map: {text(item)} does not contain declared merge key: {key}"
            raise StatusError(500, "", message)
        name = item[key]
        place = next((index for index, entry in enumerate(merged) if entry.get(key) == name), None)
        if item.get("$patch") == "delete":
            if place is not None:
                del merged[place]
        elif place is None:
            merged.append(strategic_merge({}, item, part))
        else:
            merged[place] = strategic_merge(merged[place], item, part)
    return _ordered(merged, existing, patch if order is None else order, key)


def _ordered(items: list[Any], before: list[Any], order: list[Any], key: str | None) -> list[Any]:
    """Return merged items in the real server's order.

    Items in the patch keep its order, the others keep their old order. Between the two groups the old order decides,
    and new items come first.
    """

    def identity(item: Any) -> Any:
        return item.get(key) if key is not None and isinstance(item, dict) else item

    wanted = [identity(entry) for entry in order]
    known = [identity(entry) for entry in before]
    named = sorted((i for i in items if identity(i) in wanted), key=lambda item: wanted.index(identity(item)))
    others = [item for item in items if identity(item) not in wanted]
    result: list[Any] = []
    while named and others:
        left, right = identity(others[0]), identity(named[0])
        first = left in known and right in known and known.index(left) < known.index(right)
        result.append(others.pop(0) if first else named.pop(0))
    return result + named + others
