"""Match the items of lists by the field that identifies them."""

from __future__ import annotations

from typing import Any

_KEYS = ("name", "type", "key", "uid")
"""Fields that identify the items of Kubernetes' lists, most common first."""


def by_key(*lists: list[Any]) -> list[dict[str, Any]] | None:
    """Return the items of each list by the field that identifies them; None if no field does in all lists."""
    for key in _KEYS:
        found = [keyed for each in lists if (keyed := _keyed(each, key)) is not None]
        if len(found) == len(lists):
            return found
    return None


def _keyed(items: list[Any], key: str) -> dict[str, Any] | None:
    """Return items by a field; None if they do not all have it, each with another value."""
    found = {each[key]: each for each in items if isinstance(each, dict) and isinstance(each.get(key), str)}
    return found if len(found) == len(items) else None
