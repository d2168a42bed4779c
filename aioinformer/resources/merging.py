"""Edit an object through a Struct that has only some of its fields: the others stay as they are."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec
import msgspec.inspect

from ..objects.decoders import decoder_of
from ..objects.encoding import fields_of
from ..objects.kube_object import KubeObject
from ..objects.list_items import by_key
from ..objects.nesting import decode_any

_MISSING = object()
_identity = msgspec.json.Encoder(order="deterministic").encode


def is_partial(obj: Any) -> bool:
    """Return whether an object may lack fields that the server's has: a Struct drops those that it does not declare."""
    return isinstance(obj, msgspec.Struct) and not isinstance(obj, KubeObject) and not _is_whole(type(obj))


@lru_cache(maxsize=256)
def _is_whole(struct: type[msgspec.Struct]) -> bool:
    """Return whether decoding into a Struct, and into the Structs within it, keeps all fields."""
    found: set[type] = set()
    left: list[Any] = [msgspec.inspect.type_info(struct)]
    while left:
        part = left.pop()
        if isinstance(part, msgspec.inspect.StructType):
            if not part.forbid_unknown_fields:
                return False
            if part.cls in found:
                continue
            found.add(part.cls)
            left += [field.type for field in part.fields]
        for name in ("item_type", "key_type", "value_type", "types", "item_types"):
            inner = getattr(part, name, ())
            left += inner if isinstance(inner, tuple) else [inner]
    return True


def with_unknown_fields(body: bytes, edited: Any) -> dict[str, Any]:
    """Return an object with the fields of an edited Struct, and all fields that the Struct does not have.

    Items of lists are matched by name, type, key or uid, else by index if the length is the same, else by equality. An
    item that matches none has only the fields of the Struct.

    Args:
        body: The object at the server.
        edited: A Struct.

    Raises:
        DecodeError: The object does not fit the Struct.
    """
    known = fields_of(decoder_of(type(edited))(body, None))
    merged = _merged(decode_any(body), known, fields_of(edited))
    assert isinstance(merged, dict)
    return merged


def _merged(original: Any, known: Any, edited: Any) -> Any:
    """Apply a change to the original.

    Args:
        original: The value at the server.
        known: What the Struct has of it.
        edited: What the Struct should have.
    """
    if known == edited:
        return original
    if isinstance(original, dict) and isinstance(edited, dict):
        return _merged_fields(original, known if isinstance(known, dict) else {}, edited)
    if isinstance(original, list) and isinstance(known, list) and isinstance(edited, list):
        return _merged_items(original, known, edited)
    return edited


def _merged_fields(original: dict[str, Any], known: dict[str, Any], edited: dict[str, Any]) -> dict[str, Any]:
    merged = {}
    for name, value in original.items():
        if name in edited:
            merged[name] = _merged(value, known.get(name, _MISSING), edited[name])
        elif name not in known:
            merged[name] = value
    # A default that the original lacks is no edit.
    added = (name for name in edited if name not in original and known.get(name, _MISSING) != edited[name])
    return {**merged, **{name: edited[name] for name in added}}


def _merged_items(original: list[Any], known: list[Any], edited: list[Any]) -> list[Any]:
    if keyed := by_key(original, known, edited):
        mine, seen, wanted = keyed
        return [
            _merged(mine[key], seen.get(key, _MISSING), item) if key in mine else item
            for key, item in wanted.items()
        ]
    if len(original) == len(known) == len(edited):
        return [*map(_merged, original, known, edited)]
    if len(original) != len(known):
        return edited
    places = {_identity(item): number for number, item in reversed([*enumerate(known)])}
    return [
        original[places[identity]] if (identity := _identity(item)) in places else item for item in edited
    ]
