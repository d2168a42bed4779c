"""Custom resources by the schemas of their definitions: read as Go would, checked, with all causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from aioinformer.testing.objects import go_name
from aioinformer.testing.rules.scale import scale_faults
from aioinformer.testing.schema.builtin import metadata_node
from aioinformer.testing.schema.decode import read_object
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
    resource: ResourceType, new: Object, old: Object | None, subresource: str = ""
) -> list[dict[str, str]]:
    """Return the causes why a custom resource does not fit its schema; faults of unchanged values are tolerated."""
    if resource.schema is None:
        return []
    counts = scale_faults(resource, new)
    return [fault.cause for fault in resource.schema.faults(new, old, subresource, counts)]
