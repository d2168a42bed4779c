"""Strategic merge patch: lists of objects merge by a key, with directives to delete, replace and order."""

from __future__ import annotations

import copy
from collections import deque
from typing import Any

from aioinformer.testing.errors import StatusError, bad_request
from aioinformer.testing.objects import identity
from aioinformer.testing.schema.gotext import text, type_name
from aioinformer.testing.schema.node import Node, field_of, items_of

# Objects whose other fields the patch removes: sources of volumes, and a deployment's strategy.
_RETAIN_KEYS = "$retainKeys"
_ORDER = "$setElementOrder/"
_DELETE = "$deleteFromPrimitiveList/"


def strategic_merge(target: dict[str, Any], patch: dict[str, Any], node: Node) -> dict[str, Any]:
    """Return an object, or a part of it, with a strategic merge patch applied; the arguments are not modified.

    Args:
        target: The object.
        patch: The patch.
        node: The object's schema, which says how its lists merge.

    Raises:
        StatusError: 400 for keys to retain that are no list; 500 for an unknown directive, an item without its key, or
            items in another order than required.
    """
    directive = patch.get("$patch")
    if directive == "replace":
        return {name: copy.deepcopy(value) for name, value in patch.items() if name != "$patch"}
    if directive == "delete":
        return {}
    if directive is not None:
        raise _unknown(patch)
    result = dict(target)
    if _RETAIN_KEYS in patch:
        if not isinstance(retained := patch[_RETAIN_KEYS], list):
            raise bad_request("invalid patch format of retainKeys")
        names = {*map(identity, retained)}
        result = {name: value for name, value in result.items() if identity(name) in names}
    orders = {name.removeprefix(_ORDER): order for name, order in patch.items() if name.startswith(_ORDER)}
    for field, order in orders.items():
        part, current = field_of(node, field), result.get(field)
        _check_order(patch.get(field), order, part.merge_key)
        if field not in patch and part.merges and isinstance(current, list):
            result[field] = _merge_list(part, current, [], order)
    for name, value in patch.items():
        if name.startswith(_DELETE):
            current = result.get(name.removeprefix(_DELETE))
            if isinstance(value, list) and isinstance(current, list):
                gone = {*map(identity, value)}
                result[name.removeprefix(_DELETE)] = [item for item in current if identity(item) not in gone]
        elif not name.startswith("$"):
            _merge_field(result, name, value, field_of(node, name), orders.get(name, value))
    return result


def _merge_field(result: dict[str, Any], name: str, value: Any, node: Node, order: Any) -> None:
    """Set a field to what a patch makes of it, in place."""
    current = result.get(name)
    if isinstance(value, dict) and isinstance(current, dict):
        result[name] = strategic_merge(current, value, node)
    elif isinstance(value, list) and isinstance(current, list):
        result[name] = _merge_list(node, current, value, order)
    elif value is None or _is_directive(value):
        result.pop(name, None)
    else:
        result[name] = _new_value(value)


def _unknown(patch: dict[str, Any]) -> StatusError:
    return StatusError(500, "", f"unknown patch type: {patch['$patch']} in map: {text(patch)}")


def _is_directive(value: Any) -> bool:
    return isinstance(value, dict) and "$patch" in value


def _new_value(value: Any) -> Any:
    """Return a patch's value for a field that the object lacks: without nulls and directives, and not merged."""
    if isinstance(value, dict):
        return {
            name: _new_value(member)
            for name, member in value.items()
            if member is not None and not name.startswith("$") and not _is_directive(member)
        }
    return (
        [_new_value(element) for element in value if not _is_directive(element)]
        if isinstance(value, list)
        else value
    )


def _merge_list(node: Node, existing: list[Any], patch: list[Any], order: list[Any]) -> list[Any]:
    if any(isinstance(item, dict) and item.get("$patch") == "replace" for item in patch):
        return [
            {name: value for name, value in item.items() if name != "$patch"}
            if isinstance(item, dict)
            else item
            for item in patch
            if not (isinstance(item, dict) and set(item) == {"$patch"})
        ]
    key, part = node.merge_key, items_of(node)
    if not node.merges:
        return copy.deepcopy(patch)
    if len({type(item) for item in existing + patch}) > 1:
        raise StatusError(500, "", f"list element types are not identical: {text([existing, patch])}")
    if key and not all(isinstance(item, dict) for item in existing + patch):
        return copy.deepcopy(patch)
    if not key:
        known = {*map(identity, existing)}
        both = existing + [item for item in patch if identity(item) not in known]
        return _order(both, existing, order, key)
    merged: list[Any] = list(existing)
    places: dict[bytes, list[int]] = {}  # of the items of a key that are not deleted
    for index, entry in enumerate(existing):
        places.setdefault(identity(entry.get(key)), []).append(index)
    for item in patch:
        if key not in item:
            message = f"map: {text(item)} does not contain declared merge key: {key}"
            raise StatusError(500, "", message)
        positions = places.setdefault(identity(item[key]), [])
        if item.get("$patch") == "delete":
            if positions:
                merged[positions.pop(0)] = None
        elif "$patch" in item:
            raise _unknown(item)
        elif positions:
            merged[positions[0]] = strategic_merge(merged[positions[0]], item, part)
        else:
            positions.append(len(merged))
            merged.append(_new_value(item))
    return _order([item for item in merged if item is not None], existing, order, key)


def _check_order(patch: Any, order: Any, key: str) -> None:
    """Refuse a required order that is no list, and items of a patch that it does not have, or has in another order."""
    if not isinstance(order, list):
        raise _unexpected_error("[]interface {}", order)
    items = patch if isinstance(patch, list) else []
    for entry in (*order, *items) if key else ():
        if not isinstance(entry, dict):
            raise _unexpected_error("map[string]interface {}", entry)
    wanted = iter([entry.get(key) if key else entry for entry in order])
    for item in items if order else ():
        if not _is_directive(item) and (item.get(key) if key else item) not in wanted:
            why = f"The order in patch list:\n{text(patch)}\n doesn't match $setElementOrder list:\n{text(order)}\n"
            raise StatusError(500, "", why)


def _unexpected_error(wanted: str, value: Any) -> StatusError:
    given = "%!s(<nil>)" if value is None else type_name(value)
    return StatusError(500, "", f"expected a {wanted}, but received a {given}")


def _order(items: list[Any], before: list[Any], order: list[Any], key: str) -> list[Any]:
    """Return merged items in the real server's order.

    Items in the patch keep its order, the others keep their old order. Between the two groups the old order decides,
    and new items come first.
    """

    def identity_of(item: Any) -> bytes:
        return identity(item.get(key) if key and isinstance(item, dict) else item)

    wanted = _first_places([*map(identity_of, order)])
    known = _first_places([*map(identity_of, before)])
    named = deque(
        sorted((i for i in items if identity_of(i) in wanted), key=lambda item: wanted[identity_of(item)])
    )
    others = deque(item for item in items if identity_of(item) not in wanted)
    result: list[Any] = []
    while named and others:
        left, right = identity_of(others[0]), identity_of(named[0])
        first = left in known and right in known and known[left] < known[right]
        result.append((others if first else named).popleft())
    return [*result, *named, *others]


def _first_places(identities: list[bytes]) -> dict[bytes, int]:
    return {place: number for number, place in reversed([*enumerate(identities)])}
