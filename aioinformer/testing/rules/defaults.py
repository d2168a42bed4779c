"""What the server itself sets in objects of built-in kinds, besides the defaults of their fields."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.testing.objects import Object

CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION = "kubernetes.io/pv-protection"

_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def fill_in(obj: Object, kind: str) -> None:
    """Complete a new object of a built-in kind, in place."""
    complete = _FILL.get(kind)
    if complete is not None:
        complete(obj)


def admit(obj: Object, kind: str) -> None:
    """Complete a new object of a request as the default admission plugins do, in place."""
    if kind == "Pod":
        spec = obj.setdefault("spec", {})
        tolerations = spec.get("tolerations") or []
        added = [toleration for toleration in _TOLERATIONS if not _is_tolerated(toleration, tolerations)]
        if tolerations or added:
            spec["tolerations"] = [*tolerations, *map(dict, added)]
        if not spec.get("priorityClassName"):
            spec["priority"] = 0
        spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    if kind == "Node":
        spec = obj.setdefault("spec", {})
        taints = spec.get("taints") or []
        if all(taint.get("key") != _NOT_READY for taint in taints):
            spec["taints"] = [*taints, {"key": _NOT_READY, "effect": "NoSchedule"}]


_NOT_READY, _UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
_TOLERATIONS = tuple(
    {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in (_NOT_READY, _UNREACHABLE)
)


def _is_tolerated(wanted: Object, tolerations: list[Object]) -> bool:
    return any(
        toleration.get("key") in (wanted["key"], None) and toleration.get("effect") in ("NoExecute", None)
        for toleration in tolerations
    )


def on_write(obj: Object, kind: str, old: Object | None = None) -> None:
    """Complete any version of an object of a built-in kind, in place."""
    if kind == "Secret":
        _secret(obj)
    if kind == "Namespace":
        metadata = obj["metadata"]
        metadata["labels"] = {
            **(metadata.get("labels") or {}),
            "kubernetes.io/metadata.name": metadata["name"],
        }
    if kind == "DaemonSet":
        _count_template(obj, old)
    if kind == "CustomResourceDefinition":
        from aioinformer.testing.rules.definition_rules import complete_definition  # slow to import

        complete_definition(obj)


def _namespace(obj: Object) -> None:
    _add_finalizer(obj["spec"], "kubernetes")


def _pod(obj: Object) -> None:
    obj["status"] = {"phase": "Pending", **(obj.get("status") or {}), "qosClass": qos_class(obj)}


def qos_class(pod: Object) -> str:
    """Return a pod's class: Guaranteed if all containers have equal limits and requests for CPU and memory."""
    spec = pod.get("spec") or {}
    is_guaranteed, any_given = True, False
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
        requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
        for name in ("cpu", "memory"):
            request, limit = requests.get(name, "0"), limits.get(name, "0")
            any_given = any_given or request != "0" or limit != "0"
            is_guaranteed = is_guaranteed and limit != "0" and request == limit
    if not any_given:
        return "BestEffort"
    return "Guaranteed" if is_guaranteed else "Burstable"


def _job(obj: Object) -> None:
    """Generate a Job's selector, unless its user has chosen one."""
    spec, metadata = obj.get("spec") or {}, obj["metadata"]
    if spec.get("manualSelector") or not spec.get("template"):
        return
    uid, name = metadata["uid"], metadata["name"]
    template = spec["template"]
    about = template["metadata"] = template.get("metadata") or {}
    about["labels"] = about.get("labels") or {}
    about["labels"] |= {  # which may be the Job's too
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }
    metadata["labels"] = metadata.get("labels") or about["labels"]
    selector = spec["selector"] = dict(spec.get("selector") or {})
    own = {"batch.kubernetes.io/controller-uid": uid}
    selector["matchLabels"] = (selector.get("matchLabels") or {}) | own


def _count_template(obj: Object, old: Object | None) -> None:
    """Count the changes of a DaemonSet's template in an annotation."""
    count = 1
    if old is not None:
        before = (old["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION, "1")
        changed = (old.get("spec") or {}).get("template") != (obj.get("spec") or {}).get("template")
        count = int(before) + changed if before.isdecimal() else 1
    annotations = obj["metadata"].get("annotations") or {}
    obj["metadata"]["annotations"] = annotations | {_TEMPLATE_GENERATION: str(count)}


def _claim(obj: Object) -> None:
    _add_finalizer(obj["metadata"], CLAIM_PROTECTION)


def _volume(obj: Object) -> None:
    obj["status"].setdefault("lastPhaseTransitionTime", obj["metadata"]["creationTimestamp"])
    _add_finalizer(obj["metadata"], VOLUME_PROTECTION)


def _add_finalizer(part: Object, finalizer: str) -> None:
    finalizers = part.setdefault("finalizers", [])
    if finalizer not in finalizers:
        finalizers.append(finalizer)


def _secret(obj: Object) -> None:
    if "stringData" in obj:
        added = obj.pop("stringData") or {}
        encoded = {name: base64.b64encode(value.encode()).decode() for name, value in added.items()}
        obj["data"] = (obj.get("data") or {}) | encoded


_FILL: dict[str, Callable[[Object], None]] = {
    "Job": _job,
    "Namespace": _namespace,
    "PersistentVolume": _volume,
    "PersistentVolumeClaim": _claim,
    "Pod": _pod,
}
