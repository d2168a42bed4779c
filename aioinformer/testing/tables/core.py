"""The cells of nodes, events and the plain kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.testing.objects import condition_of
from aioinformer.testing.tables.formats import age, at, size

if TYPE_CHECKING:
    from aioinformer.testing.objects import Object
    from aioinformer.testing.tables.formats import Cell

_ROLE = "node-role.kubernetes.io/"


def _node_status(node: Object) -> str:
    ready = condition_of(node, "Ready")
    status = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    return f"{status},SchedulingDisabled" if at("spec.unschedulable", False)(node) else status


def _roles(node: Object) -> str:
    labels = node["metadata"].get("labels") or {}
    roles = {label.removeprefix(_ROLE) for label in labels if label.startswith(_ROLE)}
    return ",".join(sorted({*roles, labels.get("kubernetes.io/role", "")} - {""})) or "<none>"


def _address(kind: str) -> Cell:
    """Return a cell with a node's first address of a type."""

    def cell(node: Object) -> str:
        addresses = at("status.addresses", ())(node)
        return next((address["address"] for address in addresses if address["type"] == kind), "<none>")

    return cell


def _node_info(field: str) -> Cell:
    return lambda node: at(f"status.nodeInfo.{field}")(node) or "<unknown>"


def _kernel(node: Object) -> str:
    architecture = at("status.nodeInfo.architecture")(node)
    return f"{_node_info('kernelVersion')(node)}{f' ({architecture})' if architecture else ''}"


def _first_seen(event: Object) -> str:
    """Return when an event was first seen; in group events.k8s.io some fields have other names."""
    first = event.get("firstTimestamp") or event.get("deprecatedFirstTimestamp")
    return age(first or event.get("eventTime"))


def _last_seen(event: Object) -> str:
    if series := event.get("series"):
        return age(series.get("lastObservedTime"))
    last = event.get("lastTimestamp") or event.get("deprecatedLastTimestamp")
    return age(last) if last else _first_seen(event)


def _count(event: Object) -> int:
    if series := event.get("series"):
        return int(series.get("count") or 0)
    return int(event.get("count") or event.get("deprecatedCount") or 1)


def _about(event: Object) -> Object:
    about: Object = event.get("involvedObject") or event.get("regarding") or {}
    return about


def _object(event: Object) -> str:
    about = _about(event)
    kind, name = str(about.get("kind", "")).lower(), about.get("name")
    return f"{kind}/{name}" if name else kind


def _source(event: Object) -> str:
    source = event.get("source") or event.get("deprecatedSource") or {}
    reporter = event.get("reportingComponent") or event.get("reportingController")
    component, host = source.get("component") or reporter or "", source.get("host")
    instance = host or event.get("reportingInstance")
    return f"{component}, {instance}" if instance else str(component)


_EVENT: dict[str, Cell] = {
    "Last Seen": _last_seen,
    "Type": at("type"),
    "Reason": at("reason"),
    "Object": _object,
    "Subobject": lambda obj: _about(obj).get("fieldPath", ""),
    "Source": _source,
    "Message": lambda obj: (obj.get("message") or obj.get("note") or "").strip(),
    "First Seen": _first_seen,
    "Count": _count,
}


def _claim_state(claim: Object) -> str:
    """Return the state of a ResourceClaim."""
    states = ["deleted"] if "deletionTimestamp" in claim["metadata"] else []
    if at("status.allocation", None)(claim) is not None:
        states += ["allocated", "reserved"] if at("status.reservedFor", None)(claim) else ["allocated"]
    return ",".join(states) or "pending"


def _health(component: Object) -> Object:
    """Return the condition of a ComponentStatus."""
    return next(
        (condition for condition in component.get("conditions") or () if condition["type"] == "Healthy"), {}
    )


CORE: dict[str, dict[str, Cell]] = {
    "ComponentStatus": {
        "Status": lambda obj: {"True": "Healthy", "False": "Unhealthy"}.get(
            _health(obj).get("status", ""), "Unknown"
        ),
        "Message": lambda obj: _health(obj).get("message", ""),
        "Error": lambda obj: _health(obj).get("error", ""),
    },
    "ConfigMap": {"Data": lambda obj: size("data")(obj) + size("binaryData")(obj)},
    "Event": _EVENT,
    "Event.events.k8s.io": _EVENT,
    "Lease.coordination.k8s.io": {"Holder": at("spec.holderIdentity")},
    "Namespace": {"Status": at("status.phase")},
    "Node": {
        "Status": _node_status,
        "Roles": _roles,
        "Version": at("status.nodeInfo.kubeletVersion"),
        "Internal-IP": _address("InternalIP"),
        "External-IP": _address("ExternalIP"),
        "OS-Image": _node_info("osImage"),
        "Kernel-Version": _kernel,
        "Container-Runtime": _node_info("containerRuntimeVersion"),
    },
    "PriorityClass.scheduling.k8s.io": {
        "Value": at("value"),
        "Global-Default": at("globalDefault", False),
        "PreemptionPolicy": at("preemptionPolicy"),
    },
    "ResourceClaim.resource.k8s.io": {"State": _claim_state},
    "ResourceSlice.resource.k8s.io": {
        "Node": at("spec.nodeName"),
        "Driver": at("spec.driver"),
        "Pool": at("spec.pool.name"),
    },
    "RuntimeClass.node.k8s.io": {"Handler": at("handler")},
    "Secret": {"Type": at("type"), "Data": size("data")},
}
