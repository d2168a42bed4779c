"""Kinds of patches; and those of finalizers, which cannot lose what others write at the same time (RFC 6902).

A patch says in a ``test`` what it was made for. Where that is no longer so it fails as a whole, and is made again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

PATH = "/metadata/finalizers"


def adding(uid: str, finalizers: Sequence[str], name: str) -> list[dict[str, Any]]:
    """Add a finalizer to an object that has these."""
    if not finalizers:
        # The field is not there, and null is how a test says that; an empty list would be somebody else's.
        return [*_same(uid), _op("test", PATH, None), _op("add", PATH, [name])]
    return [*_same(uid), _op("test", PATH, list(finalizers)), _op("add", f"{PATH}/-", name)]


def removing(uid: str, finalizers: Sequence[str], name: str) -> list[dict[str, Any]]:
    """Remove a finalizer, however often it is there, from an object that has these."""
    patch = _same(uid)
    for index in reversed([index for index, each in enumerate(finalizers) if each == name]):
        patch += [_op("test", f"{PATH}/{index}", name), {"op": "remove", "path": f"{PATH}/{index}"}]
    return patch


def _same(uid: str) -> list[dict[str, Any]]:
    """The object is still the one that was read, and no other of its name."""
    return [_op("test", "/metadata/uid", uid)] if uid else []


def _op(op: str, path: str, value: Any) -> dict[str, Any]:
    return {"op": op, "path": path, "value": value}
