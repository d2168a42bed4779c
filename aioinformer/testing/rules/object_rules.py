"""Rules for objects without pods that the schema does not tell, with the real server's causes."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any

from aioinformer.objects.labels import label_key_faults
from aioinformer.testing.errors import (
    field_duplicate,
    field_invalid,
    field_not_supported,
    field_required,
    field_too_long,
)
from aioinformer.testing.rules.webhook_rules import configuration_faults
from aioinformer.testing.schema.builtin import volume_sources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aioinformer.testing.objects import Object

    _Faults = Iterator[dict[str, str]]

MOST_DATA = 1024 * 1024
"""The most bytes of data in a ConfigMap or Secret."""
_LONGEST_KEY = 253
_KEY = re.compile("[-._a-zA-Z0-9]+")
_KEY_RULE = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


def _config_map(obj: Object) -> _Faults:
    texts, binaries = obj.get("data") or {}, obj.get("binaryData") or {}
    for key in texts:
        yield from key_faults("data", key)
        if key in binaries:
            yield field_invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    for key in binaries:
        yield from key_faults("binaryData", key)
    size = sum(len(text.encode()) for text in texts.values())
    if size + sum(len(base64.b64decode(encoded)) for encoded in binaries.values()) > MOST_DATA:
        yield field_too_long("[]", MOST_DATA)


def key_faults(path: str, key: str) -> _Faults:
    """Yield the causes for an invalid key of a ConfigMap or Secret."""
    if len(key) > _LONGEST_KEY:
        yield field_invalid(f"{path}[{key}]", key, f"must be no more than {_LONGEST_KEY} characters")
    if not _KEY.fullmatch(key):
        yield field_invalid(f"{path}[{key}]", key, _KEY_RULE)
    if key in (".", ".."):
        yield field_invalid(f"{path}[{key}]", key, f"must not be '{key}'")
    elif key.startswith(".."):
        yield field_invalid(f"{path}[{key}]", key, "must not start with '..'")


def _claim(obj: Object) -> _Faults:
    yield from claim_faults("spec", obj.get("spec") or {})


def claim_faults(path: str, spec: Object) -> _Faults:
    """Yield the causes for mistakes in the spec of a claim at a path."""
    if not spec.get("accessModes"):
        yield field_required(f"{path}.accessModes", "at least 1 access mode is required")
    if "storage" not in ((spec.get("resources") or {}).get("requests") or {}):
        yield field_required(f"{path}.resources[storage]")


def _autoscaler(obj: Object) -> _Faults:
    spec = obj.get("spec") or {}
    most, least = spec["maxReplicas"], spec["minReplicas"]
    if most < 1:
        yield field_required("spec.maxReplicas", "must be set and greater than 0")
    if most < least:
        yield field_invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`")
    target = spec.get("scaleTargetRef") or {}
    if target.get("kind") != "ReplicationController" and "/" not in (target.get("apiVersion") or ""):
        why = "apiVersion must specify API group"
        yield field_invalid("spec.scaleTargetRef.apiVersion", target.get("apiVersion") or "", why)


def _lease(obj: Object) -> _Faults:
    seconds = (obj.get("spec") or {}).get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        yield field_invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")


def _budget(obj: Object) -> _Faults:
    spec = obj.get("spec") or {}
    if "minAvailable" in spec and "maxUnavailable" in spec:
        yield field_invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set")


def _network_policy(obj: Object) -> _Faults:
    spec = obj.get("spec") or {}
    for part, peers in (("ingress", "from"), ("egress", "to")):
        for number, rule in enumerate(spec.get(part) or ()):
            for index, peer in enumerate(rule.get(peers) or ()):
                if not peer:
                    yield field_required(f"spec.{part}[{number}].{peers}[{index}]", "must specify a peer")


def _binding(obj: Object) -> _Faults:
    is_of_cluster = obj.get("kind") == "ClusterRoleBinding"
    kinds = ["ClusterRole"] if is_of_cluster else ["Role", "ClusterRole"]
    kind = (obj.get("roleRef") or {}).get("kind", "")
    if kind not in kinds:
        yield field_not_supported("roleRef.kind", kind, kinds)
    for number, subject in enumerate(obj.get("subjects") or ()):
        place = f"subjects[{number}]"
        if subject.get("kind") not in ("ServiceAccount", "User", "Group"):
            supported = ("ServiceAccount", "User", "Group")
            yield field_not_supported(f"{place}.kind", subject.get("kind", ""), supported)
        elif is_of_cluster and subject["kind"] == "ServiceAccount" and not subject.get("namespace"):
            yield field_required(f"{place}.namespace")


def _ingress(obj: Object) -> _Faults:
    spec = obj.get("spec") or {}
    if not spec.get("rules") and "defaultBackend" not in spec:
        why = "either `defaultBackend` or `rules` must be specified"
        yield field_invalid("spec", spec.get("rules"), why)
    if "defaultBackend" in spec:
        yield from _backend_faults("spec.defaultBackend", spec["defaultBackend"])
    for number, rule in enumerate(spec.get("rules") or ()):
        if "http" not in rule:
            continue
        place = f"spec.rules[{number}].http.paths"
        if not rule["http"].get("paths"):
            yield field_required(place)
        for index, path in enumerate(rule["http"].get("paths") or ()):
            if path.get("pathType") in ("Exact", "Prefix") and not (path.get("path") or "").startswith("/"):
                yield field_invalid(
                    f"{place}[{index}].path", path.get("path") or "", "must be an absolute path"
                )
            yield from _backend_faults(f"{place}[{index}].backend", path.get("backend") or {})


def _backend_faults(path: str, backend: Object) -> _Faults:
    service = backend.get("service")
    if service is None and "resource" not in backend:
        yield field_invalid(path, "", "resource or service backend is required")
    if service is not None and not any((service.get("port") or {}).values()):
        yield field_required(path, "port name or number is required")


def _volume(obj: Object) -> _Faults:
    spec = obj.get("spec") or {}
    capacity = spec.get("capacity")
    if not spec.get("accessModes"):
        yield field_required("spec.accessModes")
    if not capacity:
        yield field_required("spec.capacity")
    if {*(capacity or ())} != {"storage"}:
        yield field_not_supported("spec.capacity", capacity, ["storage"])
    if spec.keys().isdisjoint(volume_sources()):
        yield field_required("spec", "must specify a volume type")


def _role(obj: Object) -> _Faults:
    for number, rule in enumerate(obj.get("rules") or ()):
        place = f"rules[{number}]"
        if rule.get("nonResourceURLs"):
            if obj.get("kind") == "Role":
                why = "namespaced rules cannot apply to non-resource URLs"
                yield field_invalid(f"{place}.nonResourceURLs", rule["nonResourceURLs"], why)
            continue
        if not rule.get("apiGroups"):
            yield field_required(f"{place}.apiGroups", "resource rules must supply at least one api group")
        if not rule.get("resources"):
            yield field_required(f"{place}.resources", "resource rules must supply at least one resource")


def _limit_range(obj: Object) -> _Faults:
    seen: set[Any] = set()
    for number, limit in enumerate((obj.get("spec") or {}).get("limits") or ()):
        given = limit.get("type")
        if given and "/" not in given:
            for why in label_key_faults(given):
                yield field_invalid(f"spec.limits[{number}].type", given, why)
        if given in seen:
            yield field_duplicate(f"spec.limits[{number}].type", given)
        seen.add(given)


OBJECT_RULES: dict[str, Callable[[Object], _Faults]] = {
    "ClusterRole": _role,
    "ClusterRoleBinding": _binding,
    "ConfigMap": _config_map,
    "HorizontalPodAutoscaler": _autoscaler,
    "Ingress": _ingress,
    "Lease": _lease,
    "LimitRange": _limit_range,
    "MutatingWebhookConfiguration": configuration_faults,
    "NetworkPolicy": _network_policy,
    "PersistentVolume": _volume,
    "PersistentVolumeClaim": _claim,
    "PodDisruptionBudget": _budget,
    "Role": _role,
    "RoleBinding": _binding,
    "ValidatingWebhookConfiguration": configuration_faults,
}
"""The rules by kind."""
