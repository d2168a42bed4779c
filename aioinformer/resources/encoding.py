"""Encode objects of any type as request bodies; the counterpart of ``codec.py``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec
import msgspec.inspect

from ..deltas import DeletedFinalStateUnknown
from ..errors import ConfigError, DecodeError
from ..objects.decoders import api_client_of
from ..objects.kube_object import KubeObject, encode


def fields_of(obj: Any) -> dict[str, Any]:
    """Return an object as a dict. The caller may change its top level.

    Fields of a Struct or model that are None are omitted.

    Raises:
        ConfigError: The object's type is not supported.
    """
    if isinstance(obj, KubeObject):
        return obj.to_dict()
    if isinstance(obj, Mapping):
        return dict(obj)
    if isinstance(obj, DeletedFinalStateUnknown):
        fields = None
    elif isinstance(obj, msgspec.Struct):
        fields = _without_none(msgspec.to_builtins(obj))
    elif hasattr(obj, "model_dump"):  # first, since models of kubernetes.aio have openapi_types, too
        fields = obj.model_dump(mode="json", by_alias=True, exclude_none=True)
    elif hasattr(obj, "openapi_types"):
        fields = api_client_of(type(obj)).sanitize_for_serialization(obj)
    else:
        fields = None
    if not isinstance(fields, dict):
        raise ConfigError(
            f"{type(obj).__name__} is not an object: use KubeObject, dict, a msgspec.Struct or a model"
        )
    return fields


def body_of(fields: Any, what: str) -> bytes:
    """Return a dict or list as a request body.

    Args:
        fields: The dict or list.
        what: Names the request in messages.

    Raises:
        ConfigError: JSON cannot represent it. NaN and infinities count, too; msgspec would write null.
    """
    try:
        body = encode(fields)
        if b"null" in body:
            json.dumps(fields, allow_nan=False, skipkeys=True, default=repr)
    except (DecodeError, ValueError) as error:
        raise ConfigError(f"{what}: the request was not sent: {error}") from error
    return body


def require_whole(obj: Any) -> None:
    """Check that an object may replace the server's: a partial object would erase fields.

    Raises:
        ConfigError: It is a Struct that may drop fields when it is decoded.
    """
    if isinstance(obj, msgspec.Struct) and not isinstance(obj, KubeObject) and not _is_whole(type(obj)):
        raise ConfigError(
            f"{type(obj).__name__} has only some of an object's fields, and an update would erase the others: use "
            "apply, or patch with the fields that change (a Struct is complete if all its parts forbid_unknown_fields)"
        )


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_none(part) for name, part in value.items() if part is not None}
    if isinstance(value, list):
        return [_without_none(part) for part in value]
    return value


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
