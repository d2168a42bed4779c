"""Rules for the statuses of workloads, with the real server's causes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.errors import cause, field_forbidden, field_invalid, field_required

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.objects import Object

    _Faults = Iterator[dict[str, str]]

_AT_MOST_REPLICAS = {
    "DaemonSet": (),
    "Deployment": ("updatedReplicas", "readyReplicas", "availableReplicas"),
    "ReplicaSet": ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"),
    "StatefulSet": ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"),
}
_NEEDED = {"Failed": "FailureTarget", "Complete": "SuccessCriteriaMet"}
_EXCLUSIVE = (
    ("Complete", "Failed"),
    ("Complete", "FailureTarget"),
    ("SuccessCriteriaMet", "Failed"),
    ("SuccessCriteriaMet", "FailureTarget"),
)


def status_faults(kind: str, old: Object, new: Object) -> list[dict[str, str]]:
    """Return the causes for mistakes in a status that the old status does not have."""
    if kind == "Service" and (new.get("spec") or {}).get("type") != "LoadBalancer":
        balancer = (new.get("status") or {}).get("loadBalancer") or {}
        why = "may only be used when `spec.type` is 'LoadBalancer'"
        return [field_forbidden("status.loadBalancer.ingress", why)] if balancer.get("ingress") else []
    if kind != "Job" and kind not in _AT_MOST_REPLICAS:
        return []
    known = list(_faults(kind, old.get("status") or {}))
    return [fault for fault in _faults(kind, new.get("status") or {}) if fault not in known]


def _faults(kind: str, status: Object) -> _Faults:
    for name, value in status.items():
        if isinstance(value, int) and value < 0:
            yield field_invalid(f"status.{name}", value, "must be greater than or equal to 0")
    yield from _job_faults(status) if kind == "Job" else _replica_faults(kind, status)


def _replica_faults(kind: str, status: Object) -> _Faults:
    for name in _AT_MOST_REPLICAS[kind]:
        if (value := status.get(name, 0)) > status.get("replicas", 0):
            yield field_invalid(f"status.{name}", value, "cannot be greater than status.replicas")
    if (available := status.get("availableReplicas", 0)) > status.get("readyReplicas", 0):
        ready = "status.readyReplicas" if kind == "StatefulSet" else "readyReplicas"
        yield field_invalid("status.availableReplicas", available, f"cannot be greater than {ready}")


def _job_faults(status: Object) -> _Faults:
    true = {
        condition.get("type")
        for condition in status.get("conditions") or ()
        if condition.get("status") == "True"
    }
    start, completion = status.get("startTime"), status.get("completionTime")
    for one, other in _EXCLUSIVE:
        if {one, other} <= true:
            yield _condition_fault(f"cannot set {one}=True and {other}=true conditions")
    if completion and "Complete" not in true:
        why = "cannot set completionTime when there is no Complete=True condition"
        yield field_invalid("status.completionTime", completion, why)
    elif not completion and "Complete" in true:
        yield field_required("status.completionTime", "completionTime is required for Complete jobs")
    if start and completion and completion < start:
        yield field_invalid("status.completionTime", completion, "must be equal to or after `startTime`")
    for condition, needed in _NEEDED.items():
        if condition in true and needed not in true:
            yield _condition_fault(
                f"cannot set {condition}=True condition without the {needed}=true condition"
            )
    if not true.isdisjoint(_NEEDED):
        for name in ("active", "terminating"):
            if (count := status.get(name) or 0) > 0:
                yield field_invalid(f"status.{name}", count, f"{name}>0 is invalid for finished job")
        if not start:
            yield field_required("status.startTime", "startTime is required for finished job")
    if (ready := status.get("ready") or 0) > status.get("active", 0):
        yield field_invalid("status.ready", ready, "cannot set more ready pods than active")


def _condition_fault(why: str) -> dict[str, Any]:
    return cause("FieldValueInvalid", f"Invalid value: {why}", "status.conditions")
