"""Whether a CustomResourceDefinition may replace the one that the server has: not if that one is newer."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from ..typed.pruning import dropped_fields, schema_of

Object = dict[str, Any]

LINEAGE = "aioinformer-definitions"
"""The annotation of an installed definition: a digest of it, then of those that it has replaced, newest first."""
LONGEST_LINEAGE = 20
MOST_NAMED = 5
"""Fields that a message names."""


def with_lineage(wanted: Object, present: Object | None) -> Object:
    """Return a definition with the annotation that says what it has replaced."""
    mine = digest(wanted)
    replaced = [text for text in _lineage(present) if text != mine]
    metadata = wanted["metadata"]
    annotations = {
        **(metadata.get("annotations") or {}),
        LINEAGE: " ".join([mine, *replaced][:LONGEST_LINEAGE]),
    }
    return {**wanted, "metadata": {**metadata, "annotations": annotations}}


def reason_to_keep(present: Object, wanted: Object) -> str:
    """Return why the server's definition must stay; "" if another one may replace it.

    It must stay if it has replaced the other one before, or has versions, subresources or fields that the other one
    lacks: with these the server would drop what is stored in them.
    """
    taken = [*_find_lost(present, wanted)]
    if taken:
        more = f" and {len(taken) - MOST_NAMED} more" if len(taken) > MOST_NAMED else ""
        return f"the class lacks what the server's definition has: {', '.join(taken[:MOST_NAMED])}{more}"
    if digest(wanted) in _lineage(present)[1:]:
        return "the server's definition has replaced it before"
    return ""


def lacks_versions(present: Object, wanted: Object) -> bool:
    """Return whether the server's definition lacks a version of another one."""
    return not {version["name"] for version in wanted["spec"]["versions"]} <= _versions(present).keys()


def digest(definition: Object) -> str:
    """Return what tells definitions apart, whatever their conversion webhook's address is."""
    spec = {name: value for name, value in definition["spec"].items() if name != "conversion"}
    return hashlib.sha256(msgspec.json.encode(spec, order="sorted")).hexdigest()[:12]


def _lineage(definition: Object | None) -> list[str]:
    annotations = {} if definition is None else definition["metadata"].get("annotations") or {}
    return str(annotations.get(LINEAGE, "")).split()


def _find_lost(present: Object, wanted: Object) -> Iterator[str]:
    """Yield what the server's definition has, and another one lacks."""
    offered, stored = _versions(wanted), (present.get("status") or {}).get("storedVersions") or []
    for name, version in _versions(present).items():
        if name not in offered:
            if version["served"] or name in stored:
                yield f"the version {name}{', which storedVersions has' if name in stored else ''}"
            continue
        for subresource in (version.get("subresources") or {}).keys() - (
            offered[name].get("subresources") or {}
        ):
            yield f"{name} the subresource {subresource}"
        for field in dropped_fields(schema_of(version), schema_of(offered[name])):
            yield f"{name} {field}"


def _versions(definition: Object) -> dict[str, Object]:
    return {version["name"]: version for version in definition["spec"]["versions"]}
