"""Defaults of pods and pod templates that depend on other fields, as in Kubernetes' SetDefaults functions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from aioinformer.testing.schema.scalars import quantity, show_quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aioinformer.testing.objects import Object

_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_HUGE = "hugepages-"


def complete_pod(spec: Object) -> None:
    """Fill in the defaults that only pods have, besides those of templates, in place."""
    complete_pod_spec(spec)
    for part in _CONTAINERS[:2]:
        for container in spec.get(part) or ():
            resources = container.get("resources") or {}
            if limits := resources.get("limits"):
                resources["requests"] = limits | (resources.get("requests") or {})
            if spec.get("hostNetwork"):
                for port in container.get("ports") or ():
                    port["hostPort"] = port.get("hostPort") or port["containerPort"]
    if spec.get("resources"):
        _complete_resources(spec, spec["resources"])


def complete_pod_spec(spec: Object) -> None:
    """Fill in the defaults of a pod or a pod template, in place."""
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    if spec.get("containers") is None:
        spec["containers"] = []  # only the Python API accepts such pods, and models refuse null
    for part in _CONTAINERS:
        for container in spec.get(part) or ():
            if not container.get("imagePullPolicy"):
                container["imagePullPolicy"] = _pull_policy(container.get("image") or "")
    for volume in spec.get("volumes") or ():
        if len(volume) == 1:
            volume["emptyDir"] = {}
        if (image := volume.get("image")) is not None and not image.get("pullPolicy"):
            image["pullPolicy"] = _pull_policy(image.get("reference") or "")


_COMPONENT = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_HOST = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[a-fA-F0-9:]+\])"
_IMAGE = re.compile(
    rf"(?:{_HOST}(?::[0-9]+)?/)?{_COMPONENT}(?:/{_COMPONENT})*(?::(?P<tag>\w[\w.-]{{0,127}}))?"
    "(?P<digest>@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?",
    re.ASCII,
)
"""A reference to an image, as the module distribution/reference reads it."""


def _pull_policy(image: str) -> str:
    match = _IMAGE.fullmatch(image)
    is_latest = match is not None and (match["tag"] or ("" if match["digest"] else "latest")) == "latest"
    return "Always" if is_latest else "IfNotPresent"


def _complete_resources(spec: Object, resources: Object) -> None:
    """Fill in the pod's own resources: limits of huge pages, then requests."""
    limits, requests = dict(resources.get("limits") or {}), dict(resources.get("requests") or {})
    if limits or requests:
        for name, value in _of_containers(spec, "limits").items():
            if name.startswith(_HUGE) and name not in requests:
                limits.setdefault(name, value)
    if limits:
        of_containers = _of_containers(spec, "requests")
        for name in {"cpu", "memory"} & of_containers.keys():
            requests.setdefault(name, of_containers[name])
        for name, value in limits.items():
            if name in ("cpu", "memory") or name.startswith(_HUGE):
                requests.setdefault(name, value)
    resources.update(
        {name: amounts for name, amounts in (("limits", limits), ("requests", requests)) if amounts}
    )


def _of_containers(spec: Object, kind: str) -> dict[str, str]:
    """Return what the containers need at once: the init containers run one after the other, before the others."""
    together: dict[str, str] = {}
    for container in spec.get("containers") or ():
        _add(together, _amounts_of(container, kind))
    sidecars: dict[str, str] = {}
    highest: dict[str, str] = {}
    for container in spec.get("initContainers") or ():
        now = dict(sidecars)
        _add(now, _amounts_of(container, kind))
        if container.get("restartPolicy") == "Always":
            _add(together, _amounts_of(container, kind))
            sidecars = now
        _raise(highest, now)
    _raise(together, highest)
    return together


def _amounts_of(container: Object, kind: str) -> Mapping[str, str]:
    return (container.get("resources") or {}).get(kind) or {}


def _add(total: dict[str, str], more: Mapping[str, str]) -> None:
    for name, value in more.items():
        number, suffix = quantity(total.get(name, value))
        total[name] = show_quantity(number + quantity(value)[0], suffix) if name in total else value


def _raise(total: dict[str, str], other: Mapping[str, str]) -> None:
    for name, value in other.items():
        if name not in total or quantity(value)[0] > quantity(total[name])[0]:
            total[name] = value
