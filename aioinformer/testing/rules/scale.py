"""The scale subresource: the number of replicas, in the same form for every kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.apply.apply import check_type
from aioinformer.testing.apply.typed import check_typed
from aioinformer.testing.errors import StatusError, field_invalid, invalid
from aioinformer.testing.objects import value_at
from aioinformer.testing.rules.values import apply_error, decode_values, patch_error
from aioinformer.testing.schema.builtin import node_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from aioinformer.testing.objects import Object
    from aioinformer.testing.resources import ResourceType


def scale_of(resource: ResourceType, obj: Object) -> Object:
    """Return an object's Scale.

    Raises:
        StatusError: 500 for a custom resource without the replicas field.
    """
    path = resource.scale_paths.replicas
    if resource.custom and value_at(obj, _steps(path)) is None:
        why = f'the spec replicas field "{path}" does not exist'
        causes = [{"message": why}]
        raise StatusError(500, message=f"Internal error occurred: {why}", details={"causes": causes})
    return _scale(resource, obj)


def rescale(resource: ResourceType, obj: Object, change: Callable[[Object], Any]) -> Object:
    """Return an object with the replicas of the Scale that `change` returns.

    Raises:
        StatusError: 422 for an invalid number, or a value that does not fit its field.
    """
    kind, changed = resource.subresource_type("scale"), change(_scale(resource, obj))
    scale = decode_values(kind, changed, patch_error(kind, changed))
    given = scale["metadata"]
    sent = {field: given.get(field) for field in ("name", "namespace", "resourceVersion")}
    named = {field: value for field, value in sent.items() if value or field == "name"}
    metadata = {**obj["metadata"], **named}
    return _with_replicas(resource, {**obj, "metadata": metadata}, scale, obj["metadata"]["name"])


def applied_scale(resource: ResourceType, scale: Object, name: str) -> Object:
    """Return the configuration of the object that applying its Scale means.

    Raises:
        StatusError: 400 if it is no Scale, 422 for an invalid number, 500 for a custom resource, an unknown field or a
            value that does not fit its field.
    """
    check_type(scale, "autoscaling/v1", "Scale")
    if resource.custom:  # the real server fails
        message = (
            "failed to create manager for existing fields: failed to convert live object (/; autoscaling/v1, "
            "Kind=Scale) to proper version: request to convert CR to an invalid group/version: autoscaling/v1"
        )
        raise StatusError(500, "", message)
    applied: Object = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": scale.get("metadata"),
    }
    kind, node = resource.subresource_type("scale"), node_of("autoscaling/v1", "Scale")
    assert node is not None
    check_typed(kind, node, scale, name)
    return _with_replicas(resource, applied, decode_values(kind, scale, apply_error(kind, name)), name)


def _scale(resource: ResourceType, obj: Object) -> Object:
    paths, metadata = resource.scale_paths, obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    seen: dict[str, Any] = {"replicas": value_at(obj, _steps(paths.status_replicas)) or 0}
    if selector := value_at(obj, _steps(paths.selector)):
        seen["selector"] = selector if isinstance(selector, str) else _show(selector)
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in kept if name in metadata},
        "spec": {"replicas": wanted} if (wanted := value_at(obj, _steps(paths.replicas))) else {},
        "status": seen,
    }


def _with_replicas(resource: ResourceType, obj: Object, scale: Object, name: str) -> Object:
    replicas = scale["spec"].get("replicas", 0)
    if replicas < 0 and not resource.custom:
        causes = [field_invalid("spec.replicas", replicas, "must be greater than or equal to 0")]
        raise invalid("Scale", "autoscaling", name, causes)
    *parents, last = _steps(resource.scale_paths.replicas)
    result = dict(obj)
    place = result
    for step in parents:
        place[step] = dict(place.get(step) or {})
        place = place[step]
    place[last] = replicas
    return result


def _show(labels: dict[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def _steps(path: str) -> list[str]:
    return path.removeprefix(".").split(".")
