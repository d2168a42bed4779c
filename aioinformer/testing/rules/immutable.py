"""Fields of built-in kinds that no update may change, with the real server's causes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.errors import field_forbidden, field_invalid
from aioinformer.testing.objects import identity, value_at
from aioinformer.testing.schema.builtin import volume_sources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aioinformer.testing.objects import Object

    _Faults = Iterator[dict[str, str]]

_IMMUTABLE = {
    "ControllerRevision": ("data",),
    "DaemonSet": ("spec.selector",),
    "Deployment": ("spec.selector",),
    "EndpointSlice": ("addressType",),
    "IngressClass": ("spec.controller",),
    "Job": (
        "spec.completions",
        "spec.selector",
        "spec.completionMode",
        "spec.podFailurePolicy",
        "spec.backoffLimitPerIndex",
        "spec.managedBy",
        "spec.successPolicy",
        "spec.template",
    ),
    "PriorityClass": ("preemptionPolicy",),
    "ReplicaSet": ("spec.selector",),
    "ResourceQuota": ("spec.scopes",),
    "RuntimeClass": ("handler",),
    "Secret": ("type",),
    "StorageClass": ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"),
    "VolumeAttachment": ("spec",),
}

_STATEFUL_SET = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)
_POD = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_CLAIM = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"


def immutable_faults(kind: str, old: Object, new: Object) -> list[dict[str, str]]:
    """Return the causes for changed fields that are immutable; both objects are decoded."""
    faults = []
    for path in _IMMUTABLE.get(kind, ()):
        steps = path.split(".")
        if (value := value_at(new, steps)) != value_at(old, steps) and not _may_change(path, old):
            faults.append(field_invalid(path, value, "field is immutable"))
    more = _MORE.get(kind)
    return faults if more is None else [*faults, *more(old, new)]


def _may_change(path: str, job: Object) -> bool:
    """Return whether a Job's field may change: completions if indexed, the template if suspended."""
    spec = job.get("spec") or {}
    return (path == "spec.completions" and spec.get("completionMode") == "Indexed") or (
        path == "spec.template" and bool(spec.get("suspend"))
    )


def _without(part: Any, *names: str) -> Object:
    return {name: value for name, value in (part or {}).items() if name not in names}


def _data(*names: str) -> Callable[[Object, Object], _Faults]:
    def faults(old: Object, new: Object) -> _Faults:
        if old.get("immutable"):
            for name in ("immutable", *names):
                if new.get(name) != old.get(name):
                    yield field_forbidden(name, "field is immutable when `immutable` is set")

    return faults


def _stateful_set(old: Object, new: Object) -> _Faults:
    mutable = (
        *("replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit"),
        *("persistentVolumeClaimRetentionPolicy", "minReadySeconds"),
    )
    if _without(old.get("spec"), *mutable) != _without(new.get("spec"), *mutable):
        yield field_forbidden("spec", _STATEFUL_SET)


def _pod(old: Object, new: Object) -> _Faults:
    before, after = old.get("spec") or {}, new.get("spec") or {}
    for part in ("containers", "initContainers"):
        if len(before.get(part) or ()) != len(after.get(part) or ()):
            yield field_forbidden(f"spec.{part}", "pod updates may not add or remove containers")
            return
    kept = {*map(identity, after.get("tolerations") or ())}
    if any(identity(toleration) not in kept for toleration in before.get("tolerations") or ()):
        why = "existing toleration can not be modified except its tolerationSeconds"
        yield field_forbidden("spec.tolerations", why)
    if _immutable_part(before) != _immutable_part(after):
        yield field_forbidden("spec", _POD)


def ephemeral_container_faults(old: Object, new: Object) -> list[dict[str, str]]:
    """Return the causes for ephemeral containers of a pod that are gone or changed."""
    before, after = ((pod.get("spec") or {}).get("ephemeralContainers") or () for pod in (old, new))
    kept = {container.get("name"): container for container in after}
    faults = []
    for container in before:
        name = container["name"]
        if kept.get(name) != container:
            what = "changed" if name in kept else "removed"
            why = f'existing ephemeral containers "{name}" may not be {what}\n'
            faults.append(field_forbidden("spec.ephemeralContainers", why))
    return faults


def _immutable_part(spec: Object) -> Object:
    fixed = _without(spec, "activeDeadlineSeconds", "tolerations", "schedulingGates")
    for part in ("containers", "initContainers"):
        fixed[part] = [_without(container, "image") for container in spec.get(part) or ()]
    return fixed


def _claim(old: Object, new: Object) -> _Faults:
    before, after = old.get("spec") or {}, new.get("spec") or {}
    settable = [name for name in ("volumeName", "storageClassName") if not before.get(name)]
    is_bound = (old.get("status") or {}).get("phase") == "Bound"
    mutable = (*settable, *(("resources", "volumeAttributesClassName") if is_bound else ()))
    if _without(before, *mutable) != _without(after, *mutable):
        yield field_forbidden("spec", _CLAIM)
    if before.get("volumeMode") != after.get("volumeMode"):
        yield field_invalid("volumeMode", after.get("volumeMode"), "field is immutable")


def _volume(old: Object, new: Object) -> _Faults:
    before, after = old.get("spec") or {}, new.get("spec") or {}
    if any(before.get(name) != after.get(name) for name in volume_sources()):
        why = "spec.persistentvolumesource is immutable after creation"
        yield field_forbidden("spec.persistentvolumesource", why)


def _service(old: Object, new: Object) -> _Faults:
    before, after = old.get("spec") or {}, new.get("spec") or {}
    both = (before.get("type"), after.get("type"))
    if "ExternalName" not in both and before.get("clusterIP") != after.get("clusterIP"):
        yield field_invalid("spec.clusterIPs[0]", after.get("clusterIPs"), "may not change once set")


def _priority(old: Object, new: Object) -> _Faults:
    if old.get("value") != new.get("value"):
        yield field_forbidden("value", "may not be changed in an update.")


def _binding(old: Object, new: Object) -> _Faults:
    if old.get("roleRef") != new.get("roleRef"):
        given = new.get("roleRef") or {}
        shown = {f"{name[0].upper()}{name[1:]}".replace("Api", "API"): given[name] for name in sorted(given)}
        yield field_invalid("roleRef", shown, "cannot change roleRef")


_MORE: dict[str, Callable[[Object, Object], _Faults]] = {
    "ClusterRoleBinding": _binding,
    "ConfigMap": _data("data", "binaryData"),
    "PersistentVolume": _volume,
    "PersistentVolumeClaim": _claim,
    "Pod": _pod,
    "PriorityClass": _priority,
    "RoleBinding": _binding,
    "Secret": _data("data"),
    "Service": _service,
    "StatefulSet": _stateful_set,
}
