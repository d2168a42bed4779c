"""CustomResourceDefinitions: add the resource of a definition, and remove it with its objects.

The API server does this itself, with or without a control plane.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from aioinformer.testing.cluster.deletion import CLEANUP
from aioinformer.testing.controllers.controller import ClusterController
from aioinformer.testing.objects import Object, with_condition
from aioinformer.testing.resources import (
    Conversion,
    FieldLabel,
    PrinterColumn,
    ResourceType,
    ScalePaths,
    WebhookStorage,
    priority,
)
from aioinformer.testing.rules.custom import read_custom
from aioinformer.testing.rules.naming import accepted_names, has_names, is_established, with_names
from aioinformer.testing.storage.builtin import DEFINITIONS
from aioinformer.testing.storage.codec import load, read, store

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.schema.definition import Schema
    from aioinformer.testing.storage.storage import StoredEvent, StoredObject

_NOT_ENFORCED = "ValidationRulesNotEnforced"


class Definitions(ClusterController):
    """Serves the resources of definitions."""

    def observe(self, resource: ResourceType, event: StoredEvent) -> None:
        """Register the served versions of a definition; remove those of a deleted definition."""
        if resource is DEFINITIONS:
            self._observe_definition(event.current, event.previous)
        elif event.current is None and resource.custom:
            self.add(self._finish_definition, f"{resource.plural}.{resource.group}")

    def _observe_definition(self, current: StoredObject | None, previous: StoredObject | None) -> None:
        registry, storage = self.cluster.registry, self.cluster.storage
        plural, _, group = (current or cast("StoredObject", previous)).name.partition(".")
        if current is None:
            registry.remove(group, plural)
            storage.drop(group, plural)
            self._settle_group(group)
            return
        definition = load(DEFINITIONS, current)
        before = {} if previous is None else load(DEFINITIONS, previous)
        if current.terminating:
            self.add(self._finish_definition, current.name)
        else:
            self.add(self._settle_names, current.name)
        if (served := _served_parts(definition)) is not None and served != _served_parts(before):
            stored = self._stored_type(group, plural, before)
            registry.remove(group, plural)
            resources = resource_types(definition, stored=stored)
            for resource in resources:
                registry.add(resource)
            storage.begin(group, plural)  # as upstream, for any change
            for resource in resources[:1]:
                self._read_again(resource if resource.storage is None else resource.storage.version)

    def _stored_type(self, group: str, plural: str, before: Object) -> ResourceType | None:
        """Return the version in which the objects of a definition are stored; None if it has no objects."""
        if not before or not self.cluster.storage.collection(group, plural).objects:
            return None
        for other in self.cluster.registry:
            if (other.group, other.plural) == (group, plural) and other.storage is not None:
                return other.storage.version
        return resource_types(before, every=True)[0]

    def _read_again(self, resource: ResourceType) -> None:
        """Set new defaults and drop unknown fields in stored objects, which upstream does for each reader."""
        objects = self.cluster.collection(resource).objects
        for key, stored in objects.items():
            obj, _ = read_custom(resource, load(resource, stored))
            objects[key] = store(resource, obj)

    def _settle_names(self, name: str) -> Iterator[None]:
        """Accept a definition's names unless another definition of its group has them, then serve it."""
        stored = self.cluster.find(DEFINITIONS, "", name)
        if stored is None or stored.terminating:
            return
        _, _, group = name.partition(".")
        definition = load(DEFINITIONS, stored)
        taken = [accepted_names(read(DEFINITIONS, sibling)) for sibling in self._of_group(group)]
        named = with_names(definition, taken, self.cluster.now())
        named["status"] = _with_enforcement(named, self.cluster.now())
        if named != definition:
            self.cluster.commit(DEFINITIONS, stored, named)
            self._settle_group(group)  # a name may have become free
            yield

    def _settle_group(self, group: str) -> None:
        """Queue the definitions of a group that wait for names."""
        for stored in self._of_group(group):
            if not has_names(read(DEFINITIONS, stored)):
                self.add(self._settle_names, stored.name)

    def _of_group(self, group: str) -> list[StoredObject]:
        definitions = self.cluster.collection(DEFINITIONS).objects.values()
        return [stored for stored in definitions if stored.name.partition(".")[2] == group]

    def _finish_definition(self, name: str) -> Iterator[None]:
        definition = self.cluster.find(DEFINITIONS, "", name)
        if definition is None or not definition.terminating:
            return
        obj = load(DEFINITIONS, definition)
        now, why = self.cluster.now(), "CustomResource deletion is in progress"
        before = obj.get("status") or {}
        status = with_condition(before, "Terminating", True, "InstanceDeletionInProgress", why, now)
        if status != before:
            definition = self.cluster.commit(DEFINITIONS, definition, {**obj, "status": status})
            yield
        for resource in resource_types(obj, every=True)[:1]:
            for stored in list(self.cluster.collection(resource).objects.values()):
                if not stored.terminating:
                    self.delete(resource, stored)
                    yield
            if self.cluster.collection(resource).objects:
                return
        self.drop_finalizer(DEFINITIONS, definition, CLEANUP)
        yield


