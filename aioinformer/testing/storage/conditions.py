"""Conditions in an object's status."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aioinformer.testing.objects import Object


def condition(kind: str, holds: bool, reason: str, message: str, old: Object | None, now: str) -> Object:
    """Return a condition; it keeps the old lastTransitionTime if its status is unchanged."""
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
    """Return a status with a condition added or replaced."""
    conditions = list(status.get("conditions") or [])
    index = next((i for i, each in enumerate(conditions) if each.get("type") == kind), len(conditions))
    old = conditions[index] if index < len(conditions) else None
    conditions[index : index + 1] = [condition(kind, holds, reason, message, old, now)]
    return {**status, "conditions": conditions}
