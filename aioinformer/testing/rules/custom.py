"""Custom resources by the schemas of their definitions: read as Go would, checked, with all causes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.testing.objects import go_name
from aioinformer.testing.schema.builtin import metadata_node
from aioinformer.testing.schema.decode import read_object
from aioinformer.testing.schema.faults import Fault
from aioinformer.testing.schema.gotext import text, type_name
from aioinformer.testing.schema.scalars import UnreadableError
from aioinformer.testing.schema.unknown import unknown_fields

if TYPE_CHECKING:
    from aioinformer.testing.objects import Object
    from aioinformer.testing.resources import ResourceType


def read_custom(resource: ResourceType, obj: Object) -> tuple[Object, list[str]]:
    """Return a custom resource with its defaults and without unknown fields, and the paths of those.

    A resource without a schema keeps all fields.

    Raises:
        UnreadableError: A value in the metadata does not fit the type of its field.
    """
    metadata = obj.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise UnreadableError(
            f"json: cannot unmarshal {go_name(metadata)} into Go value of type v1.ObjectMeta"
        )
    obj = {**obj, "metadata": read_object(metadata_node(), metadata)[0]}
    if resource.schema is None:
        return obj, []
    read, unknown = resource.schema.read(msgspec.to_builtins(obj))
    return read, [*unknown_fields(metadata_node(), metadata, "metadata"), *unknown]


def custom_faults(
    resource: ResourceType, new: Object, old: Object | None, subresource: str
) -> list[dict[str, str]]:
    """Return the causes why a custom resource does not fit its schema; faults of unchanged values are tolerated."""
    if resource.schema is None:
        return []
    counts = _scale_faults(resource, new)
    return [fault.cause for fault in resource.schema.faults(new, old, subresource, counts)]


def _scale_faults(resource: ResourceType, obj: Object) -> list[Fault]:
    """Return the faults of the fields of a custom resource that its Scale shows."""
    if "scale" not in resource.subresources:
        return []
    paths = resource.scale_paths
    faults = [_count_fault(path, obj) for path in (paths.replicas, paths.status_replicas)]
    return [fault for fault in faults if fault is not None]


def _count_fault(path: str, obj: Object) -> Fault | None:
    value: Any = obj
    for step in path.removeprefix(".").split("."):
        if not isinstance(value, dict):
            return Fault("Invalid", path, 0, _accessor_error(path, value, "map[string]interface{}"))
        if step not in value:
            return None
        value = value[step]
    if not isinstance(value, int) or isinstance(value, bool):
        return Fault("Invalid", path, 0, _accessor_error(path, value, "int64"))
    if value < 0:
        return Fault("Invalid", path, value, "should be a non-negative integer")
    if value >= 2**31:
        return Fault("Invalid", path, value, f"should be less than or equal to {2**31 - 1}")
    return None


def _accessor_error(path: str, value: Any, wanted: str) -> str:
    return f"{path} accessor error: {text(value)} is of the type {type_name(value)}, expected {wanted}"
