"""The columns of `kubectl get`, for the kinds that people look at most; others show name and age."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.testing.objects import Object
    from aioinformer.testing.resources import ResourceType

_Column = tuple[str, str, "Callable[[Object], Any]"]


def columns(resource: ResourceType) -> list[dict[str, Any]]:
    """The definitions of a resource's columns."""
    described = [_definition("Name", "string", "name")]
    if resource.columns:
        described += [
            _definition(name, kind, priority=priority) for name, _, kind, priority in resource.columns
        ]
        if any(name == "Age" for name, *_ in resource.columns):
            return described
    else:
        described += [_definition(name, kind) for name, kind, _ in _BUILTIN.get(resource.kind, ())]
    wide = [_definition(name, kind, priority=1) for name, kind, _ in _wide(resource)]
    return [*described, _definition("Age", "string"), *wide]


def row(resource: ResourceType, obj: Object) -> list[Any]:
    """The cells of an object, in the order of the columns."""
    cells: list[Any] = [obj["metadata"]["name"]]
    age = _age(obj["metadata"].get("creationTimestamp"))
    if resource.columns:
        for _, path, kind, _ in resource.columns:
            value = _at(obj, path)
            cells.append(_age(value) if kind == "date" else value)
        if any(name == "Age" for name, *_ in resource.columns):
            return cells
    else:
        cells += [cell(obj) for _, _, cell in _BUILTIN.get(resource.kind, ())]
    return [*cells, age, *(cell(obj) for _, _, cell in _wide(resource))]


def _wide(resource: ResourceType) -> tuple[_Column, ...]:
    """The columns of `kubectl get -o wide`."""
    return () if resource.columns else _WIDE.get(resource.kind, ())


def _definition(name: str, kind: str, form: str = "", priority: int = 0) -> dict[str, Any]:
    return {"name": name, "type": kind, "format": form, "description": "", "priority": priority}


def _at(obj: Object, path: str) -> Any:
    """The value at a simple JSON path, such as `.spec.replicas`."""
    value: Any = obj
    for step in path.strip("{}").strip(".").split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _age(created: Any) -> str:
    """How long ago something was, as kubectl writes durations."""
    try:
        begun = datetime.fromisoformat(str(created))
    except ValueError:
        return "<unknown>"
    seconds = max(0, int((datetime.now(UTC) - begun).total_seconds()))
    if seconds < 120:
        return f"{seconds}s"
    minutes = seconds // 60
    if minutes < 10:
        return f"{minutes}m{seconds % 60}s" if seconds % 60 else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    hours = minutes // 60
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    return f"{hours // 24}d"


def _get(*path: str, default: Any = "<none>") -> Callable[[Object], Any]:
    def cell(obj: Object) -> Any:
        value: Any = obj
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        return default if value is None else value

    return cell


def _size(name: str) -> Callable[[Object], int]:
    return lambda obj: len(obj.get(name) or {})


def _pod_ready(obj: Object) -> str:
    containers = (obj.get("spec") or {}).get("containers") or []
    statuses = (obj.get("status") or {}).get("containerStatuses") or []
    return f"{sum(bool(status.get('ready')) for status in statuses)}/{len(containers)}"


def _pod_status(obj: Object) -> str:
    if "deletionTimestamp" in obj["metadata"]:
        return "Terminating"
    status = obj.get("status") or {}
    return str(status.get("reason") or status.get("phase") or "Unknown")


def _pod_restarts(obj: Object) -> str:
    statuses = (obj.get("status") or {}).get("containerStatuses") or []
    return str(sum(int(status.get("restartCount") or 0) for status in statuses))


def _node_status(obj: Object) -> str:
    for condition in (obj.get("status") or {}).get("conditions") or []:
        if condition.get("type") == "Ready":
            return "Ready" if condition.get("status") == "True" else "NotReady"
    return "Unknown"


def _deployment_ready(obj: Object) -> str:
    wanted = (obj.get("spec") or {}).get("replicas", 1)
    return f"{(obj.get('status') or {}).get('readyReplicas') or 0}/{wanted}"


def _phase(obj: Object) -> str:
    return str((obj.get("status") or {}).get("phase") or "")


def _ports(obj: Object) -> str:
    ports = (obj.get("spec") or {}).get("ports") or []
    return ",".join(f"{port.get('port')}/{port.get('protocol', 'TCP')}" for port in ports) or "<none>"


_BUILTIN: dict[str, tuple[_Column, ...]] = {
    "ConfigMap": (("Data", "string", _size("data")),),
    "Deployment": (
        ("Ready", "string", _deployment_ready),
        ("Up-to-date", "integer", _get("status", "updatedReplicas", default=0)),
        ("Available", "integer", _get("status", "availableReplicas", default=0)),
    ),
    "Event": (
        ("Type", "string", _get("type")),
        ("Reason", "string", _get("reason")),
        ("Object", "string", _get("involvedObject", "name")),
        ("Message", "string", _get("message")),
    ),
    "Lease": (("Holder", "string", _get("spec", "holderIdentity", default="")),),
    "Namespace": (("Status", "string", _phase),),
    "Node": (
        ("Status", "string", _node_status),
        ("Version", "string", _get("status", "nodeInfo", "kubeletVersion", default="")),
    ),
    "PersistentVolume": (("Status", "string", _phase),),
    "PersistentVolumeClaim": (
        ("Status", "string", _phase),
        ("Volume", "string", _get("spec", "volumeName", default="")),
    ),
    "Pod": (
        ("Ready", "string", _pod_ready),
        ("Status", "string", _pod_status),
        ("Restarts", "string", _pod_restarts),
    ),
    "ReplicaSet": (
        ("Desired", "integer", _get("spec", "replicas", default=1)),
        ("Current", "integer", _get("status", "replicas", default=0)),
        ("Ready", "integer", _get("status", "readyReplicas", default=0)),
    ),
    "Secret": (("Type", "string", _get("type")), ("Data", "integer", _size("data"))),
    "Service": (
        ("Type", "string", _get("spec", "type")),
        ("Cluster-IP", "string", _get("spec", "clusterIP")),
        ("Port(s)", "string", _ports),
    ),
    "StatefulSet": (("Ready", "string", _deployment_ready),),
}

_WIDE: dict[str, tuple[_Column, ...]] = {
    "Pod": (
        ("IP", "string", _get("status", "podIP")),
        ("Node", "string", _get("spec", "nodeName")),
        ("Nominated Node", "string", _get("status", "nominatedNodeName")),
        ("Readiness Gates", "string", lambda obj: "<none>"),
    ),
}
