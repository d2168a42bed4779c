"""CustomResourceDefinitions: a definition brings its resource, and takes it and its objects away again.

This is the API server's own work, with or without a control plane.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aioinformer.testing.builtin import DEFINITIONS
from aioinformer.testing.controller import Controller
from aioinformer.testing.deletion import CLEANUP
from aioinformer.testing.objects import Object, load
from aioinformer.testing.resources import FieldLabel, ResourceType, ScalePaths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.storage import StoredEvent, StoredObject


class Definitions(Controller):
    """Serves what definitions define."""

    def observe(self, resource: ResourceType, event: StoredEvent) -> None:
        """Serve what a definition says is served, and nothing of one that is gone."""
        if resource is DEFINITIONS:
            self._observe_definition(event.current, event.previous)
        elif event.current is None and resource.custom:
            self.add(self._finish_definition, f"{resource.plural}.{resource.group}")

    def _observe_definition(self, current: StoredObject | None, previous: StoredObject | None) -> None:
        registry, storage = self.cluster.registry, self.cluster.storage
        if current is None:
            assert previous is not None
            plural, _, group = previous.name.partition(".")
            registry.remove(group, plural)
            storage.drop(group, plural)
            return
        definition = load(DEFINITIONS, current)
        if previous is None or load(DEFINITIONS, previous).get("spec") != definition.get("spec"):
            plural, _, group = current.name.partition(".")
            registry.remove(group, plural)
            for resource in resource_types(definition):
                registry.add(resource)
            storage.begin(group, plural)  # as upstream, whatever has changed
        if current.terminating:
            self.add(self._finish_definition, current.name)
        elif previous is None:
            self.add(self._establish, current.name)

    def _establish(self, name: str) -> Iterator[None]:
        stored = self.cluster.find(DEFINITIONS, "", name)
        if stored is not None:
            self.cluster.commit(DEFINITIONS, stored, establish(load(DEFINITIONS, stored), self.cluster.now()))
            yield

    def _finish_definition(self, name: str) -> Iterator[None]:
        definition = self.cluster.find(DEFINITIONS, "", name)
        if definition is None or not definition.terminating:
            return
        for resource in resource_types(load(DEFINITIONS, definition), every=True)[:1]:
            for stored in list(self.cluster.collection(resource).objects.values()):
                if not stored.terminating:
                    self.delete(resource, stored)
                    yield
            if self.cluster.collection(resource).objects:
                return
        self.drop_finalizer(DEFINITIONS, definition, CLEANUP)
        yield


def resource_types(definition: Object, *, every: bool = False) -> list[ResourceType]:
    """The resource in each of its served versions, or in every one; the storage version comes first."""
    spec = definition.get("spec") or {}
    names = spec.get("names") or {}
    versions = [version for version in spec.get("versions") or [] if every or version.get("served", True)]
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
            scale_paths=_scale_paths((version.get("subresources") or {}).get("scale") or {}),
            fields=tuple(_field(entry) for entry in version.get("selectableFields") or ()),
            columns=tuple(_column(entry) for entry in version.get("additionalPrinterColumns") or ()),
        )
        for version in versions
    ]


def _field(entry: dict[str, Any]) -> FieldLabel:
    return FieldLabel(str(entry.get("jsonPath", "")).lstrip("."))


def _scale_paths(entry: dict[str, Any]) -> ScalePaths:
    return ScalePaths(
        str(entry.get("specReplicasPath", ".spec.replicas")),
        str(entry.get("statusReplicasPath", ".status.replicas")),
        str(entry.get("labelSelectorPath", "")),
    )


def _column(entry: dict[str, Any]) -> tuple[str, str, str, int]:
    return (
        str(entry.get("name", "")),
        str(entry.get("jsonPath", "")),
        str(entry.get("type", "string")),
        int(entry.get("priority") or 0),
    )


def establish(definition: Object, now: str) -> Object:
    """The definition as one that is served: with its status."""
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
