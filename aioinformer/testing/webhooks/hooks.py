"""The webhooks that configurations on the server declare, and which requests they are called for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from aioinformer.objects.labels import LabelSelector
from aioinformer.testing.objects import Object
from aioinformer.testing.storage.builtin import NAMESPACES
from aioinformer.testing.storage.codec import load

if TYPE_CHECKING:
    from aioinformer.testing.cluster.cluster import Cluster
    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.storage.storage import StoredObject

_GROUP = "admissionregistration.k8s.io"
_EXEMPT = "webhookconfigurations", "admissionpolicies", "admissionpolicybindings"
"""Ends of the resources of this group that no webhook is called for: they could lock the server."""


class Hook:
    """A webhook of a configuration.

    Attributes:
        key: Its configuration's name and its number there.
        name: Its name.
        spec: Its declaration.
    """

    def __init__(self, key: tuple[str, int], spec: Object) -> None:
        self.key = key
        self.spec = spec
        self.name: str = spec.get("name", "")

    @property
    def ignores_failures(self) -> bool:
        """Whether the request goes on if the call fails."""
        return bool(self.spec["failurePolicy"] == "Ignore")

    @property
    def conditions(self) -> list[tuple[str, str]]:
        """Names and expressions of its match conditions."""
        return [
            (condition["name"], condition["expression"])
            for condition in self.spec.get("matchConditions") or ()
        ]

    @cached_property
    def _objects(self) -> LabelSelector:
        return LabelSelector.of(self.spec["objectSelector"])

    @cached_property
    def _namespaces(self) -> LabelSelector:
        return LabelSelector.of(self.spec["namespaceSelector"])

    def has_rule(self, resource: ResourceType, subresource: str, operation: str) -> bool:
        """Return whether a rule is for these requests."""
        return any(_fits(rule, resource, subresource, operation) for rule in self.spec.get("rules") or ())

    def selects(self, *objects: Object | None) -> bool:
        """Return whether its selector matches the object or the old one."""
        if not self.spec["objectSelector"]:
            return True
        return any(self._objects.matches(_labels(obj)) for obj in objects if obj is not None)

    def selects_namespace(self, labels: Mapping[str, str] | None) -> bool:
        """Return whether its selector matches a namespace's labels; None is no namespace, which matches."""
        return labels is None or self._namespaces.matches(labels)


def _labels(obj: Object) -> dict[str, str]:
    labels = (obj.get("metadata") or {}).get("labels")
    return labels if isinstance(labels, dict) else {}


def _fits(rule: Object, resource: ResourceType, subresource: str, operation: str) -> bool:
    parts = [f"/{subresource}", "/*"] if subresource else ["", "/*"]
    resources = {f"{name}{part}" for name in (resource.plural, "*") for part in parts}
    return (
        rule["scope"] in ("*", "Namespaced" if resource.namespaced else "Cluster")
        and not {operation, "*"}.isdisjoint(rule.get("operations") or ())
        and not {resource.group, "*"}.isdisjoint(rule.get("apiGroups") or ())
        and not {resource.version, "*"}.isdisjoint(rule.get("apiVersions") or ())
        and not resources.isdisjoint(rule.get("resources") or ())
    )


class Configurations:
    """The webhooks of one kind of configuration, in the order of the configurations' names.

    Args:
        cluster: Has the configurations.
        resource: The configurations' type.
    """

    def __init__(self, cluster: Cluster, resource: ResourceType) -> None:
        self._resource = resource
        self._objects: Mapping[str, StoredObject] = cluster.collection(resource).objects
        self._read: dict[StoredObject, list[Hook]] = {}

    def __bool__(self) -> bool:
        return bool(self._objects)

    def __iter__(self) -> Iterator[Hook]:
        for _, stored in sorted(self._objects.items()):
            if stored not in self._read:
                self._read = {name: hooks for name, hooks in self._read.items() if name.name != stored.name}
                webhooks: list[Any] = load(self._resource, stored).get("webhooks") or []
                self._read[stored] = [
                    Hook((stored.name, number), spec) for number, spec in enumerate(webhooks)
                ]
            yield from self._read[stored]


def is_exempt(resource: ResourceType) -> bool:
    """Return whether no webhook is called for a resource."""
    return resource.group == _GROUP and resource.plural.endswith(_EXEMPT)


def namespace_labels(
    cluster: Cluster, resource: ResourceType, namespace: str, obj: Object | None
) -> Mapping[str, str] | None:
    """Return the labels that namespace selectors match; None for what is in no namespace."""
    if resource is NAMESPACES and obj is not None:
        return _labels(obj)
    if not namespace:
        return None
    stored = cluster.find(NAMESPACES, "", namespace)
    return {} if stored is None else stored.labels
