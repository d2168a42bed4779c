"""The conditions in an object's status."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aioinformer.testing.objects import Object


def condition(kind: str, holds: bool, reason: str, message: str, old: Object | None, now: str) -> Object:
    """A condition; since when it is as it is stays as it was, if the old one was so too."""
    status = "True" if holds else "False"
    is_same = old is not None and old.get("status") == status
    return {
        "type": kind,
        "status": status,
        "lastTransitionTime": old.get("lastTransitionTime", now) if old is not None and is_same else now,
        "reason": reason,
        "message": message,
    }


def with_condition(status: Object, kind: str, holds: bool, reason: str, message: str, now: str) -> Object:
    """A status with a condition set, at its place if there is one."""
    conditions = list(status.get("conditions") or [])
    index = next((i for i, each in enumerate(conditions) if each.get("type") == kind), len(conditions))
    old = conditions[index] if index < len(conditions) else None
    conditions[index : index + 1] = [condition(kind, holds, reason, message, old, now)]
    return {**status, "conditions": conditions}
