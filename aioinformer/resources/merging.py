"""Edit an object through a Struct that has only some of its fields: the others stay as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..errors import AmbiguousEditError
from ..objects.decoders import decoder_of
from ..objects.encoding import fields_of
from ..objects.json_values import frozen, same
from ..objects.keys import resource_version_of
from ..objects.kube_object import KubeObject
from ..objects.nesting import decode_any
from ..objects.shapes import SEEN, WHOLE, Fields, Items, Members, Positions, Shape, Values, is_whole, shape_of
from .list_items import key_of, match_items

_MISSING = object()


def is_partial(obj: Any) -> bool:
    """Return whether an object may lack fields that the server's has: a Struct drops those that it does not declare.

    Reading drops also what a Struct forbids. So only a Struct that was not read, and forbids other fields, is whole. So
    is a user's pydantic model that was not read, or allows other fields; the models of the libraries have all fields.
    """
    if _is_own_model(obj):
        return obj.model_config.get("extra") != "allow" and bool(resource_version_of(obj))
    if not isinstance(obj, msgspec.Struct) or isinstance(obj, KubeObject):
        return False
    return bool(resource_version_of(obj)) or not is_whole(type(obj))


def _is_own_model(obj: Any) -> bool:
    return hasattr(obj, "model_dump") and not hasattr(obj, "openapi_types") and not isinstance(obj, Mapping)


def with_unknown_fields(
    body: bytes, edited: Any, *, original: dict[str, Any] | None = None, known: Any = None
) -> dict[str, Any]:
    """Return an object with the fields of an edited one, and all fields that its class does not have.

    Values that the edit does not change are those of the original, not copies.

    Args:
        body: The object at the server.
        edited: An object of a class.
        original: The body, decoded; None to decode it.
        known: The body as the class reads it; None to decode it.

    Raises:
        DecodeError: The object does not fit the class.
        AmbiguousEditError: The edit of a list does not say which of its items was changed.
    """
    whole: dict[str, Any] = decode_any(body) if original is None else original
    known = decoder_of(type(edited))(body, None) if known is None else known
    merged = _merge("", _shape_for(edited, whole), whole, fields_of(known), fields_of(edited))
    assert isinstance(merged, dict)
    return merged


def find_lost_when_applied(original: dict[str, Any], applied: Any) -> str:
    """Return a field that a server-side apply of a Struct would not keep, because its class lacks it.

    The server replaces lists without keys, and some objects, such as label selectors. An item of another list becomes a
    second one if it lacks a key.

    Args:
        original: The object at the server.
        applied: A Struct that was read.

    Returns:
        The path, such as ``"spec.rules[].http"``; ``""`` if there is none.
    """
    return _find_lost("", _shape_for(applied, original), original, fields_of(applied))


def _shape_for(obj: Any, original: dict[str, Any]) -> Shape:
    """Return what the class of an object knows of the server's object."""
    if _is_own_model(obj):
        return SEEN
    if not isinstance(obj, msgspec.Struct) or isinstance(obj, KubeObject):
        return WHOLE
    struct: Any = type(obj)
    return shape_of(struct, str(original.get("apiVersion", "")), str(original.get("kind", "")))


def _find_lost(path: str, shape: Shape, original: Any, applied: Any) -> str:
    shape = shape.for_value(applied)
    inner: list[tuple[str, Shape, Any, Any]] = []
    if isinstance(original, dict) and isinstance(applied, dict):
        if isinstance(shape, Fields) and shape.is_atomic:
            unknown = shape.unknown(original)
            return f"{path}.{unknown}" if unknown else ""
        inner = [
            (f"{path}.{name}" if path else name, of, original[name], applied[name])
            for name in applied.keys() & original.keys()
            if (of := _shape_of_field(shape, name)) is not None
        ]
    elif isinstance(original, list) and isinstance(applied, list):
        if not (isinstance(shape, Items) and shape.is_merged):
            unknown = shape.unknown(original, applied) if applied else ""
            return f"{path}[].{unknown}" if unknown else ""
        lacking = [key for key in shape.keys if isinstance(shape.of, Fields) and key not in shape.of.fields]
        if lacking and original and applied:
            return f"{path}[].{lacking[0]}"
        items = {key_of(item, shape, shape.keys): item for item in original}
        kept = ((items[key], item) for item in applied if (key := key_of(item, shape, shape.keys)) in items)
        inner += ((f"{path}[]", shape.of, before, item) for before, item in kept)
    return next(filter(None, (_find_lost(*arguments) for arguments in inner)), "")


