"""The annotation of `kubectl apply`, which the server reads and writes when kubectl applies on the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.testing.apply.fieldsets import Path, paths
from aioinformer.testing.schema.faults import show

if TYPE_CHECKING:
    from aioinformer.testing.objects import Object
    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.schema.node import Node

KUBECTL = "kubectl"
"""The manager whose applies the server treats so."""

_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"


def find_taken_over(resource: ResourceType, node: Node, live: Object, current: dict[Path, Any]) -> set[Path]:
    """Return the fields that `kubectl apply` set and that are still the same: no conflicts for kubectl.

    Args:
        resource: The object's type.
        node: Its schema.
        live: The object.
        current: Its fields.
    """
    text = _annotations(live).get(_ANNOTATION)
    try:
        before = msgspec.json.decode(text or "null", type=dict[str, Any] | None) or {}
    except msgspec.DecodeError:
        return set()  # any text may be there
    if before.get("apiVersion") != resource.api_version:
        return set()
    return {path for path, value in paths(node, before).items() if path in current and current[path] == value}


def synchronize(result: Object, applied: Object) -> None:
    """Set the annotation of an object, if it has one, to the configuration that was applied to it."""
    annotations = _annotations(result)
    if not annotations.get(_ANNOTATION):
        return
    metadata = dict(applied["metadata"])
    if "annotations" in metadata:
        kept = {name: text for name, text in metadata["annotations"].items() if name != _ANNOTATION}
        metadata["annotations"] = kept
    text = show({**applied, "metadata": metadata}) + "\n"
    result["metadata"]["annotations"] = {**annotations, _ANNOTATION: text}


def _annotations(obj: Object) -> dict[str, str]:
    return obj["metadata"].get("annotations") or {}
