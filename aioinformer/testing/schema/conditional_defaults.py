"""Defaults that depend on other fields, which no schema tells; as in Kubernetes' SetDefaults functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.testing.objects import value_at
from aioinformer.testing.schema.pod_defaults import complete_pod, complete_pod_spec

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.testing.objects import Object

_RBAC = "rbac.authorization.k8s.io"


def complete(obj: Object, kind: str, given: Object) -> None:
    """Fill in the defaults of a decoded object of a built-in kind, in place.

    Args:
        obj: The object.
        kind: Its kind.
        given: The object before defaults.
    """
    template = pod_template(obj, kind)
    if template is not None:
        complete_pod_spec(template.get("spec") or {})
    rule = _RULES.get(kind)
    if rule is not None:
        rule(obj, given)


def template_path(kind: str) -> str:
    """Return the path of the pod template in a workload, or `""`."""
    return ".".join(_TEMPLATES.get(kind, ()))


def pod_template(obj: Object, kind: str) -> Object | None:
    """Return the pod template of a workload, or None if it has none."""
    steps = _TEMPLATES.get(kind)
    template = None if steps is None else value_at(obj, steps)
    return template if isinstance(template, dict) else None


_TEMPLATES = {
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
    "PodTemplate": ("template",),
} | dict.fromkeys(
    ("DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"),
    ("spec", "template"),
)


def _pod(obj: Object, given: Object) -> None:
    complete_pod(obj.get("spec") or {})


def _deployment(obj: Object, given: Object) -> None:
    _set_rolling_defaults(obj["spec"], "strategy", {"maxUnavailable": "25%", "maxSurge": "25%"})


def _daemon_set(obj: Object, given: Object) -> None:
    _set_rolling_defaults(obj["spec"], "updateStrategy", {"maxUnavailable": 1, "maxSurge": 0})


def _stateful_set(obj: Object, given: Object) -> None:
    strategy = obj["spec"].get("updateStrategy") or {}
    if "rollingUpdate" in strategy or not value_at(given, ("spec", "updateStrategy", "type")):
        _set_rolling_defaults(obj["spec"], "updateStrategy", {"partition": 0})
    claims = obj["spec"].get("volumeClaimTemplates") or ()
    kind = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}
    obj["spec"] |= {"volumeClaimTemplates": [kind | claim for claim in claims]} if claims else {}


def _set_rolling_defaults(spec: Object, field: str, defaults: Object) -> None:
    strategy = spec[field]
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = defaults | (strategy.get("rollingUpdate") or {})


def _replication_controller(obj: Object, given: Object) -> None:
    _take_labels(obj, "ReplicationController")
    labels = ((obj["spec"].get("template") or {}).get("metadata") or {}).get("labels")
    if labels and not obj["spec"].get("selector"):
        obj["spec"]["selector"] = labels


def _take_labels(obj: Object, kind: str) -> None:
    """Give an object the labels of its template: the same dict, which later gets more."""
    labels = ((pod_template(obj, kind) or {}).get("metadata") or {}).get("labels")
    metadata = obj.get("metadata") or {}
    if labels and not metadata.get("labels"):
        obj["metadata"] = metadata | {"labels": labels}


def _job(obj: Object, given: Object) -> None:
    _take_labels(obj, "Job")
    spec = obj["spec"]
    if value_at(given, ("spec", "parallelism")) is None:
        spec.setdefault("completions", 1)
    spec.setdefault("backoffLimit", 2**31 - 1 if "backoffLimitPerIndex" in spec else 6)
    replaced = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
    spec.setdefault("podReplacementPolicy", replaced)


def _service(obj: Object, given: Object) -> None:
    spec = obj["spec"]
    if spec["sessionAffinity"] == "ClientIP":
        if value_at(spec, ("sessionAffinityConfig", "clientIP", "timeoutSeconds")) is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": 10800}}
    elif spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    for port in spec.get("ports") or ():
        port["targetPort"] = port.get("targetPort") or port["port"]
    kind = spec["type"]
    if kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and spec.get("externalIPs")):
        spec["externalTrafficPolicy"] = spec.get("externalTrafficPolicy") or "Cluster"
    if kind in ("ClusterIP", "NodePort", "LoadBalancer"):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
        for ingress in value_at(obj, ("status", "loadBalancer", "ingress")) or ():
            if ingress.get("ip"):
                ingress.setdefault("ipMode", "VIP")


def _limit_range(obj: Object, given: Object) -> None:
    for limit in obj["spec"].get("limits") or ():
        if limit.get("type") == "Container":
            limits = (limit.get("max") or {}) | (limit.get("default") or {})
            requests = (limit.get("min") or {}) | limits | (limit.get("defaultRequest") or {})
            amounts_by_name = {"default": limits, "defaultRequest": requests}
            limit.update({name: amounts for name, amounts in amounts_by_name.items() if amounts})


def _network_policy(obj: Object, given: Object) -> None:
    spec = obj["spec"]
    spec["policyTypes"] = spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") else [])]


def _binding(obj: Object, given: Object) -> None:
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
            subject["apiGroup"] = _RBAC


def _node(obj: Object, given: Object) -> None:
    status = obj["status"]
    if status.get("capacity"):
        status["allocatable"] = status.get("allocatable") or dict(status["capacity"])


def _device_requests(*steps: str) -> Callable[[Object, Object], None]:
    def rule(obj: Object, given: Object) -> None:
        for request in value_at(obj, (*steps, "devices", "requests")) or ():
            exactly = [request["exactly"]] if request.get("exactly") else []
            for device in (*exactly, *(request.get("firstAvailable") or ())):
                if device["allocationMode"] == "ExactCount":
                    device["count"] = device.get("count") or 1

    return rule


_RULES: dict[str, Callable[[Object, Object], None]] = {
    "ClusterRoleBinding": _binding,
    "DaemonSet": _daemon_set,
    "Deployment": _deployment,
    "Job": _job,
    "LimitRange": _limit_range,
    "NetworkPolicy": _network_policy,
    "Node": _node,
    "Pod": _pod,
    "ReplicationController": _replication_controller,
    "ResourceClaim": _device_requests("spec"),
    "ResourceClaimTemplate": _device_requests("spec", "spec"),
    "RoleBinding": _binding,
    "Service": _service,
    "StatefulSet": _stateful_set,
}
