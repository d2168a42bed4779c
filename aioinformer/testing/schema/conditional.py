"""Defaults that depend on other fields, which no schema tells; as in Kubernetes' SetDefaults functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.testing.objects import value_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.testing.objects import Object

_RBAC = "rbac.authorization.k8s.io"
_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


def complete(obj: Object, kind: str, given: Object) -> None:
    """Fill in the defaults of a decoded object of a built-in kind, in place.

    Args:
        obj: The object.
        kind: Its kind.
        given: The object before defaults.
    """
    rule = _RULES.get(kind)
    if rule is not None:
        rule(obj)
    if kind == "Job" and (given.get("spec") or {}).get("parallelism") is None:
        obj["spec"].setdefault("completions", 1)


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


def _pod(obj: Object) -> None:
    spec = obj.get("spec") or {}
    _pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    for part in _CONTAINERS[:2]:
        for container in spec.get(part) or ():
            resources = container.get("resources") or {}
            if limits := resources.get("limits"):
                resources["requests"] = limits | (resources.get("requests") or {})
            if spec.get("hostNetwork"):
                for port in container.get("ports") or ():
                    port["hostPort"] = port.get("hostPort") or port["containerPort"]


def _pod_spec(spec: Object) -> None:
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for part in _CONTAINERS:
        for container in spec.get(part) or ():
            if not container.get("imagePullPolicy"):
                container["imagePullPolicy"] = _pull_policy(container.get("image") or "")
    for volume in spec.get("volumes") or ():
        if len(volume) == 1:
            volume["emptyDir"] = {}
        if (image := volume.get("image")) is not None and not image.get("pullPolicy"):
            image["pullPolicy"] = _pull_policy(image.get("reference") or "")


def _pull_policy(image: str) -> str:
    _, tagged, tag = image.rpartition("/")[2].partition(":")
    is_latest = (
        tag.partition("@")[0] == "latest"
        if tagged and "@" not in image.partition(":")[0]
        else "@" not in image
    )
    return "Always" if is_latest else "IfNotPresent"


def _workload(kind: str) -> Callable[[Object], None]:
    def rule(obj: Object) -> None:
        template = pod_template(obj, kind)
        if template is not None:
            _pod_spec(template.get("spec") or {})

    return rule


def _deployment(obj: Object) -> None:
    _workload("Deployment")(obj)
    _rolling(obj["spec"], "strategy", {"maxUnavailable": "25%", "maxSurge": "25%"})


def _daemon_set(obj: Object) -> None:
    _workload("DaemonSet")(obj)
    _rolling(obj["spec"], "updateStrategy", {"maxUnavailable": 1, "maxSurge": 0})


def _stateful_set(obj: Object) -> None:
    _workload("StatefulSet")(obj)
    _rolling(obj["spec"], "updateStrategy", {"partition": 0})
    claims = obj["spec"].get("volumeClaimTemplates") or ()
    kind = {"kind": "PersistentVolumeClaim", "apiVersion": "v1"}
    obj["spec"] |= {"volumeClaimTemplates": [kind | claim for claim in claims]} if claims else {}


def _rolling(spec: Object, field: str, defaults: Object) -> None:
    strategy = spec[field] = spec.get(field) or {}
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = defaults | (strategy.get("rollingUpdate") or {})
    else:
        strategy.pop("rollingUpdate", None)


def _replication_controller(obj: Object) -> None:
    _workload("ReplicationController")(obj)
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


def _job(obj: Object) -> None:
    _workload("Job")(obj)
    _take_labels(obj, "Job")
    spec = obj["spec"]
    spec.setdefault("backoffLimit", 2**31 - 1 if "backoffLimitPerIndex" in spec else 6)
    replaced = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
    spec.setdefault("podReplacementPolicy", replaced)


def _service(obj: Object) -> None:
    spec = obj["spec"]
    if spec["sessionAffinity"] == "ClientIP":
        spec.setdefault("sessionAffinityConfig", {"clientIP": {"timeoutSeconds": 10800}})
    else:
        spec.pop("sessionAffinityConfig", None)
    for port in spec.get("ports") or ():
        port["targetPort"] = port.get("targetPort") or port["port"]
    kind = spec["type"]
    if kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and spec.get("externalIPs")):
        spec["externalTrafficPolicy"] = spec.get("externalTrafficPolicy") or "Cluster"
    if kind != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def _limit_range(obj: Object) -> None:
    for limit in obj["spec"].get("limits") or ():
        if limit.get("type") == "Container":
            limits = (limit.get("max") or {}) | (limit.get("default") or {})
            requests = (limit.get("min") or {}) | limits | (limit.get("defaultRequest") or {})
            found = {"default": limits, "defaultRequest": requests}
            limit.update({name: given for name, given in found.items() if given})


def _autoscaler(obj: Object) -> None:
    target = {"type": "Utilization", "averageUtilization": 80}
    spec = obj["spec"]
    spec["metrics"] = spec.get("metrics") or [
        {"type": "Resource", "resource": {"name": "cpu", "target": target}}
    ]


def _network_policy(obj: Object) -> None:
    spec = obj["spec"]
    spec["policyTypes"] = spec.get("policyTypes") or ["Ingress", *(["Egress"] if spec.get("egress") else [])]


def _binding(obj: Object) -> None:
    obj["roleRef"]["apiGroup"] = obj["roleRef"].get("apiGroup") or _RBAC
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
            subject["apiGroup"] = _RBAC


_RULES: dict[str, Callable[[Object], None]] = {
    "ClusterRoleBinding": _binding,
    "CronJob": _workload("CronJob"),
    "DaemonSet": _daemon_set,
    "Deployment": _deployment,
    "HorizontalPodAutoscaler": _autoscaler,
    "Job": _job,
    "LimitRange": _limit_range,
    "NetworkPolicy": _network_policy,
    "Pod": _pod,
    "PodTemplate": _workload("PodTemplate"),
    "ReplicaSet": _workload("ReplicaSet"),
    "ReplicationController": _replication_controller,
    "RoleBinding": _binding,
    "Service": _service,
    "StatefulSet": _stateful_set,
}
