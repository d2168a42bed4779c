"""Custom resources by the schemas of their definitions: read as Go would, checked, and refused with all causes."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import msgspec

from aioinformer.testing import errors
from aioinformer.testing.schema.builtin import node_of
from aioinformer.testing.schema.node import Node
from aioinformer.testing.schema.unknown import unknown_fields

if TYPE_CHECKING:
    from aioinformer.testing.objects import Object
    from aioinformer.testing.resources import ResourceType


@cache
def _metadata() -> Node:
    """Return the schema of every object's metadata."""
    return (node_of("v1", "ConfigMap") or Node()).properties.get("metadata", Node())


def read_custom(resource: ResourceType, obj: Object) -> tuple[Object, list[str]]:
    """Return a custom resource with its defaults and without unknown fields, and the paths of those.

    A resource without a schema keeps all fields.
    """
    if resource.schema is None:
        return obj, []
    read, unknown = resource.schema.read(msgspec.to_builtins(obj))
    return read, [*unknown_fields(_metadata(), obj.get("metadata"), "metadata"), *unknown]


def check_custom(resource: ResourceType, new: Object, old: Object | None, subresource: str = "") -> None:
    """Refuse a custom resource that does not fit its schema; faults of unchanged values are tolerated.

    Raises:
        StatusError: 422 with every cause.
    """
    if resource.schema is None:
        return
    if faults := resource.schema.faults(new, old, subresource):
        causes = [fault.cause for fault in faults]
        raise errors.invalid(resource.kind, resource.group, new["metadata"]["name"], causes)
