"""Rules for specs that the schema does not tell, with the real server's causes: pods, workloads, Services."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from aioinformer.errors import SelectorError
from aioinformer.objects.labels import LabelSelector
from aioinformer.testing.errors import (
    cause,
    field_duplicate,
    field_forbidden,
    field_invalid,
    field_not_supported,
    field_required,
)
from aioinformer.testing.rules.addresses import needed_fields
from aioinformer.testing.rules.cron import schedule_fault
from aioinformer.testing.rules.object_rules import OBJECT_RULES, claim_faults
from aioinformer.testing.rules.secret_rules import secret_faults
from aioinformer.testing.rules.validation import dns_1123_faults
from aioinformer.testing.schema.conditional_defaults import pod_template, template_path
from aioinformer.testing.schema.formats import fits_format
from aioinformer.testing.schema.selectors import label_faults
from aioinformer.testing.schema.type_rules import PORT_RANGE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from aioinformer.testing.objects import Object

    _Faults = Iterator[dict[str, str]]

_SELECTING = frozenset(["DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"])
_EMPTY = {"ReplicaSet": "deployment"}  # as upstream says
_COUNTS = (
    *("replicas", "minReadySeconds", "revisionHistoryLimit", "minAvailable", "maxUnavailable"),
    *("leaseTransitions", "startingDeadlineSeconds", "ttlSecondsAfterFinished"),
    *("parallelism", "completions", "backoffLimit", "backoffLimitPerIndex", "maxFailedIndexes"),
    *("successfulJobsHistoryLimit", "failedJobsHistoryLimit"),
)
"""Fields of specs that must not be negative."""


def spec_faults(kind: str, obj: Object) -> _Faults:
    """Yield the causes for mistakes in a decoded object."""
    spec = obj.get("spec") or {}
    yield from _count_faults("spec", spec)
    if kind == "Deployment":
        yield from _strategy_faults(spec.get("strategy") or {})
    if kind in _SELECTING:
        yield from _selector_faults(kind, spec)
    if kind == "Pod":
        yield from _pod_faults("spec", spec)
    template = pod_template(obj, kind)
    if template is not None:
        path = template_path(kind)
        yield from label_faults(f"{path}.labels", (template.get("metadata") or {}).get("labels") or {})
        yield from _pod_faults(f"{path}.spec", template.get("spec") or {})
        yield from _restart_faults(kind, f"{path}.spec.restartPolicy", template.get("spec") or {})
    more = _MORE.get(kind)
    if more is not None:
        yield from more(obj)
    if kind == "Service":
        yield from _repeated_ports(spec.get("ports") or ())


def _count_faults(path: str, spec: Object) -> _Faults:
    for name in _COUNTS:
        if isinstance(spec.get(name), int) and spec[name] < 0:
            yield field_invalid(f"{path}.{name}", spec[name], "must be greater than or equal to 0")


def _strategy_faults(strategy: Object) -> _Faults:
    if strategy.get("type") == "Recreate" and strategy.get("rollingUpdate") is not None:
        why = "may not be specified when strategy `type` is 'Recreate'"
        yield field_forbidden("spec.strategy.rollingUpdate", why)
    elif strategy.get("type") not in ("Recreate", "RollingUpdate"):  # shown as the Go struct
        rolling = strategy.get("rollingUpdate")
        shown = rolling and {
            name[0].upper() + name[1:]: rolling.get(name) for name in ("maxUnavailable", "maxSurge")
        }
        value = {"Type": strategy.get("type"), "RollingUpdate": shown}
        yield field_not_supported("spec.strategy", value, ["Recreate", "RollingUpdate"])


def _selector_faults(kind: str, spec: Object) -> _Faults:
    selector = spec.get("selector")
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if selector is not None and not (selector.get("matchLabels") or selector.get("matchExpressions")):
        why = f"empty selector is invalid for {_EMPTY.get(kind, kind.lower())}"
        yield field_invalid("spec.selector", selector, why)
        return
    try:
        matches = selector is not None and LabelSelector.of(selector).matches(labels or {})
    except SelectorError:
        yield field_invalid("spec.selector", selector, "invalid label selector")
        return
    if not matches:
        why = "`selector` does not match template `labels`"
        yield field_invalid("spec.template.metadata.labels", labels, why)


def _restart_faults(kind: str, path: str, spec: Object) -> _Faults:
    policy = spec.get("restartPolicy")
    if kind in ("Job", "CronJob"):
        if policy == "Always":
            yield field_required(path, 'valid values: "OnFailure", "Never"')
    elif kind != "PodTemplate" and policy in ("OnFailure", "Never"):
        yield field_not_supported(path, policy, ["Always"])


def _pod_faults(path: str, spec: Object) -> _Faults:
    volumes = spec.get("volumes") or []
    yield from _name_faults(f"{path}.volumes", volumes)
    for number, volume in enumerate(volumes):
        for second in [name for name in volume if name != "name"][1:]:
            why = "may not specify more than 1 volume type"
            yield field_forbidden(f"{path}.volumes[{number}].{second}", why)
    names: set[str] = set()
    volume_names = {volume.get("name") for volume in volumes}
    for part in ("containers", "initContainers"):
        containers = spec.get(part) or []
        yield from _name_faults(f"{path}.{part}", containers, names)
        for number, container in enumerate(containers):
            yield from _container_faults(f"{path}.{part}[{number}]", container, volume_names)
    yield from label_faults(f"{path}.nodeSelector", spec.get("nodeSelector") or {})


def _name_faults(path: str, items: Sequence[Object], seen: set[str] | None = None) -> _Faults:
    """Yield causes for names that are no labels or occur twice; the schema requires them."""
    seen = set() if seen is None else seen
    for number, item in enumerate(items):
        name = item.get("name") or ""
        for why in dns_1123_faults(name) if name else ():
            yield field_invalid(f"{path}[{number}].name", name, why)
        if name in seen:
            yield field_duplicate(f"{path}[{number}].name", name)
        seen.add(name)


def _container_faults(path: str, container: Object, volumes: set[Any]) -> _Faults:
    image = container.get("image") or ""
    if not image:
        yield field_required(f"{path}.image")
    elif image != image.strip():
        yield field_invalid(f"{path}.image", image, "must not have leading or trailing whitespace")
    names: set[str] = set()
    for number, port in enumerate(container.get("ports") or ()):
        place, name = f"{path}.ports[{number}]", port.get("name") or ""
        if name and (why := _port_name_fault(name)):
            yield field_invalid(f"{place}.name", name, why)
        elif name and name in names:
            yield field_duplicate(f"{place}.name", name)
        names.add(name)
        if not port.get("containerPort"):
            yield field_required(f"{place}.containerPort")
        elif not 0 < port["containerPort"] < 65536:
            yield field_invalid(f"{place}.containerPort", port["containerPort"], PORT_RANGE)
    for number, mount in enumerate(container.get("volumeMounts") or ()):
        if mount.get("name") and mount["name"] not in volumes:
            place = f"{path}.volumeMounts[{number}].name"
            yield cause("FieldValueNotFound", f'Not found: "{mount["name"]}"', place)


def _port_name_fault(name: str) -> str:
    """Return what is wrong with the name of a port (an IANA service name), or `""`."""
    if len(name) > 15:
        return "must be no more than 15 characters"
    if not re.fullmatch("[-a-z0-9]+", name):
        return "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
    if not re.search("[a-z]", name):
        return "must contain at least one letter (a-z)"
    if "--" in name:
        return "must not contain consecutive hyphens"
    return "must not begin or end with a hyphen" if "-" in (name[0], name[-1]) else ""


def _service(obj: Object) -> _Faults:
    spec = obj.get("spec") or {}
    ports, kind = spec.get("ports") or [], spec.get("type")
    if kind == "ExternalName" and not spec.get("externalName"):
        yield field_required("spec.externalName")
    if not ports and kind != "ExternalName" and spec.get("clusterIP") != "None":
        yield field_required("spec.ports")
    yield from _address_faults(spec)
    has_node_ports = "nodePort" in needed_fields(spec)
    names: set[str] = set()
    for number, port in enumerate(ports):
        place, name = f"spec.ports[{number}]", port.get("name") or ""
        if not name and len(ports) > 1:
            yield field_required(f"{place}.name")
        for why in dns_1123_faults(name) if name else ():
            yield field_invalid(f"{place}.name", name, why)
        if name and name in names:
            yield field_duplicate(f"{place}.name", name)
        names.add(name)
        if not 0 < port["port"] < 65536:
            yield field_invalid(f"{place}.port", port["port"], PORT_RANGE)
        if port.get("nodePort") and not has_node_ports:
            yield field_forbidden(f"{place}.nodePort", f"may not be used when `type` is '{kind}'")
        target = port.get("targetPort")
        if isinstance(target, str) and (why := _port_name_fault(target)):
            yield field_invalid(f"{place}.targetPort", target, why)
        elif isinstance(target, int) and not 0 < target < 65536:
            yield field_invalid(f"{place}.targetPort", target, PORT_RANGE)
    yield from label_faults("spec.selector", spec.get("selector") or {})


def _address_faults(spec: Object) -> _Faults:
    kind, address = spec.get("type"), spec.get("clusterIP") or ""
    addresses = spec.get("clusterIPs") or ([address] if address else [])
    if addresses and kind == "ExternalName":
        yield field_forbidden("spec.clusterIPs", "may not be set for ExternalName services")
    elif addresses and not address:
        yield field_invalid("spec.clusterIPs", addresses, "must be empty when `clusterIP` is not specified")
    elif addresses and addresses[0] != address:
        yield field_invalid("spec.clusterIPs", addresses, "first value must match `clusterIP`")
    elif address == "None" and kind != "ClusterIP":
        yield field_invalid("spec.clusterIPs[0]", address, f"may not be set to 'None' for {kind} services")
    elif address not in ("", "None") and not (fits_format("ipv4", address) or fits_format("ipv6", address)):
        why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        yield field_invalid("spec.clusterIPs[0]", address, why)


def _repeated_ports(ports: Sequence[Object]) -> _Faults:
    seen: set[tuple[str, int]] = set()
    for number, port in enumerate(ports):
        if (key := (port["protocol"], port["port"])) in seen:
            shown = {"Name": "", "Protocol": key[0], "AppProtocol": None, "Port": key[1]}
            text = msgspec.json.encode({**shown, "TargetPort": 0, "NodePort": 0}).decode()
            why = f"Duplicate value: {text}"
            yield cause("FieldValueDuplicate", why, f"spec.ports[{number}]")
        seen.add(key)


def _cron_job(obj: Object) -> _Faults:
    spec = obj.get("spec") or {}
    yield from _count_faults("spec.jobTemplate.spec", (spec.get("jobTemplate") or {}).get("spec") or {})
    schedule = spec.get("schedule")
    if schedule and (why := schedule_fault(schedule)):
        yield field_invalid("spec.schedule", schedule, why)


def _stateful_set(obj: Object) -> _Faults:
    for number, claim in enumerate((obj.get("spec") or {}).get("volumeClaimTemplates") or ()):
        yield from claim_faults(f"spec.volumeClaimTemplates[{number}].spec", claim.get("spec") or {})


_MORE: dict[str, Callable[[Object], _Faults]] = {
    **OBJECT_RULES,
    "CronJob": _cron_job,
    "Secret": secret_faults,
    "Service": _service,
    "StatefulSet": _stateful_set,
}
