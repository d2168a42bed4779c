"""Conversion of objects to and from their stored form: order of fields, encoding."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from aioinformer.testing.objects import Object, value_at
from aioinformer.testing.schema.node import OF_EVERY_OBJECT
from aioinformer.testing.storage.storage import StoredObject

if TYPE_CHECKING:
    from aioinformer.testing.resources import ResourceType

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

_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="deterministic").encode
_NO_LABELS: dict[str, str] = {}


def store(resource: ResourceType, obj: Object) -> StoredObject:
    """Return the stored form of an object whose metadata is complete."""
    if resource.conversion is not None:
        obj = resource.conversion.to_stored(obj)
    metadata = obj["metadata"]
    ordered = {name: metadata[name] for name in _METADATA_ORDER if name in metadata}
    content: Object = {"metadata": ordered}
    for name, value in obj.items():
        if name not in OF_EVERY_OBJECT:
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


def load(resource: ResourceType, stored: StoredObject) -> Object:
    """Decode a stored object; the caller may change the result."""
    decoded: Object = msgspec.json.decode(resource.prefix + stored.body)
    return decoded if resource.conversion is None else resource.conversion.from_stored(decoded)


@lru_cache(maxsize=16_384)
def read(resource: ResourceType, stored: StoredObject) -> Object:
    """Return a stored object decoded, to read it only: the result is shared."""
    return load(resource, stored)


def raw(resource: ResourceType, stored: StoredObject) -> msgspec.Raw:
    """Return a stored object as raw JSON, without decoding."""
    if resource.conversion is not None:
        return msgspec.Raw(_encode(load(resource, stored)))
    return msgspec.Raw(resource.prefix + stored.body)


def raw_item(resource: ResourceType, stored: StoredObject) -> msgspec.Raw:
    """Return a stored object as the raw JSON of a list's item."""
    if resource.conversion is not None:
        obj = load(resource, stored)
        if resource.custom:
            return msgspec.Raw(_encode(obj))
        return msgspec.Raw(
            _encode({name: part for name, part in obj.items() if name not in ("kind", "apiVersion")})
        )
    return msgspec.Raw(resource.item_prefix + stored.body)


def with_version(resource: ResourceType, stored: StoredObject, resource_version: int) -> StoredObject:
    """Return the object with another resourceVersion, as a DELETED event shows it."""
    obj = load(resource, stored)
    obj["metadata"]["resourceVersion"] = str(resource_version)
    return store(resource, obj)
