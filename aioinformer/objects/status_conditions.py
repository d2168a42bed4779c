"""Conditions in an object's status (k8s.io/apimachinery ``api/meta/conditions.go``). Nothing is changed in place."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from time import time
from typing import Any, TypeVar

from .._core.checks import require_text
from ..errors import ConfigError
from .kube_object import KubeObject

T = TypeVar("T", KubeObject, dict[str, Any])

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"

COMPARED = ("status", "reason", "message", "observedGeneration")
"""The fields that a condition is set for."""


def set_status_condition(
    obj: T, kind: str, status: str, reason: str, message: str = "", *, now: datetime | None = None
) -> tuple[T, bool]:
    """``(obj, changed)``: the object with a condition in its status, as a new object if it was not so.

    The condition's ``observedGeneration`` is the object's generation, if it has one. Its ``lastTransitionTime``
    changes with its status alone; fields that are not named here stay as they are.

    Args:
        obj: A KubeObject, or a dict.
        kind: The condition's type, such as ``"Ready"``.
        status: ``"True"``, ``"False"`` or ``"Unknown"``.
        reason: Why, in one word for programs: ``"DeploymentAvailable"``.
        message: Why, for people.
        now: The time of day; None asks the clock.

    Raises:
        ConfigError: The object is of another type, or an argument cannot be what it is for.
    """
    require_text("kind", kind)
    require_text("reason", reason)
    require_text("message", message)
    if status not in (TRUE, FALSE, UNKNOWN):
        raise ConfigError(f"a condition's status is 'True', 'False' or 'Unknown', not {status!r}")
    conditions = _conditions_of(obj)
    index = next((i for i, each in enumerate(conditions) if each.get("type") == kind), len(conditions))
    old = conditions[index] if index < len(conditions) else {}
    new = {**old, "type": kind, "status": status, "reason": reason, "message": message}
    new.pop("observedGeneration", None)
    if generation := (obj.get("metadata") or {}).get("generation"):
        new["observedGeneration"] = generation
    if old.get("status") != status:
        moment = datetime.fromtimestamp(time(), UTC) if now is None else now.astimezone(UTC)
        new["lastTransitionTime"] = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    if all((old.get(field) or None) == (new.get(field) or None) for field in COMPARED):
        return obj, False
    conditions[index : index + 1] = [new]
    return _with_conditions(obj, conditions), True


def remove_status_condition(obj: T, kind: str) -> tuple[T, bool]:
    """``(obj, changed)``: the object without a condition in its status, as a new object if it had it.

    Raises:
        ConfigError: The object is no KubeObject, and no dict.
    """
    conditions = _conditions_of(obj)
    left = [each for each in conditions if each.get("type") != kind]
    if len(left) == len(conditions):
        return obj, False
    return _with_conditions(obj, left), True


def find_status_condition(obj: KubeObject | Mapping[str, Any], kind: str) -> dict[str, Any] | None:
    """The condition of a type in an object's status, as a dict; None where there is none.

    Raises:
        ConfigError: The object is no KubeObject, and no dict.
    """
    return next((each for each in _conditions_of(obj) if each.get("type") == kind), None)


def is_status_condition_true(obj: KubeObject | Mapping[str, Any], kind: str) -> bool:
    """Whether an object's status has a condition, and its status is ``"True"``.

    Raises:
        ConfigError: The object is no KubeObject, and no dict.
    """
    return _is(obj, kind, TRUE)


def is_status_condition_false(obj: KubeObject | Mapping[str, Any], kind: str) -> bool:
    """Whether an object's status has a condition, and its status is ``"False"``.

    Raises:
        ConfigError: The object is no KubeObject, and no dict.
    """
    return _is(obj, kind, FALSE)


def _is(obj: KubeObject | Mapping[str, Any], kind: str, status: str) -> bool:
    condition = find_status_condition(obj, kind)
    return condition is not None and condition.get("status") == status


def _conditions_of(obj: Any) -> list[dict[str, Any]]:
    """What an object has of them, in a list of the caller's own."""
    if not isinstance(obj, (KubeObject, Mapping)):
        raise ConfigError(f"conditions are those of a KubeObject or a dict, not of a {type(obj).__name__}")
    return list((obj.get("status") or {}).get("conditions") or ())


def _with_conditions(obj: T, conditions: list[dict[str, Any]]) -> T:
    fields = {**obj, "status": {**(obj.get("status") or {}), "conditions": conditions}}
    if isinstance(obj, KubeObject):
        return type(obj).from_dict(fields)
    return fields
