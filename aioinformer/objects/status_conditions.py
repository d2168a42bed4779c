"""Reads and sets status conditions (k8s.io/apimachinery ``api/meta/conditions.go``). Never changes in place."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from time import time
from typing import Any, TypeVar

import msgspec

from .._core.texts import valid_text
from ..errors import ConfigError, message_of
from .decoders import decoder_of
from .encoding import fields_of
from .keys import metadata_field, read_field
from .kube_object import KubeObject, encode

T = TypeVar("T", bound=KubeObject | Mapping[str, Any] | msgspec.Struct)  # excludes None: see finalizers

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"

READY, PROGRESSING = "Ready", "Progressing"
"""The types of the conditions that ``set_ready_condition`` sets."""
SUCCEEDED, WAITING = "ReconcileSucceeded", "WaitingToBeReady"
"""The reasons that ``set_ready_condition`` gives without an error."""
FAILED = "ReconcileFailed"
"""The default reason of an error."""

LONGEST_REASON, LONGEST_MESSAGE = 1024, 32768
"""Characters that the API takes."""

COMPARED = ("status", "reason", "message", "observedGeneration")
"""The fields whose change makes ``set_status_condition`` change the object."""


def set_status_condition(
    obj: T, kind: str, status: str, reason: str, message: str = "", *, now: datetime | None = None
) -> tuple[T, bool]:
    """Return ``(obj, changed)``: the object with a condition in its status, a new object if the condition changed.

    ``observedGeneration`` is set to the object's generation, if it has one. ``lastTransitionTime`` changes only when
    the status changes. Other fields of the condition stay as they are.

    Args:
        obj: A KubeObject, a dict, or a Struct whose status has conditions.
        kind: The condition's type, such as ``"Ready"``.
        status: ``"True"``, ``"False"`` or ``"Unknown"``.
        reason: The reason for programs, one word: ``"DeploymentAvailable"``.
        message: The reason for people.
        now: The current time; None for the system clock.

    Raises:
        ConfigError: The object is of another type or has no conditions, or the status is another string.
        DecodeError: The Struct cannot have the condition.
    """
    if status not in (TRUE, FALSE, UNKNOWN):
        raise ConfigError(f"a condition's status is 'True', 'False' or 'Unknown', not {status!r}")
    conditions = conditions_of(obj)
    index = next(
        (i for i, condition in enumerate(conditions) if condition.get("type") == kind), len(conditions)
    )
    old = conditions[index] if index < len(conditions) else {}
    new = {**old, "type": kind, "status": status, "reason": reason, "message": message}
    new.pop("observedGeneration", None)
    if generation := metadata_field(obj, "generation", "generation"):
        new["observedGeneration"] = generation
    if old.get("status") != status:
        moment = datetime.fromtimestamp(time(), UTC) if now is None else now.astimezone(UTC)
        new["lastTransitionTime"] = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    if all((old.get(field) or None) == (new.get(field) or None) for field in COMPARED):
        return obj, False
    conditions[index : index + 1] = [new]
    return _with_conditions(obj, conditions), True


def set_ready_condition(
    obj: T,
    *,
    error: BaseException | str = "",
    progressing: str = "",
    reason: str = "",
    now: datetime | None = None,
) -> tuple[T, bool]:
    """Return ``(obj, changed)``: the object with the conditions ``Ready`` and ``Progressing`` after a reconcile.

    | | Ready | Progressing |
    | --- | --- | --- |
    | an error | False | False |
    | ``progressing`` | False | True |
    | neither | True | False |

    ``Progressing`` is added by the first ``progressing``. Both have the same reason and message; too long ones are cut.

    Args:
        obj: As for ``set_status_condition``.
        error: Why the reconcile failed.
        progressing: What the object waits for, for people: ``"2 of 3 replicas are available"``.
        reason: The reason, for programs, in place of the default one.
        now: The current time; None for the system clock.

    Raises:
        ConfigError: As for ``set_status_condition``.
        DecodeError: The Struct cannot have the condition.
    """
    message = error if isinstance(error, str) else message_of(error)
    default = FAILED if message else WAITING if progressing else SUCCEEDED
    reason = (reason or default)[:LONGEST_REASON]
    message = valid_text(message or progressing)[:LONGEST_MESSAGE]
    is_progressing = default == WAITING
    obj, changed = set_status_condition(
        obj, READY, TRUE if default == SUCCEEDED else FALSE, reason, message, now=now
    )
    if is_progressing or find_status_condition(obj, PROGRESSING) is not None:
        progress = TRUE if is_progressing else FALSE
        obj, has_changed = set_status_condition(obj, PROGRESSING, progress, reason, message, now=now)
        changed = changed or has_changed
    return obj, changed


def remove_status_condition(obj: T, kind: str) -> tuple[T, bool]:
    """Return ``(obj, changed)``: the object without a condition in its status, a new object if it had the condition.

    Raises:
        ConfigError: The object is not a KubeObject, a dict or a Struct.
    """
    conditions = conditions_of(obj)
    remaining = [condition for condition in conditions if condition.get("type") != kind]
    if len(remaining) == len(conditions):
        return obj, False
    return _with_conditions(obj, remaining), True


def find_status_condition(
    obj: KubeObject | Mapping[str, Any] | msgspec.Struct, kind: str
) -> dict[str, Any] | None:
    """Return the condition of a type in an object's status; None if there is none.

    Raises:
        ConfigError: The object is not a KubeObject, a dict or a Struct.
    """
    return next((condition for condition in conditions_of(obj) if condition.get("type") == kind), None)


def is_status_condition_true(obj: KubeObject | Mapping[str, Any] | msgspec.Struct, kind: str) -> bool:
    """Return whether an object has a condition whose status is ``"True"``.

    Raises:
        ConfigError: The object is not a KubeObject, a dict or a Struct.
    """
    return _is(obj, kind, TRUE)


def is_status_condition_false(obj: KubeObject | Mapping[str, Any] | msgspec.Struct, kind: str) -> bool:
    """Return whether an object has a condition whose status is ``"False"``.

    Raises:
        ConfigError: The object is not a KubeObject, a dict or a Struct.
    """
    return _is(obj, kind, FALSE)


def _is(obj: KubeObject | Mapping[str, Any] | msgspec.Struct, kind: str, status: str) -> bool:
    condition = find_status_condition(obj, kind)
    return condition is not None and condition.get("status") == status


def conditions_of(obj: Any) -> list[dict[str, Any]]:
    """Return an object's conditions, as a new list.

    Raises:
        ConfigError: The object is not a KubeObject, a dict or a Struct, or has something else there.
    """
    if isinstance(obj, (KubeObject, Mapping)):
        status = obj.get("status")
    elif isinstance(obj, msgspec.Struct):
        status = read_field(obj, "status", "status")
    else:
        raise ConfigError(
            f"conditions are those of a KubeObject, a dict or a Struct, not of a {type(obj).__name__}"
        )
    conditions = read_field(status, "conditions", "conditions") or ()
    if not isinstance(conditions, (list, tuple)):
        raise ConfigError(f"status.conditions is a list, not a {type(conditions).__name__}")
    return [condition if isinstance(condition, dict) else fields_of(condition) for condition in conditions]


def _with_conditions(obj: Any, conditions: list[dict[str, Any]]) -> Any:
    fields = fields_of(obj)
    fields = {**fields, "status": {**(fields.get("status") or {}), "conditions": conditions}}
    if isinstance(obj, KubeObject):
        return type(obj).from_dict(fields)
    if not isinstance(obj, msgspec.Struct):
        return fields
    made = decoder_of(type(obj))(encode(fields), None)
    if len(conditions_of(made)) != len(conditions):
        raise ConfigError(
            f"the status of a {type(obj).__name__} has no conditions: give its class "
            "`conditions: list[Condition] = []`, with the Condition of aioinformer.typed"
        )
    return made
