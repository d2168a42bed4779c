"""Rules for values by their Go type, wherever it occurs, with the real server's causes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.errors import field_forbidden, field_invalid, field_required
from aioinformer.testing.schema.scalars import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aioinformer.testing.objects import Object

    _Faults = Iterator[dict[str, str]]

PORT_RANGE = "must be between 1 and 65535, inclusive"
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_NO_PATH = "must be a simple json path starting with ."
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")


def _needs(name: str) -> Callable[[str, Object], _Faults]:
    def faults(path: str, value: Object) -> _Faults:
        if not value.get(name):
            yield field_required(f"{path}.{name}")

    return faults


def _port(path: str, value: Object) -> _Faults:
    if isinstance(given := value.get("port"), int) and not 0 < given < 65536:
        yield field_invalid(f"{path}.port", given, PORT_RANGE)


def _handler(path: str, handler: Object) -> _Faults:
    names = [name for name in _HANDLERS if handler.get(name) is not None]
    if not names:
        yield field_required(path, "must specify a handler type")
    for name in names[1:]:
        yield field_forbidden(f"{path}.{name}", "may not specify more than 1 handler type")


def _variable(path: str, variable: Object) -> _Faults:
    source = variable.get("valueFrom")
    if source == {}:
        kinds = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        yield field_invalid(f"{path}.valueFrom", "", f"must specify one of: {kinds}")
    elif source and variable.get("value"):
        yield field_invalid(f"{path}.valueFrom", "", "may not be specified when `value` is not empty")


def _resources(path: str, resources: Object) -> _Faults:
    limits = resources.get("limits") or {}
    for name, given in (resources.get("requests") or {}).items():
        if name in limits and parse_quantity(given)[0] > parse_quantity(limits[name])[0]:
            why = f"must be less than or equal to {name} limit of {limits[name]}"
            yield field_invalid(f"{path}.requests", given, why)


def _container(path: str, container: Object) -> _Faults:
    seen: set[Any] = set()
    for number, mount in enumerate(container.get("volumeMounts") or ()):
        if (place := mount.get("mountPath")) in seen:
            yield field_invalid(f"{path}.volumeMounts[{number}].mountPath", place, "must be unique")
        seen.add(place)


def _column(path: str, column: Object) -> _Faults:
    if (given := column.get("type")) and given not in _COLUMN_TYPES:
        yield field_invalid(f"{path}.type", given, f"must be one of {','.join(_COLUMN_TYPES)}")
    if (given := column.get("format")) and given not in _COLUMN_FORMATS:
        yield field_invalid(f"{path}.format", given, f"must be one of {','.join(_COLUMN_FORMATS)}")
    if (given := column.get("jsonPath")) and not given.startswith("."):
        yield field_invalid(f"{path}.JSONPath", given, _NO_PATH)


def _scale(path: str, scale: Object) -> _Faults:
    for name, root in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        given = scale.get(name) or f"{root}."
        if not given.startswith(f"{root}."):
            why = f"should be a json path under {root}" if given[0] == "." else _NO_PATH
            yield field_invalid(f"{path}.{name}", given, why)


TYPE_RULES: dict[str, Callable[[str, Object], _Faults]] = {
    "v1.ConfigMapEnvSource": _needs("name"),
    "v1.ConfigMapVolumeSource": _needs("name"),
    "v1.Container": _container,
    "v1.CustomResourceColumnDefinition": _column,
    "v1.CustomResourceSubresourceScale": _scale,
    "v1.EnvVar": _variable,
    "v1.HTTPGetAction": _port,
    "v1.LifecycleHandler": _handler,
    "v1.NetworkPolicyPort": _port,
    "v1.Probe": _handler,
    "v1.ResourceRequirements": _resources,
    "v1.SecretEnvSource": _needs("name"),
    "v1.SecretVolumeSource": _needs("secretName"),
    "v1.TCPSocketAction": _port,
}
"""The rules by the Go type; each gets the path and the value."""
