"""What a kind adds to a write, besides its schema (kube-apiserver ``registry/*/*/strategy.go``)."""

from __future__ import annotations

import copy
from functools import cache
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace as replaced

from aioinformer.testing import errors
from aioinformer.testing.rules.addresses import Addresses
from aioinformer.testing.rules.custom import custom_faults
from aioinformer.testing.rules.defaults import admit, fill_in, on_write, qos_class
from aioinformer.testing.rules.immutable import ephemeral_container_faults, immutable_faults
from aioinformer.testing.rules.limits import limit
from aioinformer.testing.rules.merging import (
    counted_part,
    keep_owners,
    keep_system_fields,
    with_ephemeral_containers,
    with_resources,
    with_status_of,
)
from aioinformer.testing.rules.spec_rules import spec_faults
from aioinformer.testing.rules.status_rules import status_faults
from aioinformer.testing.schema.builtin import metadata_node, node_of
from aioinformer.testing.schema.node import Node
from aioinformer.testing.schema.required_fields import in_order, schema_faults
from aioinformer.testing.schema.zeros import missing
from aioinformer.testing.storage.builtin import DEFINITIONS, NAMESPACES
from aioinformer.testing.storage.events import check_event

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.testing.cluster.options import WriteOptions
    from aioinformer.testing.objects import Object
    from aioinformer.testing.resources import ResourceType


class Strategy:
    """Prepares new and changed objects.

    Args:
        limit_ranges: Returns the LimitRanges of a namespace.
    """

    def __init__(self, limit_ranges: Callable[[str], list[Object]]) -> None:
        self._limit_ranges = limit_ranges
        self._addresses = Addresses()

    def prepare_for_create(
        self, resource: ResourceType, namespace: str, new: Object, options: WriteOptions
    ) -> None:
        """Set what the server sets in a new object."""
        kind = resource.kind
        if resource.custom:
            if resource.schema is not None:
                resource.schema.set_status(new)
            return
        is_new = "status" not in new or resource in (DEFINITIONS, NAMESPACES)
        if is_new and (status := _new_status(resource.api_version, kind)) is not UNSET:
            new["status"] = copy.deepcopy(status)
        if options.strict and kind == "Pod" and (ranges := self._limit_ranges(namespace)):
            limit(new, ranges)
        fill_in(new, kind)
        on_write(new, kind)
        if options.strict:
            admit(new, kind)
        if kind == "Service":
            self._addresses.fill_in(new, None)

    def prepare_for_update(
        self, resource: ResourceType, old: Object, new: Object, options: WriteOptions
    ) -> Object:
        """Return the new object, with the parts that this write cannot change from the old object."""
        if options.subresource in ("status", "approval"):
            result = with_status_of(resource, old, new)
        elif options.subresource == "ephemeralcontainers":
            result = with_ephemeral_containers(old, new)
        elif options.subresource == "resize":
            result = with_resources(old, new)
        elif resource.has_status and not options.whole:
            result = {key: value for key, value in new.items() if key != "status"}
            if "status" in old:
                result["status"] = old["status"]
        else:
            result = dict(new)
        if (
            resource is NAMESPACES
            and "spec" in old
            and not options.whole
            and options.subresource != "finalize"
        ):
            result["spec"] = old["spec"]
        if resource.namespaced:
            result["metadata"]["namespace"] = old["metadata"]["namespace"]
        result["apiVersion"], result["kind"] = old["apiVersion"], old["kind"]
        if not resource.custom:
            on_write(result, resource.kind, old)
            if options.strict and resource.kind == "Pod" and not options.subresource:
                admit(result, resource.kind)
            if resource.kind == "Service":
                self._addresses.fill_in(result, old)
        keep_system_fields(old["metadata"], result["metadata"])
        keep_owners(old["metadata"], new["metadata"], result["metadata"], applied=options.applied)
        counts = resource.generation and options.subresource != "status"
        if counts and counted_part(resource, old) != counted_part(resource, result):
            result["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        return result


def schema_of(resource: ResourceType) -> Node:
    """Return the schema of a resource's objects; without one only metadata has a schema."""
    if resource.schema is not None:
        node = resource.schema.node
        return replaced(node, properties={**node.properties, **_metadata_only().properties})
    schema = None if resource.custom else node_of(resource.api_version, resource.kind)
    return schema or _metadata_only()


def faults_in(
    resource: ResourceType, old: Object | None, new: Object, options: WriteOptions
) -> list[dict[str, str]]:
    """Return what the server says against an object, besides its metadata."""
    kind = resource.kind
    if resource.custom:
        return custom_faults(resource, new, old, options.subresource)
    if old is not None and options.subresource == "ephemeralcontainers":
        return [*schema_faults(schema_of(resource), new), *ephemeral_container_faults(old, new)]
    if old is not None and options.subresource == "resize" and qos_class(old) != qos_class(new):
        why = "Pod QOS Class may not change as a result of resizing"
        return [errors.field_invalid("spec", new["status"]["qosClass"], why)]
    if old is not None and options.strict and options.subresource == "status":
        return status_faults(kind, old, new)
    has_own_checks = resource is DEFINITIONS or kind == "Event"
    if has_own_checks or not options.strict or options.subresource:
        return []
    faults = in_order([*schema_faults(schema_of(resource), new), *spec_faults(kind, new)])
    return faults if old is None else [*faults, *immutable_faults(kind, old, new)]


def check_own_rules(resource: ResourceType, old: Object | None, new: Object, options: WriteOptions) -> None:
    """Refuse an Event or a CustomResourceDefinition by the checks that it alone has.

    Raises:
        StatusError: 422.
    """
    if resource.kind == "Event" and not resource.custom:
        check_event(resource, new, old)
    if resource is DEFINITIONS:
        _check_definition(new, old, options)


@cache
def _new_status(api_version: str, kind: str) -> Any:
    """Return the status of a new object of a built-in kind, or UNSET if it has none."""
    node = node_of(api_version, kind)
    return UNSET if node is None or "status" not in node.properties else missing(node.properties["status"])


@cache
def _metadata_only() -> Node:
    return Node(preserves_unknown=True, properties={"metadata": metadata_node()})


def _check_definition(new: Object, old: Object | None, options: WriteOptions) -> None:
    """Refuse an invalid CustomResourceDefinition; warn about rules that are not enforced."""
    from aioinformer.testing.rules.definition_rules import check_definition, not_enforced_in  # slow to import

    check_definition(new, old)
    options.fields.note(not_enforced_in(new))
