"""Defaults for the few fields that the real server sets and clients rely on."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from aioinformer.testing.definition_rules import complete_definition

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.testing.objects import Object

CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION = "kubernetes.io/pv-protection"


def fill_in(obj: Object, kind: str) -> None:
    """Complete a new object of a built-in kind, in place."""
    complete = _FILL.get(kind)
    if complete is not None:
        complete(obj)


def on_write(obj: Object, kind: str) -> None:
    """Complete any version of an object of a built-in kind, in place."""
    if kind == "Secret":
        _secret(obj)
    if kind == "Service":
        _service(obj)
    if kind == "Namespace":
        metadata = obj["metadata"]
        metadata["labels"] = {
            **(metadata.get("labels") or {}),
            "kubernetes.io/metadata.name": metadata["name"],
        }
    if kind == "CustomResourceDefinition":
        complete_definition(obj)
    if kind in ("ConfigMap", "Secret"):
        for name in ("binaryData", "data"):
            if name in obj and not obj[name]:
                del obj[name]


def _namespace(obj: Object) -> None:
    spec = obj["spec"] = dict(obj.get("spec") or {})
    finalizers = list(spec.get("finalizers") or [])
    spec["finalizers"] = finalizers if "kubernetes" in finalizers else [*finalizers, "kubernetes"]
    obj["status"] = {"phase": "Active"}


def _pod(obj: Object) -> None:
    obj["status"] = {"phase": "Pending", **(obj.get("status") or {})}


def _claim(obj: Object) -> None:
    obj["status"] = {"phase": "Pending", **(obj.get("status") or {})}
    _add_finalizer(obj, CLAIM_PROTECTION)


def _volume(obj: Object) -> None:
    obj["status"] = {"phase": "Pending", **(obj.get("status") or {})}
    _add_finalizer(obj, VOLUME_PROTECTION)


def _add_finalizer(obj: Object, finalizer: str) -> None:
    metadata = obj["metadata"]
    finalizers = list(metadata.get("finalizers") or [])
    if finalizer not in finalizers:
        metadata["finalizers"] = [*finalizers, finalizer]


def _secret(obj: Object) -> None:
    obj["type"] = obj.get("type") or "Opaque"
    if "stringData" in obj:
        added = obj.pop("stringData") or {}
        encoded = {name: base64.b64encode(value.encode()).decode() for name, value in added.items()}
        obj["data"] = (obj.get("data") or {}) | encoded


def _service(obj: Object) -> None:
    spec = obj["spec"] = dict(obj.get("spec") or {})
    spec["type"] = spec.get("type") or "ClusterIP"
    spec["sessionAffinity"] = spec.get("sessionAffinity") or "None"
    obj["status"] = {"loadBalancer": {}, **(obj.get("status") or {})}


def _definition(obj: Object) -> None:
    obj["status"] = {}


_FILL: dict[str, Callable[[Object], None]] = {
    "CustomResourceDefinition": _definition,
    "Namespace": _namespace,
    "PersistentVolume": _volume,
    "PersistentVolumeClaim": _claim,
    "Pod": _pod,
}