def _with_enforcement(definition: Object, now: str) -> Object:
    """Return the status of a definition with a condition if a part of its schemas is not enforced."""
    from aioinformer.testing.rules.definition_rules import not_enforced_in  # slow to import

    status: Object = definition["status"]
    missing = not_enforced_in(definition)
    has_condition = any(
        condition.get("type") == _NOT_ENFORCED for condition in status.get("conditions") or ()
    )
    if not missing and not has_condition:
        return status
    message = "; ".join(missing) or "all rules are enforced"
    reason = "NotSupported" if missing else "Supported"
    return with_condition(status, _NOT_ENFORCED, bool(missing), reason, message, now)


def _served_parts(definition: Object) -> tuple[Object, Object] | None:
    """Return the parts of a definition that determine its resource; None if it is not served."""
    if not is_established(definition):
        return None
    return definition["spec"], accepted_names(definition)


def resource_types(
    definition: Object, *, every: bool = False, stored: ResourceType | None = None
) -> list[ResourceType]:
    """Return the resource in each served version, or in every version, with the accepted names.

    The storage version comes first.

    Args:
        definition: The definition.
        every: Return the versions that are not served, too.
        stored: The version of the objects that are stored already. If a webhook converts them, new objects are also
            stored in it, because a collection has one version.
    """
    spec, accepted = definition["spec"], accepted_names(definition)
    names = accepted if accepted.get("plural") else spec["names"]
    versions: list[Object] = sorted(spec["versions"] or (), key=lambda version: not version["storage"])
    types = [
        ResourceType(
            group=spec["group"],
            version=version["name"],
            plural=names["plural"],
            kind=names["kind"],
            namespaced=spec["scope"] != "Cluster",
            short_names=tuple(names.get("shortNames") or ()),
            singular=names.get("singular", ""),
            categories=tuple(names.get("categories") or ()),
            subresources=tuple(sorted(version.get("subresources") or ())),
            scale_paths=_scale_paths(version),
            fields=tuple(_field(entry) for entry in version.get("selectableFields") or ()),
            columns=tuple(_column(entry) for entry in version.get("additionalPrinterColumns") or ()),
            schema=_schema(version),
            warning=_warning(version, spec),
        )
        for version in versions
    ]
    webhook = spec["conversion"].get("webhook")
    if webhook is not None and spec["conversion"]["strategy"] == "Webhook":
        origin = types[0]
        if stored is not None:
            origin = next(
                (resource_type for resource_type in types if resource_type.version == stored.version), stored
            )
        storage = WebhookStorage(origin, webhook.get("clientConfig") or {})
        types = [replace(resource_type, storage=storage) for resource_type in types]
    else:
        types = [types[0], *(_without_conversion(types[0], resource_type) for resource_type in types[1:])]
    return [
        resource_type
        for resource_type, version in zip(types, versions, strict=True)
        if every or version["served"]
    ]


def _without_conversion(stored: ResourceType, shown: ResourceType) -> ResourceType:
    """Return a version whose objects differ in their apiVersion alone: fields that one schema lacks are dropped."""
    assert stored.schema is not None
    assert shown.schema is not None
    if shown.schema is stored.schema:  # equal ones are the same
        return shown
    read, prune = stored.schema.read, shown.schema.prune
    return replace(shown, conversion=Conversion(shown.group, lambda obj: read(obj)[0], prune))


def _schema(version: Object) -> Schema:
    from aioinformer.testing.schema.definition import compile_schema  # slow to import

    return compile_schema(version["schema"]["openAPIV3Schema"])


def _warning(version: Object, spec: Object) -> str:
    """Return what the server warns of in the answers of a deprecated version; `""` for another one."""
    if not version.get("deprecated"):
        return ""
    if (text := version.get("deprecationWarning")) is not None:
        return str(text)
    group, kind, name = spec["group"], spec["names"]["kind"], version["name"]
    others = [other["name"] for other in spec["versions"] if other["served"] and not other.get("deprecated")]
    newer = min((other for other in others if priority(other) < priority(name)), key=priority, default="")
    return f"{group}/{name} {kind} is deprecated" + (f"; use {group}/{newer} {kind}" if newer else "")


def _field(entry: Object) -> FieldLabel:
    return FieldLabel(entry["jsonPath"].lstrip("."))


def _scale_paths(version: Object) -> ScalePaths:
    scale = (version.get("subresources") or {}).get("scale")
    if scale is None:
        return ScalePaths()
    return ScalePaths(
        scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath", "")
    )


def _column(entry: Object) -> PrinterColumn:
    optional = {name: entry[name] for name in ("priority", "format", "description") if name in entry}
    return PrinterColumn(entry["name"], entry["jsonPath"], entry["type"], **optional)
