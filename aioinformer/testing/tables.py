"""The columns of `kubectl get` for common kinds; other kinds show name and age."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.testing.jsonpath import find
from aioinformer.testing.objects import value_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.testing.objects import Object
    from aioinformer.testing.resources import ResourceType

_Column = tuple[str, str, "Callable[[Object], Any]"]


_AGE_ALONE = (("Age", ".metadata.creationTimestamp", "date", 0),)


def columns(resource: ResourceType) -> list[dict[str, Any]]:
    """Return the definitions of a resource's columns."""
    described = [_definition("Name", "string", "name")]
    if own := _own(resource):
        return [*described, *(_definition(name, kind, priority=priority) for name, _, kind, priority in own)]
    described += [_definition(name, kind) for name, kind, _ in _BUILTIN.get(resource.kind, ())]
    wide = [_definition(name, kind, priority=1) for name, kind, _ in _WIDE.get(resource.kind, ())]
    return [*described, _definition("Age", "string"), *wide]


def row(resource: ResourceType, obj: Object) -> list[Any]:
    """Return the cells of an object, in the order of the columns."""
    cells: list[Any] = [obj["metadata"]["name"]]
    if own := _own(resource):
        return [*cells, *(_cell(obj, path, kind) for _, path, kind, _ in own)]
    cells += [cell(obj) for _, _, cell in _BUILTIN.get(resource.kind, ())]
    wide = [cell(obj) for _, _, cell in _WIDE.get(resource.kind, ())]
    return [*cells, _age(obj["metadata"].get("creationTimestamp")), *wide]


def _own(resource: ResourceType) -> tuple[tuple[str, str, str, int], ...]:
    """Return the columns of a custom resource's definition, or its age if it has none."""
    return resource.columns or (_AGE_ALONE if resource.custom else ())


def _definition(name: str, kind: str, form: str = "", priority: int = 0) -> dict[str, Any]:
    return {"name": name, "type": kind, "format": form, "description": "", "priority": priority}


def _cell(obj: Object, path: str, kind: str) -> Any:
    """Return a cell of a custom resource: the first value at the path, if it has the column's type."""
    value = next(iter(find(obj, path)), None)
    match kind, value:
        case _, None:
            return None
        case "string", str():
            return value
        case "string", _:
            return msgspec.json.encode(value).decode()
        case "boolean", bool():
            return value
        case ("boolean", _) | (_, bool()):
            return None
        case "integer" | "number", int() | float():
            return int(value) if kind == "integer" else value
        case "date", str():
            return _age(value, otherwise="<invalid>")
    return None


def _age(created: Any, otherwise: str = "<unknown>") -> str:
    """Return the age in kubectl's format of durations."""
    try:
        begun = datetime.fromisoformat(str(created))
    except ValueError:
        return otherwise
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
        value = value_at(obj, path)
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


def _external_ips(service: Object) -> str:
    spec = service.get("spec") or {}
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", ""))
    ips = list(spec.get("externalIPs") or [])
    if spec.get("type") != "LoadBalancer":
        return ",".join(ips) or "<none>"
    balancers = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    return ",".join([each.get("ip") or each.get("hostname", "") for each in balancers] + ips) or "<pending>"


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
        ("External-IP", "string", _external_ips),
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
