"""The namespace controller: empties a namespace that is being deleted, then takes its own finalizer off.

That finalizer, `kubernetes`, is in the namespace's spec, beside those of others who also want to be asked; each is
taken off through the finalize subresource. The rules are those of kube-controller-manager's (pkg/controller/namespace,
v1.36), without its waiting: it begins 5 s after the deletion, and looks at what has finalizers every 8 s.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from aioinformer.testing.builtin import NAMESPACES, PODS
from aioinformer.testing.cluster import WriteOptions
from aioinformer.testing.conditions import condition
from aioinformer.testing.controller import Controller, finalizers_of
from aioinformer.testing.objects import Object, load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.cluster import Cluster
    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.storage import StoredEvent

_TOKEN = "kubernetes"

_Remaining = dict["ResourceType", list[list[str]]]
"""The finalizers of each object that is left."""

_FINALIZE = WriteOptions(subresource="finalize")
_STATUS = WriteOptions(subresource="status")


_WELL = {
    "NamespaceDeletionDiscoveryFailure": (
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": (
        "ContentRemoved",
        "All content successfully removed",
    ),
    "NamespaceFinalizersRemaining": (
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
}
"""Reason and message of each condition where nothing is wrong."""


class NamespaceController(Controller):
    """Empties namespaces."""

    name = "namespace-controller"

    def __init__(self, cluster: Cluster) -> None:
        self._terminating: set[str] = set()
        super().__init__(cluster)

    def observe(self, resource: ResourceType, event: StoredEvent) -> None:
        """Look at a namespace that is being deleted, and at it again when something in it has gone."""
        current, previous = event.current, event.previous
        if resource is NAMESPACES:
            if current is None:
                self._terminating.discard(event.key)
            elif current.terminating:
                self._terminating.add(current.name)
                self.add(self._empty, current.name)
        elif current is None and previous is not None and previous.namespace in self._terminating:
            self.add(self._empty, previous.namespace)

    def _empty(self, name: str) -> Iterator[None]:
        namespace = self.cluster.find(NAMESPACES, "", name)
        if namespace is None or not namespace.terminating:
            return
        spec = load(NAMESPACES, namespace).get("spec") or {}
        if not spec.get("finalizers"):
            return  # emptied, and held by finalizers of its metadata
        remaining: _Remaining = {}
        yield from self._delete_all(PODS, name, remaining)
        if remaining:
            self._report(name, {})  # pods go before all else, and upstream does not name them meanwhile
            return
        for resource in self._resources():
            yield from self._delete_all(resource, name, remaining)
        self._report(name, remaining)
        if not remaining:
            self._finalize(name)
            yield

    def _resources(self) -> list[ResourceType]:
        """What can be in a namespace, but pods: once each, whatever its versions."""
        found = {(each.group, each.plural): each for each in self.cluster.registry if each.namespaced}
        return [each for each in found.values() if each is not PODS]

    def _delete_all(self, resource: ResourceType, name: str, remaining: _Remaining) -> Iterator[None]:
        """Delete the objects of a resource; note those that stay."""
        for stored in self.cluster.collection(resource).in_namespace(name):
            if not stored.terminating:
                self.delete(resource, stored, "Background")
                yield
            left = self.cluster.find(resource, stored.namespace, stored.name)
            if left is not None:
                remaining.setdefault(resource, []).append(finalizers_of(load(resource, left)))

    def _finalize(self, name: str) -> None:
        def change(obj: Object) -> Object:
            obj["spec"]["finalizers"] = [entry for entry in obj["spec"]["finalizers"] if entry != _TOKEN]
            return obj

        self.cluster.modify(NAMESPACES, "", name, change, _FINALIZE)

    def _report(self, name: str, remaining: _Remaining) -> None:
        """Write into the namespace's status what it waits for."""
        counts = {f"{each.plural}.{each.group}": len(objects) for each, objects in remaining.items()}
        held = Counter(entry for objects in remaining.values() for entries in objects for entry in entries)
        found: dict[str, tuple[str, str]] = {}
        if counts:
            found["NamespaceContentRemaining"] = (
                "SomeResourcesRemain",
                f"Some resources are remaining: {_listed(counts, 'has')}",
            )
        if held:
            found["NamespaceFinalizersRemaining"] = (
                "SomeFinalizersRemain",
                f"Some content in the namespace has finalizers remaining: {_listed(held, 'in')}",
            )

        def change(obj: Object) -> Object:
            status = obj.setdefault("status", {})
            old = {each["type"]: each for each in status.get("conditions") or []}
            status["conditions"] = [
                condition(kind, kind in found, *found.get(kind, well), old.get(kind), self.cluster.now())
                for kind, well in _WELL.items()
            ]
            return obj

        self.cluster.modify(NAMESPACES, "", name, change, _STATUS)


def _listed(counts: dict[str, int], how: str) -> str:
    return ", ".join(sorted(f"{name} {how} {count} resource instances" for name, count in counts.items()))
