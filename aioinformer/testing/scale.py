"""The scale subresource: the number of replicas, seen the same way on every kind that has one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.errors import cause, invalid

if TYPE_CHECKING:
    from aioinformer.testing.objects import Object


def scale_of(obj: Object) -> Object:
    """An object's Scale."""
    metadata, spec, status = obj["metadata"], obj.get("spec") or {}, obj.get("status") or {}
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    seen: dict[str, Any] = {"replicas": status.get("replicas", 0)}
    selector = (spec.get("selector") or {}).get("matchLabels")
    if selector:
        seen["selector"] = ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in kept if name in metadata},
        "spec": {"replicas": spec.get("replicas", 0)},
        "status": seen,
    }


def with_scale(obj: Object, scale: Any) -> Object:
    """An object with the replicas of a Scale."""
    replicas = ((scale.get("spec") or {}) if isinstance(scale, dict) else {}).get("replicas", 0)
    if not isinstance(replicas, int) or replicas < 0:
        why = f"Invalid value: {replicas}: must be greater than or equal to 0"
        causes = [cause("FieldValueInvalid", why, "spec.replicas")]
        raise invalid("Scale", "autoscaling", obj["metadata"]["name"], causes)
    version = (scale.get("metadata") or {}).get("resourceVersion")
    metadata = {**obj["metadata"], "resourceVersion": version or obj["metadata"]["resourceVersion"]}
    return {**obj, "metadata": metadata, "spec": {**(obj.get("spec") or {}), "replicas": replicas}}
