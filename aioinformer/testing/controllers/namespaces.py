"""The namespace controller: empties a terminating namespace, then removes its finalizer.

The finalizer `kubernetes` is in the namespace's spec, beside those of other controllers; the finalize subresource
removes them. The rules are those of kube-controller-manager (pkg/controller/namespace, v1.36) without its delays: it
starts 5 s after the deletion and checks objects with finalizers every 8 s.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from aioinformer.testing.cluster.options import WriteOptions
from aioinformer.testing.controllers.controller import ClusterController, finalizers_of
from aioinformer.testing.objects import Object, condition
from aioinformer.testing.storage.builtin import NAMESPACES, PODS
from aioinformer.testing.storage.codec import load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.cluster.cluster import Cluster
    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.storage.storage import StoredEvent

_TOKEN = "kubernetes"

_Remaining = dict["ResourceType", list[list[str]]]
"""The finalizers of each remaining object."""

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
"""Reason and message of each condition without problems."""


class NamespaceController(ClusterController):
    """Empties terminating namespaces."""

    name = "namespace-controller"

    def __init__(self, cluster: Cluster) -> None:
        self._terminating: dict[str, int] = {}  # how many removals each awaits
        super().__init__(cluster)

    def observe(self, resource: ResourceType, event: StoredEvent) -> None:
        """Queue a terminating namespace, and again when a tenth of its remaining objects is removed."""
        current, previous = event.current, event.previous
        if resource is NAMESPACES:
            if current is None:
                self._terminating.pop(event.key, None)
            elif current.terminating:
                self._terminating.setdefault(current.name, 0)
                self.add(self._empty, current.name)
        elif current is None and previous is not None and previous.namespace in self._terminating:
            self._terminating[previous.namespace] -= 1
            if self._terminating[previous.namespace] <= 0:
                self.add(self._empty, previous.namespace)

    def _empty(self, name: str) -> Iterator[None]:
        namespace = self.cluster.find(NAMESPACES, "", name)
        if namespace is None or not namespace.terminating:
            return
        spec = load(NAMESPACES, namespace).get("spec") or {}
        if not spec.get("finalizers"):
            return  # empty, but finalizers in its metadata keep it
        self._terminating[name] = 0  # whatever is removed while this counts queues the namespace again
        remaining: _Remaining = {}
        reported: _Remaining = {}
        yield from self._delete_all(PODS, name, remaining)
        if not remaining:  # pods are deleted first; upstream does not report them
            for resource in self._resources():
                yield from self._delete_all(resource, name, remaining)
            reported = remaining
        self._terminating[name] = sum(map(len, remaining.values())) // 10
        self._report(name, reported)
        if not remaining:
            self._finalize(name)
            yield

    def _resources(self) -> list[ResourceType]:
        """Return the namespaced resources except pods, each in a single version."""
        resources = {
            (other.group, other.plural): other for other in self.cluster.registry if other.namespaced
        }
        return [resource for resource in resources.values() if resource is not PODS]

    def _delete_all(self, resource: ResourceType, name: str, remaining: _Remaining) -> Iterator[None]:
        """Delete the objects of a resource; add those that remain to `remaining`."""
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
        """Write the reasons for waiting into the namespace's status."""
        counts = {
            f"{resource.plural}.{resource.group}": len(objects) for resource, objects in remaining.items()
        }
        held = Counter(entry for objects in remaining.values() for entries in objects for entry in entries)
        reasons: dict[str, tuple[str, str]] = {}
        if counts:
            reasons["NamespaceContentRemaining"] = (
                "SomeResourcesRemain",
                f"Some resources are remaining: {_list_counts(counts, 'has')}",
            )
        if held:
            reasons["NamespaceFinalizersRemaining"] = (
                "SomeFinalizersRemain",
                f"Some content in the namespace has finalizers remaining: {_list_counts(held, 'in')}",
            )

        def change(obj: Object) -> Object:
            status = obj.setdefault("status", {})
            old = {present["type"]: present for present in status.get("conditions") or []}
            status["conditions"] = [
                condition(kind, kind in reasons, *reasons.get(kind, well), old.get(kind), self.cluster.now())
                for kind, well in _WELL.items()
            ]
            return obj

        self.cluster.modify(NAMESPACES, "", name, change, _STATUS)


def _list_counts(counts: dict[str, int], how: str) -> str:
    return ", ".join(sorted(f"{name} {how} {count} resource instances" for name, count in counts.items()))
