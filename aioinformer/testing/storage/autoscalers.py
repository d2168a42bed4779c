"""HorizontalPodAutoscalers in autoscaling/v1: a CPU target is a field, and annotations hold what v1 has no fields for.

As in ``pkg/apis/autoscaling/v1/conversion.go``, but the annotations have the JSON of v2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from aioinformer.testing.objects import Object

_PREFIX = "autoscaling.alpha.kubernetes.io/"
_ANNOTATIONS = (
    ("spec", "metrics", "metrics"),
    ("spec", "behavior", "behavior"),
    ("status", "currentMetrics", "current-metrics"),
    ("status", "conditions", "conditions"),
)
_TARGET, _CURRENT = "targetCPUUtilizationPercentage", "currentCPUUtilizationPercentage"


def to_v2(autoscaler: Object) -> Object:
    """Return an object of v1 as v2 has it, which is stored."""
    result = _copy(autoscaler, "autoscaling/v2")
    if (target := result["spec"].pop(_TARGET, None)) is not None:
        result["spec"]["metrics"] = [_cpu("target", {"type": "Utilization", "averageUtilization": target})]
    result["status"].pop(_CURRENT, None)
    annotations = result["metadata"].get("annotations") or {}
    for part, field, name in _ANNOTATIONS:
        if (text := annotations.pop(_PREFIX + name, None)) is None:
            continue
        try:
            value = msgspec.json.decode(text)
        except msgspec.DecodeError:
            continue  # as upstream: the user's text has no meaning
        before = result[part].get(field) if field == "metrics" else None
        result[part][field] = [*value, *(before or ())] if before else value
    return _without_empty(result)


def from_v2(autoscaler: Object) -> Object:
    """Return a stored object as v1 has it."""
    result = _copy(autoscaler, "autoscaling/v1")
    spec, status, annotations = result["spec"], result["status"], result["metadata"].get("annotations") or {}
    metrics = spec.pop("metrics", None) or []
    targets = [metric for metric in metrics if _utilization(metric, "target") is not None]
    others = [metric for metric in metrics if metric not in targets]
    if targets:
        spec[_TARGET] = _utilization(targets[0], "target")
    if others:
        spec["metrics"] = others
    current = [_utilization(metric, "current") for metric in status.get("currentMetrics") or ()]
    if values := [metric for metric in current if metric is not None]:
        status[_CURRENT] = values[0]
    for part, field, name in _ANNOTATIONS:
        if value := result[part].pop(field, None):
            annotations = {**annotations, _PREFIX + name: msgspec.json.encode(value).decode()}
    if annotations:
        result["metadata"]["annotations"] = annotations
    status.setdefault("currentReplicas", 0)
    status.setdefault("desiredReplicas", 0)
    return result


def _copy(autoscaler: Object, api_version: str) -> Object:
    metadata = dict(autoscaler["metadata"])
    if metadata.get("annotations"):
        metadata["annotations"] = dict(metadata["annotations"])
    spec, status = (dict(autoscaler.get(part) or {}) for part in ("spec", "status"))
    kind = "HorizontalPodAutoscaler"
    return {"kind": kind, "apiVersion": api_version, "metadata": metadata, "spec": spec, "status": status}


def _without_empty(autoscaler: Object) -> Object:
    if not autoscaler["metadata"].get("annotations"):
        autoscaler["metadata"].pop("annotations", None)
    return autoscaler


def _cpu(field: str, value: Object) -> Object:
    return {"type": "Resource", "resource": {"name": "cpu", field: value}}


def _utilization(metric: Object, field: str) -> Any:
    """Return the utilization of a metric of the CPU, or None for another metric."""
    resource = metric.get("resource") or {}
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    return (resource.get(field) or {}).get("averageUtilization")
