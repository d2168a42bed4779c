"""Objects as decoded JSON: values by path, conditions, times, and Go's words for values of a wrong type."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from math import floor
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

Object = dict[str, Any]
"""A Kubernetes object as decoded JSON."""

SYSTEM_METADATA = (
    *("name", "generateName", "selfLink", "uid", "resourceVersion", "generation"),
    *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"),
)
"""The metadata that no update can change."""

LARGEST_BODY = 3 * 1024 * 1024
"""Limit in bytes of a request, also after YAML aliases and patch copies are expanded, as on the real server."""

identity = msgspec.json.Encoder(order="deterministic").encode
"""Returns the same bytes for equal values, to look them up in sets and dicts."""


def value_at(obj: Object, steps: Iterable[str]) -> Any:
    """Return the value of a nested field, or None if it is missing."""
    value: Any = obj
    for step in steps:
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def condition_of(obj: Object, kind: str) -> Object | None:
    """Return the condition of a type in an object's status, or None."""
    conditions = value_at(obj, ("status", "conditions")) or ()
    return next((present for present in conditions if present.get("type") == kind), None)


def is_true(obj: Object, kind: str) -> bool:
    """Return whether a condition in an object's status is true."""
    return (condition_of(obj, kind) or {}).get("status") == "True"


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
    index = next((i for i, present in enumerate(conditions) if present.get("type") == kind), len(conditions))
    old = conditions[index] if index < len(conditions) else None
    conditions[index : index + 1] = [condition(kind, holds, reason, message, old, now)]
    return {**status, "conditions": conditions}


def timestamp(seconds: float) -> str:
    """Return a time in the format of metadata."""
    return _timestamp(floor(seconds))


@lru_cache(maxsize=1)
def _timestamp(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def wrong_type(field: str, wanted: str, value: Any) -> str:
    """Return the message of Go's JSON decoder for a value of the wrong type."""
    return f"json: cannot unmarshal {go_name(value)} into Go struct field {field} of type {wanted}"


def go_name(value: Any) -> str:
    """Return the name of a JSON value's type in Go's messages."""
    names = {list: "array", dict: "object", str: "string", bool: "bool", type(None): "null"}
    return names.get(type(value), "number")
