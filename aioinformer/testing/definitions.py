"""CustomResourceDefinitions: the resource types that they define, and their status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.resources import FieldLabel, ResourceType

if TYPE_CHECKING:
    from aioinformer.testing.objects import Object


def resource_types(definition: Object) -> list[ResourceType]:
    """The resource in each of its served versions; the storage version comes first."""
    spec = definition.get("spec") or {}
    names = spec.get("names") or {}
    versions = [version for version in spec.get("versions") or [] if version.get("served", True)]
    versions.sort(key=lambda version: not version.get("storage"))
    return [
        ResourceType(
            group=str(spec.get("group", "")),
            version=str(version.get("name", "")),
            plural=str(names.get("plural", "")),
            kind=str(names.get("kind", "")),
            namespaced=spec.get("scope") != "Cluster",
            short_names=tuple(names.get("shortNames") or ()),
            singular=str(names.get("singular") or ""),
            categories=tuple(names.get("categories") or ()),
            subresources=tuple(sorted(version.get("subresources") or ())),
            fields=tuple(_field(entry) for entry in version.get("selectableFields") or ()),
            columns=tuple(_column(entry) for entry in version.get("additionalPrinterColumns") or ()),
        )
        for version in versions
    ]


def _field(entry: dict[str, Any]) -> FieldLabel:
    return FieldLabel(str(entry.get("jsonPath", "")).lstrip("."))


def _column(entry: dict[str, Any]) -> tuple[str, str, str, int]:
    return (
        str(entry.get("name", "")),
        str(entry.get("jsonPath", "")),
        str(entry.get("type", "string")),
        int(entry.get("priority") or 0),
    )


def establish(definition: Object, now: str) -> Object:
    """The definition with the status of one that is served."""
    spec = definition.get("spec") or {}
    conditions = [
        _condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
        _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", now),
    ]
    stored = [version["name"] for version in spec.get("versions") or [] if version.get("storage")]
    status = {"conditions": conditions, "acceptedNames": spec.get("names") or {}, "storedVersions": stored}
    return {**definition, "status": status}


def _condition(kind: str, reason: str, message: str, now: str) -> dict[str, str]:
    return {
        "type": kind,
        "status": "True",
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }
