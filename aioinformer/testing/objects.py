"""Objects as decoded JSON: values by path, times, metadata, and Go's words for values of a wrong type."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from math import floor
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.testing.errors import StatusError, bad_request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Object = dict[str, Any]
"""A Kubernetes object as decoded JSON."""

LARGEST_BODY = 3 * 1024 * 1024
"""Limit in bytes of a request, also after YAML aliases and patch copies are expanded, as on the real server."""

_DROPPED_WHEN_EMPTY = frozenset(
    [
        "annotations",
        "finalizers",
        "generateName",
        "labels",
        "managedFields",
        "ownerReferences",
        "resourceVersion",
        "uid",
    ]
)

_encode_sorted = msgspec.json.Encoder(order="deterministic").encode
_TEXT = (str, type(None))


def value_at(obj: Object, steps: Iterable[str]) -> Any:
    """Return the value of a nested field, or None if it is missing."""
    value: Any = obj
    for step in steps:
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def timestamp(seconds: float) -> str:
    """Return a time in the format of metadata."""
    return _timestamp(floor(seconds))


@lru_cache(maxsize=1)
def _timestamp(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def metadata_of(obj: Any, refused: Callable[[str], StatusError] = bad_request) -> Object:
    """Return an object's metadata, with its types checked and repeated owner references removed.

    Args:
        obj: The object.
        refused: Builds the error from Go's message about a value of the wrong type.

    Raises:
        StatusError: 400, or the error from `refused`, if a value has the wrong type.
    """
    if not isinstance(obj, dict):
        raise bad_request(
            "the object provided is unrecognized (must be of type object): it is no JSON object"
        )
    metadata = obj.get("metadata")
    if metadata is None:
        return {}
    if not isinstance(metadata, dict):
        raise refused(_wrong_type("metadata", "v1.ObjectMeta", metadata))
    for name in ("name", "generateName", "namespace", "uid", "resourceVersion"):
        value = metadata.get(name)
        if value is not None and not isinstance(value, str):
            raise refused(_wrong_type(f"metadata.{name}", "string", value))
    for name in ("labels", "annotations"):
        value = metadata.get(name)
        if value is not None and not isinstance(value, dict):
            raise refused(_wrong_type(f"metadata.{name}", "map[string]string", value))
        for entry in (value or {}).values():
            if not isinstance(entry, _TEXT):
                raise refused(_wrong_type(f"metadata.{name}", "string", entry))
    for name in ("finalizers", "ownerReferences"):
        value = metadata.get(name)
        if value is not None and not isinstance(value, list):
            raise refused(_wrong_type(f"metadata.{name}", "[]string", value))
    for finalizer in metadata.get("finalizers") or ():
        if not isinstance(finalizer, str):
            raise refused(_wrong_type("metadata.finalizers", "string", finalizer))
    found = {
        key: value
        for key, value in metadata.items()
        if value is not None and (value or key not in _DROPPED_WHEN_EMPTY)
    }
    for name in ("labels", "annotations"):
        if name in found:  # a Go string cannot be null
            found[name] = {key: value or "" for key, value in found[name].items()}
    if len(owners := found.get("ownerReferences") or ()) > 1:
        unique: dict[bytes, Any] = {}
        for each in owners:
            unique.setdefault(_encode_sorted(each), each)
        found["ownerReferences"] = list(unique.values())
    return found


def wrong_type(field: str, wanted: str, value: Any) -> str:
    """Return the message of Go's JSON decoder for a value of the wrong type."""
    return f"json: cannot unmarshal {go_name(value)} into Go struct field {field} of type {wanted}"


def go_name(value: Any) -> str:
    """Return the name of a JSON value's type in Go's messages."""
    names = {list: "array", dict: "object", str: "string", bool: "bool", type(None): "null"}
    return names.get(type(value), "number")


def _wrong_type(path: str, wanted: str, value: Any) -> str:
    return wrong_type(f"ObjectMeta.{path}", wanted, value)
