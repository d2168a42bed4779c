"""Applied configurations: whether the server accepts one, and which of its fields a write sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.testing.apply.apply import check_type
from aioinformer.testing.apply.typed import check_typed
from aioinformer.testing.cluster.strategy import schema_of
from aioinformer.testing.errors import bad_request, conflict, not_found
from aioinformer.testing.objects import Object, value_at
from aioinformer.testing.rules.merging import metadata_with_status
from aioinformer.testing.rules.validation import check_place
from aioinformer.testing.rules.values import apply_error, decode_values
from aioinformer.testing.schema.node import OF_EVERY_OBJECT

if TYPE_CHECKING:
    from aioinformer.testing.cluster.options import WriteOptions
    from aioinformer.testing.resources import ResourceType


def configuration(
    resource: ResourceType, namespace: str, name: str, applied: Object, options: WriteOptions, *, is_new: bool
) -> Object:
    """Return an applied configuration without what this write ignores; the other values are as sent.

    Args:
        resource: The object's type.
        namespace: Its namespace.
        name: Its name.
        applied: The configuration.
        options: The options of the write.
        is_new: Whether there is no such object yet.

    Raises:
        StatusError: 400, 404, 409, and 500 for a value that does not fit its field.
    """
    if value_at(applied, ("metadata", "managedFields")) is not None:
        raise bad_request("metadata.managedFields must be nil")
    check_type(applied, resource.api_version, resource.kind)
    check_typed(resource, schema_of(resource), applied, name)
    metadata = decode_values(resource, applied, apply_error(resource, name))["metadata"]
    if not is_new:
        metadata = {"name": name, **metadata}
    for part in {"annotations", "labels"} & (applied.get("metadata") or {}).keys():
        metadata.setdefault(part, {})  # an empty map can be owned
    check_place(resource, metadata, namespace, name)
    if is_new:
        if options.subresource:
            raise not_found(resource, name)
        if uid := metadata.get("uid"):
            why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            raise conflict(resource, name, why)
        metadata.pop("resourceVersion", None)
    if not resource.has_status:
        return {**applied, "metadata": metadata}
    about_status = options.subresource == "status"
    if about_status:
        metadata = metadata_with_status(resource, metadata)
    written = {
        field: value
        for field, value in applied.items()
        if field in OF_EVERY_OBJECT or (field == "status") is about_status
    }
    return {**written, "metadata": metadata}
