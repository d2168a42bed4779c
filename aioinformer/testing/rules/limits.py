"""The defaults of LimitRanges for the containers of new pods, as the admission plugin LimitRanger sets them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aioinformer.testing.objects import Object

_PARTS = {"containers": "container", "initContainers": "init container"}
_FIELDS = (("requests", "defaultRequest", "request"), ("limits", "default", "limit"))


def limit(pod: Object, ranges: Iterable[Object]) -> None:
    """Complete the resources of a pod's containers, in place; an annotation tells what was set."""
    limits = [
        entry for ranged in ranges for entry in ranged["spec"]["limits"] if entry["type"] == "Container"
    ]
    defaults: dict[str, dict[str, str]] = {
        field: {name: amount for entry in limits for name, amount in (entry.get(default) or {}).items()}
        for field, default, _ in _FIELDS
    }
    done = [
        setting
        for part, kind in _PARTS.items()
        for container in pod["spec"].get(part) or ()
        for setting in _complete(container, kind, defaults)
    ]
    if done:
        annotations = pod["metadata"].get("annotations") or {}
        annotation = "LimitRanger plugin set: " + "; ".join(done)
        pod["metadata"]["annotations"] = annotations | {"kubernetes.io/limit-ranger": annotation}


def _complete(container: Object, kind: str, defaults: dict[str, dict[str, str]]) -> Iterable[str]:
    resources = container.get("resources") or {}
    for field, _, word in _FIELDS:
        given = resources.get(field) or {}
        if added := sorted(defaults[field].keys() - given.keys()):
            complete = {**given, **{name: defaults[field][name] for name in added}}
            resources = container["resources"] = {**resources, field: dict(sorted(complete.items()))}
            yield f"{', '.join(added)} {word} for {kind} {container['name']}"
