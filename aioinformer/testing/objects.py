"""Conversion of objects to and from their stored form: order of fields, metadata, encoding."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from functools import cache, lru_cache
from itertools import chain
from math import floor
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.testing.errors import StatusError, bad_request
from aioinformer.testing.storage import StoredObject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from aioinformer.testing.resources import ResourceType

Object = dict[str, Any]
"""A Kubernetes object as decoded JSON."""

LARGEST_BODY = 3 * 1024 * 1024
"""Limit in bytes of a request, also after YAML aliases and patch copies are expanded, as on the real server."""

_METADATA_ORDER = (
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)

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

_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="deterministic").encode
_TEXT = (str, type(None))
_NO_LABELS: dict[str, str] = {}


def store(resource: ResourceType, obj: Object) -> StoredObject:
    """Return the stored form of an object whose metadata is complete."""
    if resource.conversion is not None:
        obj = resource.conversion.to_stored(obj)
    metadata = obj["metadata"]
    ordered = {name: metadata[name] for name in _METADATA_ORDER if name in metadata}
    content: Object = {"metadata": ordered}
    for name, value in obj.items():
        if name not in ("apiVersion", "kind", "metadata"):
            content[name] = value
    if resource.custom:
        body = _encode_sorted(ordered)
        del content["metadata"]
        rest = _encode_sorted(content)
        body = b'"metadata":' + body + (b"," + rest[1:] if content else b"}")
    else:
        body = _encode(content)[1:]
    owners = ordered.get("ownerReferences")
    return StoredObject(
        namespace=sys.intern(ordered.get("namespace", "")),
        name=ordered["name"],
        uid=ordered["uid"],
        resource_version=int(ordered.get("resourceVersion", 0)),
        labels=ordered.get("labels") or _NO_LABELS,
        fields=_fields(resource, obj) if resource.fields else (),
        owners=tuple(owner.get("uid", "") for owner in owners) if owners else (),
        terminating="deletionTimestamp" in ordered,
        body=body,
    )


def _fields(resource: ResourceType, obj: Object) -> tuple[str, ...]:
    values = []
    for field in resource.fields:
        value = value_at(obj, field.steps)
        if value is None:
            values.append(field.default)
        elif isinstance(value, str):
            values.append(sys.intern(value))
        elif isinstance(value, bool):
            values.append("true" if value else "false")
        else:
            values.append(str(value))
    return tuple(values)


def value_at(obj: Object, steps: Iterable[str]) -> Any:
    """Return the value of a nested field, or None if it is missing."""
    value: Any = obj
    for step in steps:
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def load(resource: ResourceType, stored: StoredObject) -> Object:
    """Decode a stored object; the caller may change the result."""
    decoded: Object = msgspec.json.decode(resource.prefix + stored.body)
    return decoded if resource.conversion is None else resource.conversion.from_stored(decoded)


def raw(resource: ResourceType, stored: StoredObject) -> msgspec.Raw:
    """Return a stored object as raw JSON, without decoding."""
    if resource.conversion is not None:
        return msgspec.Raw(_encode(load(resource, stored)))
    return msgspec.Raw(resource.prefix + stored.body)


def raw_item(resource: ResourceType, stored: StoredObject) -> msgspec.Raw:
    """Return a stored object as the raw JSON of a list's item."""
    if resource.conversion is not None:
        obj = load(resource, stored)
        return msgspec.Raw(
            _encode({name: part for name, part in obj.items() if name not in ("kind", "apiVersion")})
        )
    return msgspec.Raw(resource.item_prefix + stored.body)


def reversioned(resource: ResourceType, stored: StoredObject, resource_version: int) -> StoredObject:
    """Return the object with another resourceVersion, as a DELETED event shows it."""
    obj = load(resource, stored)
    obj["metadata"]["resourceVersion"] = str(resource_version)
    return store(resource, obj)


def timestamp(seconds: float) -> str:
    """Return a time in the format of metadata."""
    return _timestamp(floor(seconds))


@lru_cache(maxsize=1)
def _timestamp(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse(body: bytes, refusal: str = "json parse error") -> Any:
    """Decode JSON from a client.

    Raises:
        StatusError: 400 for invalid JSON, with a message that starts with `refusal`.
    """
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise bad_request(f"{refusal}: {error}") from error


def parse_yaml(body: bytes) -> Any:
    """Decode JSON or YAML from a client.

    Raises:
        StatusError: 400 for invalid YAML, for YAML that JSON cannot express, and for aliases that expand beyond the
            limit of a request.
    """
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        import yaml

    try:
        loader = _yaml_loader()(body)
        node = loader.get_single_node()
        if node is None:
            return None
        _expanded_size(node, {})
        return msgspec.json.decode(_encode(loader.construct_document(node)))
    except (
        yaml.YAMLError,
        ValueError,
        TypeError,
    ) as error:  # ValueError: a number or time that Python cannot hold
        raise bad_request(f"error decoding YAML: {error}") from error


def _expanded_size(node: Any, known: dict[Any, int]) -> int:
    """Return about how many characters a YAML node has with its aliases expanded.

    Raises:
        StatusError: 400 if it exceeds the limit of a request or contains itself.
    """
    size = known.get(node, 0)
    if size > 0:
        return size
    if node in known:
        raise bad_request("error decoding YAML: yaml: anchor value contains itself")
    known[node] = 0
    value = node.value
    if isinstance(value, str):
        size = 1 + len(value)
    else:
        parts = value if node.id == "sequence" else chain.from_iterable(value)
        size = 1 + sum(_expanded_size(part, known) for part in parts)
    if size > LARGEST_BODY:
        raise bad_request("error decoding YAML: yaml: document contains excessive aliasing")
    known[node] = size
    return size


@cache
def _yaml_loader() -> Any:
    """Return a YAML loader that keeps times as text, as the real server does."""
    import yaml

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers = {  # noqa: RUF012 - as in the class it derives from
            first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
            for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

    return Loader


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
