"""Content types of patches, and JSON patches for finalizers that lose no concurrent writes (RFC 6902).

A ``test`` operation makes a patch fail as a whole if the object has changed; then a new patch is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

PATH = "/metadata/finalizers"


def patch_adding(uid: str, finalizers: Sequence[str], name: str) -> list[dict[str, Any]]:
    """Return a patch that adds a finalizer to an object with these finalizers."""
    if not finalizers:
        # The field must be missing, which a test expresses by null; an empty list would replace another writer's.
        return [*_same(uid), _op("test", PATH, None), _op("add", PATH, [name])]
    return [*_same(uid), _op("test", PATH, list(finalizers)), _op("add", f"{PATH}/-", name)]


def patch_removing(uid: str, finalizers: Sequence[str], name: str) -> list[dict[str, Any]]:
    """Return a patch that removes all occurrences of a finalizer from an object with these finalizers."""
    patch = _same(uid)
    for index in reversed([index for index, finalizer in enumerate(finalizers) if finalizer == name]):
        patch += [_op("test", f"{PATH}/{index}", name), {"op": "remove", "path": f"{PATH}/{index}"}]
    return patch


def _same(uid: str) -> list[dict[str, Any]]:
    """Return a test that the object is the one that was read, not another of its name."""
    return [_op("test", "/metadata/uid", uid)] if uid else []


def _op(op: str, path: str, value: Any) -> dict[str, Any]:
    return {"op": op, "path": path, "value": value}
