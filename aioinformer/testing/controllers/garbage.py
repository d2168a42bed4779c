"""The garbage collector: deletes dependents after their owners, before them, or orphans them.

The rules are those of kube-controller-manager (pkg/controller/garbagecollector, v1.36). An owner is identified by kind,
name and uid, in the dependent's namespace or cluster-scoped; a reference to a missing owner is dangling. The collector
deletes an object when all its owners are dangling or wait for it. If an owner remains, it only removes the references
to the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from aioinformer.testing.cluster.deletion import FOREGROUND, ORPHAN
from aioinformer.testing.controllers.controller import ClusterController, finalizers_of
from aioinformer.testing.objects import Object
from aioinformer.testing.storage.codec import load

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from aioinformer.testing.cluster.cluster import Cluster
    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.storage.storage import StoredEvent, StoredObject

_IGNORED = frozenset([("", "events"), ("events.k8s.io", "events")])


class _Node(NamedTuple):
    resource: ResourceType
    key: str


class _Owners(NamedTuple):
    """The uids of an object's owners by their state.

    Attributes:
        solid: They exist.
        dangling: They do not exist.
        waiting: They are being deleted in the foreground.
    """

    solid: set[str]
    dangling: set[str]
    waiting: set[str]


class GarbageCollector(ClusterController):
    """Deletes objects without remaining owners."""

    name = "garbage-collector-controller"

    def __init__(self, cluster: Cluster) -> None:
        self._dependents: dict[str, dict[_Node, None]] = {}
        self._waiting: dict[str, _Node] = {}
        super().__init__(cluster)

    def observe(self, resource: ResourceType, event: StoredEvent) -> None:
        """Queue the work for a change."""
        if (resource.group, resource.plural) in _IGNORED:
            return
        current, previous = event.current, event.previous
        node = _Node(resource, event.key)
        old = previous.owners if previous is not None else ()
        new = current.owners if current is not None else ()
        if old != new:
            self._index(node, old, new)
        for owner in (*old, *new):
            if owner in self._waiting:
                self.add(self._release, owner)
        if current is None:
            assert previous is not None
            self._waiting.pop(previous.uid, None)
            for dependent in self._dependents.get(previous.uid, ()):
                self.add(self._examine, dependent)
            return
        if new and new != old:
            self.add(self._examine, node)
        if current.terminating:
            self._observe_deletion(node, current, previous)

    def _observe_deletion(self, node: _Node, current: StoredObject, previous: StoredObject | None) -> None:
        before: list[str] = []
        if previous is not None and previous.terminating:
            before = finalizers_of(load(node.resource, previous))
        begun = set(finalizers_of(load(node.resource, current))).difference(before)
        if ORPHAN in begun:
            self.add(self._orphan, node)
        elif FOREGROUND in begun:
            self._waiting[current.uid] = node
            for dependent in self._dependents.get(current.uid, ()):
                self.add(self._examine, dependent)
            self.add(self._release, current.uid)

    # The graph

    def _index(self, node: _Node, old: Iterable[str], new: Iterable[str]) -> None:
        for uid in old:
            dependents = self._dependents.get(uid, {})
            dependents.pop(node, None)
            if not dependents:
                self._dependents.pop(uid, None)
        for uid in new:
            self._dependents.setdefault(uid, {})[node] = None

    def _dependents_of(self, uid: str) -> Iterator[tuple[_Node, StoredObject]]:
        for node in self._dependents.get(uid, ()):
            stored = self._find(node)
            if stored is not None:
                yield node, stored

    def _find(self, node: _Node) -> StoredObject | None:
        return self.cluster.collection(node.resource).objects.get(node.key)

    def _classify(
        self, resource: ResourceType, stored: StoredObject, references: list[Any]
    ) -> _Owners | None:
        """Return the owners by state, or None if a kind is unknown or cannot own the object."""
        owners = _Owners(set(), set(), set())
        for reference in references:
            group, _, _ = reference["apiVersion"].rpartition("/")
            kind = self.cluster.registry.of_kind(group, reference["kind"])
            if kind is None or (kind.namespaced and not resource.namespaced):
                return None
            owner = self.cluster.find(kind, stored.namespace if kind.namespaced else "", reference["name"])
            if owner is None or owner.uid != reference["uid"]:
                owners.dangling.add(reference["uid"])
            elif owner.uid in self._waiting:
                owners.waiting.add(owner.uid)
            else:
                owners.solid.add(owner.uid)
        return owners

    # The work

    def _examine(self, node: _Node) -> Iterator[None]:
        """Delete an object without remaining owners; otherwise remove its references to missing owners."""
        stored = self._find(node)
        if stored is None or stored.terminating:
            return
        obj = load(node.resource, stored)
        references = obj["metadata"].get("ownerReferences") or []
        owners = self._classify(node.resource, stored, references) if references else None
        if owners is None:
            return
        if owners.solid:
            if owners.dangling or owners.waiting:
                self._disown(node, stored, owners.dangling | owners.waiting)
                yield
            return
        if owners.waiting and stored.uid in self._dependents:
            if any(dependent.uid in self._waiting for _, dependent in self._dependents_of(stored.uid)):
                stored = self._unblock(node, stored)
            self.delete(node.resource, stored, "Foreground")
        else:
            finalizers = finalizers_of(obj)
            policy = (
                "Orphan"
                if ORPHAN in finalizers
                else "Foreground"
                if FOREGROUND in finalizers
                else "Background"
            )
            self.delete(node.resource, stored, policy)
        yield

    def _release(self, uid: str) -> Iterator[None]:
        """Release an owner that is deleted in the foreground when no dependent blocks it."""
        node = self._waiting.get(uid)
        stored = None if node is None else self._find(node)
        if node is None or stored is None or stored.uid != uid:
            return
        blocking = (
            dependent
            for dependent, held in self._dependents_of(uid)
            if any(
                reference.get("uid") == uid and reference.get("blockOwnerDeletion")
                for reference in load(dependent.resource, held)["metadata"]["ownerReferences"]
            )
        )
        if (first := next(blocking, None)) is not None:
            self.add(self._examine, first)
            return
        del self._waiting[uid]
        self.drop_finalizer(node.resource, stored, FOREGROUND)
        yield

    def _orphan(self, node: _Node) -> Iterator[None]:
        """Remove the references of all dependents to an owner, then release it."""
        stored = self._find(node)
        if stored is None or not stored.terminating:
            return
        for dependent in list(self._dependents.get(stored.uid, ())):
            if (held := self._find(dependent)) is not None:
                self._disown(dependent, held, {stored.uid})
                yield
        self.drop_finalizer(node.resource, stored, ORPHAN)

    def _disown(self, node: _Node, stored: StoredObject, uids: Collection[str]) -> None:
        def change(obj: Object) -> Object:
            references = obj["metadata"].get("ownerReferences") or []
            obj["metadata"]["ownerReferences"] = [
                reference for reference in references if reference.get("uid") not in uids
            ]
            return obj

        self.cluster.modify(node.resource, stored.namespace, stored.name, change)

    def _unblock(self, node: _Node, stored: StoredObject) -> StoredObject:
        """Clear blockOwnerDeletion in all references of an object, to break a cycle of owners."""

        def change(obj: Object) -> Object:
            for reference in obj["metadata"]["ownerReferences"]:
                reference["blockOwnerDeletion"] = False
            return obj

        return self.cluster.modify(node.resource, stored.namespace, stored.name, change)