def _merge(path: str, shape: Shape, original: Any, known: Any, edited: Any) -> Any:
    """Apply a change to the original.

    Args:
        path: Of the value, for messages.
        shape: What the Struct's class knows of the value.
        original: The value at the server.
        known: What the Struct has of it.
        edited: What the Struct should have.
    """
    if same(known, edited):
        return original
    if isinstance(original, dict) and isinstance(edited, dict):
        before = shape.for_value(original)
        if before is not shape.for_value(edited) and (unknown := before.unknown(original)):
            name = _name_of(before)
            raise AmbiguousEditError(
                path,
                f"it was a {name} and is a {_name_of(shape.for_value(edited))} now, so it is unknown whether it keeps "
                f"a field that {name} lacks ({unknown}). Nothing was written. Give {name} the field, or send a patch",
            )
        return _merge_fields(path, before, original, known if isinstance(known, dict) else {}, edited)
    if isinstance(original, list) and isinstance(edited, list):
        of = shape.for_value(original)
        known = known if isinstance(known, list) else []
        if isinstance(of, Positions):
            return _merge_positions(path, of, original, known, edited)
        if isinstance(of, Members):
            return _merge_members(path, of, original, known, edited)
        items = of if isinstance(of, Items) else Items(of, is_custom=of is SEEN)
        return _merge_items(path, items, original, known, edited)
    return edited


def _merge_fields(
    path: str, shape: Shape, original: dict[str, Any], known: dict[str, Any], edited: dict[str, Any]
) -> dict[str, Any]:
    omitted = shape.omitted if isinstance(shape, Fields) else {}
    merged = {}
    for name, value in original.items():
        of = _shape_of_field(shape, name)
        if of is None:
            merged[name] = value
            continue
        default = omitted.get(name, _MISSING)
        was, now = known.get(name, default), edited.get(name, default)
        if name in edited or same(was, now) or (isinstance(now, dict) and of.unknown(value)):
            merged[name] = _merge(f"{path}.{name}" if path else name, of, value, was, now)
    # A default that the original lacks is no edit.
    return merged | {
        name: value
        for name, value in edited.items()
        if name not in original and not same(known.get(name, omitted.get(name, _MISSING)), value)
    }


def _shape_of_field(shape: Shape, name: str) -> Shape | None:
    """Return the shape of a field; None if the class does not have it."""
    if isinstance(shape, Fields):
        return shape.fields.get(name, shape.rest)
    return shape.of if isinstance(shape, Values) else shape


def _merge_items(
    path: str, shape: Items, original: list[Any], known: list[Any], edited: list[Any]
) -> list[Any]:
    if shape.of is WHOLE and not any(isinstance(item, (dict, list)) for item in original):
        return edited
    places = match_items(path, shape, original, known, edited)
    return [
        item
        if place is None
        else _merge(_path_of_item(path, shape, place, item), shape.of, original[place], known[place], item)
        for place, item in zip(places, edited, strict=True)
    ]


def _path_of_item(path: str, shape: Items, place: int, item: Any) -> str:
    return f"{path}[{item.get(shape.keys[0], place) if shape.keys else place}]"


def _merge_members(
    path: str, shape: Members, original: list[Any], known: list[Any], edited: list[Any]
) -> list[Any]:
    """Return the members of a set: those that stay in the order that they have, then the new ones."""
    wanted = {frozen(item): item for item in edited}
    if wanted.keys() == {frozen(item) for item in known}:
        return original
    if unknown := shape.unknown(original):
        raise AmbiguousEditError(
            path,
            f"members of the set have a field that {_name_of(shape.of)} does not have ({unknown}), so it is unknown "
            f"which have changed. Nothing was written. Give {_name_of(shape.of)} the field, or send a patch",
        )
    kept = {value: item for item in original if (value := frozen(item)) in wanted}
    return [*kept.values(), *(item for value, item in wanted.items() if value not in kept)]


def _merge_positions(
    path: str, shape: Positions, original: list[Any], known: list[Any], edited: list[Any]
) -> list[Any]:
    """Return a tuple, or a Struct with ``array_like``; a later version's may be longer."""
    places = [*zip(shape.of, original, known, edited, strict=False)]
    changed = [_merge(f"{path}[{place}]", *values) for place, values in enumerate(places)]
    return [*changed, *edited[len(places) :], *original[len(shape.of) :]]


def _name_of(shape: Shape) -> str:
    return shape.name if isinstance(shape, Fields) else "the class"
