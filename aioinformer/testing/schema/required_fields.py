"""Required fields, enums and rules by type of built-in kinds, with the causes of the real server's 422."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from aioinformer.testing.errors import field_not_supported, field_required
from aioinformer.testing.schema.node import OF_EVERY_OBJECT, parts_of
from aioinformer.testing.schema.selectors import selector_faults
from aioinformer.testing.schema.type_rules import TYPE_RULES
from aioinformer.testing.schema.zeros import is_struct

if TYPE_CHECKING:
    from aioinformer.testing.objects import Object
    from aioinformer.testing.schema.node import Node

_UNCHECKED = frozenset([*OF_EVERY_OBJECT, "status"])

# Lists that must not be empty; the schema requires others too, which the server accepts without items.
_NOT_EMPTY = {
    "accessModes": "",
    "admissionReviewVersions": "must specify one of v1, v1beta1",
    "addresses": "must contain at least 1 address",
    "containers": "",
    "nodeSelectorTerms": "must have at least one node selector term",
    "usages": "",
    "verbs": "verbs must contain at least one value",
}

_STEP = re.compile(r"(?:^spec)?\.?[^.\[\]]+|\[[^\]]*\]")
_ORDER = {
    ".metadata": -1,
    "spec.schedule": -1,
    "spec.selector": -1,
    ".imagePullPolicy": 1,
    ".restartPolicy": 1,
    "spec.restartPolicy": 1,
    "spec.type": 1,
}
"""Fields that the real server checks before or after those that it is next to."""
_SUPPORTED = {
    "completionMode": ("NonIndexed", "Indexed"),
    "policyTypes": ("Ingress", "Egress"),
    "preemptionPolicy": ("PreemptLowerPriority", "Never"),
    "reclaimPolicy": ("Delete", "Retain"),
    "restartPolicy": ("Always", "OnFailure", "Never"),
    "sideEffects": ("None", "NoneOnDryRun"),
}
"""Supported values that differ from the schema's, or that the real server lists in another order."""
_WHY_REQUIRED = {
    **_NOT_EMPTY,
    "pathType": "pathType must be specified",
    "sideEffects": "must specify one of None, NoneOnDryRun",
}


def schema_faults(node: Node, obj: Object) -> list[dict[str, str]]:
    """Return the causes for missing fields, and for unsupported or invalid values, of a decoded object."""
    faults: list[dict[str, str]] = []
    for name, part, is_required in _fields_to_check(node):
        if name not in _UNCHECKED:
            _check(part, obj.get(name), name, faults, is_required=is_required)
    return faults


def value_faults(node: Node, value: Any, path: str) -> list[dict[str, str]]:
    """Return these causes for a value at a path."""
    faults: list[dict[str, str]] = []
    _check(node, value, path, faults)
    return faults


def in_order(faults: list[dict[str, str]]) -> list[dict[str, str]]:
    """Return the causes in the real server's order: those of a field together, some fields first or last."""
    if len(faults) < 2:
        return faults
    seen: dict[str, int] = {}

    def key(fault: dict[str, str]) -> tuple[bool, list[tuple[int, int]]]:
        field = fault["field"]
        steps = list(_STEP.finditer(field))
        order = [(_ORDER.get(step[0], 0), seen.setdefault(field[: step.end()], len(seen))) for step in steps]
        return fault["reason"] == "FieldValueDuplicate" and field.endswith("]"), order

    return sorted(faults, key=key)


def _check(
    node: Node, value: Any, path: str, faults: list[dict[str, str]], *, is_required: bool = False
) -> None:
    """Add the causes of a field and of those in it."""
    if is_required and _is_missing(node, value, path):
        faults.append(field_required(path, _WHY_REQUIRED.get(path.rpartition(".")[2], "")))
    elif value and node.enum and path != "spec.strategy.type":
        supported = _SUPPORTED.get(path.rpartition(".")[2].partition("[")[0], node.enum)
        if value not in supported:
            faults.append(field_not_supported(path, value, supported))
    elif node.go == "v1.LabelSelector":
        faults += selector_faults(path, value or {})
    elif isinstance(value, dict):
        if node.go in TYPE_RULES:
            faults += TYPE_RULES[node.go](path, value)
        for name, part, required in _fields_to_check(node):
            if required or name in value:
                _check(part, value.get(name), f"{path}.{name}", faults, is_required=required)
        if node.items is not None:
            for key, member in value.items():
                _check(node.items, member, f"{path}[{key}]", faults)
    elif isinstance(value, list) and node.items is not None:
        for number, element in enumerate(value):
            _check(node.items, element, f"{path}[{number}]", faults)


@cache
def _fields_to_check(node: Node) -> list[tuple[str, Node, bool]]:
    """Return the fields of a struct that can be at fault, and whether each is required."""
    return [
        (name, part, name in node.required)
        for name, part in node.properties.items()
        if name != "metadata" and (name in node.required or _can_fail(part, ()))
    ]


def _can_fail(node: Node, outer: tuple[Node, ...]) -> bool:
    """Return whether a value, without those that it is in, can be at fault."""
    if node.enum or node.required or node.go == "v1.LabelSelector" or node.go in TYPE_RULES:
        return True
    return node not in outer and any(_can_fail(part, (*outer, node)) for _, part in parts_of(node))


def _is_missing(node: Node, value: Any, path: str) -> bool:
    match node.type:
        case "array":
            return not value and path.rpartition(".")[2] in _NOT_EMPTY
        case "string":
            return not value
        case "object" if is_struct(node):
            return value is None
    return False
