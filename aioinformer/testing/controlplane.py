"""What a cluster's controllers and kubelets do, as far as deletion needs them.

A real API server on its own finalises nothing: a deleted namespace stays Terminating, a deleted pod on a node stays
until its kubelet has stopped it. The control plane here does the least of it that lets objects end:

- a namespace that is being deleted is emptied and then removed;
- the claims that a pod uses and the volumes that a claim is bound to keep their protection finalizers;
- a pod on a node goes as soon as it is deleted, as if its kubelet were instantaneous;
- owned objects go with their last owner, or before it (Foreground), or lose the reference (Orphan).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aioinformer.testing.builtin import CLAIMS, NAMESPACES, PODS, VOLUMES
from aioinformer.testing.cluster import DeleteOptions
from aioinformer.testing.controller import Controller, finalizers_of
from aioinformer.testing.defaults import CLAIM_PROTECTION, VOLUME_PROTECTION
from aioinformer.testing.deletion import delete
from aioinformer.testing.objects import Object, load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.cluster import Cluster
    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.storage import StoredEvent, StoredObject


class _Dependent(NamedTuple):
    resource: ResourceType
    key: str


class ControlPlane(Controller):
    """The controllers of a cluster, and its kubelets."""

    def __init__(self, cluster: Cluster) -> None:
        self._terminating: set[str] = set()
        self._dependents: dict[str, dict[_Dependent, None]] = {}
        self._foreground: dict[str, _Dependent] = {}
        super().__init__(cluster)

    def observe(self, resource: ResourceType, event: StoredEvent) -> None:
        """Note what a change asks for."""
        current, previous = event.current, event.previous
        self._index_owners(resource, current, previous)
        if resource is NAMESPACES:
            self._observe_namespace(current, previous)
        elif resource is PODS:
            self._observe_pod(current, previous)
        elif resource is CLAIMS or resource is VOLUMES:
            if current is not None and current.terminating:
                self.add(self._release, resource, current.key)
            elif current is None and resource is CLAIMS:
                self.add(self._release_volumes)
        if current is None:
            assert previous is not None
            if previous.namespace in self._terminating:
                self.add(self._empty_namespace, previous.namespace)
            if previous.uid in self._dependents:
                self.add(self._collect, previous.uid)
            for owner in previous.owners:
                if owner in self._foreground:
                    self.add(self._finish_foreground, owner)
        elif current.terminating and not (previous and previous.terminating):
            self.add(self._propagate, resource, current.key)

    # Namespaces

    def _observe_namespace(self, current: StoredObject | None, previous: StoredObject | None) -> None:
        if current is None:
            assert previous is not None
            self._terminating.discard(previous.name)
        elif current.terminating:
            self._terminating.add(current.name)
            self.add(self._empty_namespace, current.name)

    def _empty_namespace(self, name: str) -> Iterator[None]:
        cluster, empty = self.cluster, True
        if name not in self._terminating:
            return
        for resource in cluster.registry:
            if not resource.namespaced:
                continue
            for stored in cluster.collection(resource).in_namespace(name):
                if not stored.terminating:
                    self.delete(resource, stored)
                    yield
                empty = empty and cluster.find(resource, stored.namespace, stored.name) is None
        namespace = cluster.find(NAMESPACES, "", name)
        if not empty or namespace is None or not namespace.terminating:
            return
        obj = load(NAMESPACES, namespace)
        finalizers = (obj.get("spec") or {}).get("finalizers") or []
        remaining = [entry for entry in finalizers if entry != "kubernetes"]
        if obj["metadata"].get("finalizers") or remaining:
            obj["spec"]["finalizers"] = remaining
            if remaining != finalizers:
                cluster.commit(NAMESPACES, namespace, obj)
        else:
            cluster.remove(NAMESPACES, namespace)
        yield

    # Pods, claims, volumes

    def _observe_pod(self, current: StoredObject | None, previous: StoredObject | None) -> None:
        if current is None:
            assert previous is not None
            self.add(self._release_claims, previous.namespace)
        elif current.terminating:
            self.add(self._stop_pod, current.namespace, current.name)

    def _stop_pod(self, namespace: str, name: str) -> Iterator[None]:
        pod = self.cluster.find(PODS, namespace, name)
        if pod is not None and pod.terminating and not finalizers_of(load(PODS, pod)):
            delete(self.cluster, PODS, namespace, name, DeleteOptions(grace_period_seconds=0))
            yield

    def _release_claims(self, namespace: str) -> Iterator[None]:
        for claim in self.cluster.collection(CLAIMS).in_namespace(namespace):
            if claim.terminating:
                yield from self._release(CLAIMS, claim.key)

    def _release_volumes(self) -> Iterator[None]:
        for volume in list(self.cluster.collection(VOLUMES).objects.values()):
            if volume.terminating:
                yield from self._release(VOLUMES, volume.key)

    def _release(self, resource: ResourceType, key: str) -> Iterator[None]:
        stored = self.cluster.collection(resource).objects.get(key)
        if stored is None or not stored.terminating:
            return
        obj = load(resource, stored)
        finalizer = CLAIM_PROTECTION if resource is CLAIMS else VOLUME_PROTECTION
        in_use = self._claim_in_use(stored) if resource is CLAIMS else self._volume_bound(obj)
        if finalizer in finalizers_of(obj) and not in_use:
            self.drop_finalizer(resource, stored, finalizer)
            yield

    def _claim_in_use(self, claim: StoredObject) -> bool:
        for pod in self.cluster.collection(PODS).in_namespace(claim.namespace):
            obj = load(PODS, pod)
            if (obj.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
                continue
            for volume in (obj.get("spec") or {}).get("volumes") or []:
                used = (volume.get("persistentVolumeClaim") or {}).get("claimName")
                if used == claim.name:
                    return True
        return False

    def _volume_bound(self, volume: Object) -> bool:
        reference = (volume.get("spec") or {}).get("claimRef")
        if not reference or (volume.get("status") or {}).get("phase") != "Bound":
            return False
        claim = self.cluster.find(CLAIMS, reference.get("namespace", ""), reference.get("name", ""))
        return claim is not None and reference.get("uid") in (None, claim.uid)

    # Owners

    def _index_owners(
        self, resource: ResourceType, current: StoredObject | None, previous: StoredObject | None
    ) -> None:
        old = previous.owners if previous is not None else ()
        new = current.owners if current is not None else ()
        if old == new:
            return
        stored = current or previous
        assert stored is not None
        dependent = _Dependent(resource, stored.key)
        for uid in old:
            dependents = self._dependents.get(uid, {})
            dependents.pop(dependent, None)
            if not dependents:
                self._dependents.pop(uid, None)
        for uid in new:
            self._dependents.setdefault(uid, {})[dependent] = None

    def _dependents_of(self, uid: str) -> Iterator[tuple[ResourceType, StoredObject]]:
        for resource, key in list(self._dependents.get(uid, ())):
            stored = self.cluster.collection(resource).objects.get(key)
            if stored is not None:
                yield resource, stored

    def _collect(self, uid: str) -> Iterator[None]:
        """Delete what an object that is gone has owned; what has another owner only loses the reference."""
        for resource, stored in self._dependents_of(uid):
            if any(owner != uid and self._exists(owner) for owner in stored.owners):
                self._disown(resource, stored, uid)
            elif not stored.terminating:
                self.delete(resource, stored)
            yield

    def _exists(self, uid: str) -> bool:
        for _, collection in self.cluster.storage.collections():
            if any(stored.uid == uid for stored in collection.objects.values()):
                return True
        return False

    def _propagate(self, resource: ResourceType, key: str) -> Iterator[None]:
        """Do what the finalizers of the garbage collector ask for when a deletion begins."""
        stored = self.cluster.collection(resource).objects.get(key)
        if stored is None or not stored.terminating:
            return
        finalizers = finalizers_of(load(resource, stored))
        if "orphan" in finalizers:
            for kind, dependent in self._dependents_of(stored.uid):
                self._disown(kind, dependent, stored.uid)
                yield
            self.drop_finalizer(resource, stored, "orphan")
        elif "foregroundDeletion" in finalizers:
            for kind, dependent in self._dependents_of(stored.uid):
                if not dependent.terminating:
                    self.delete(kind, dependent, "Foreground")
                    yield
            self._foreground[stored.uid] = _Dependent(resource, key)
            yield from self._finish_foreground(stored.uid)

    def _finish_foreground(self, uid: str) -> Iterator[None]:
        """Let an owner go once nothing that it owns is left."""
        if uid not in self._foreground or next(self._dependents_of(uid), None) is not None:
            return
        resource, key = self._foreground.pop(uid)
        stored = self.cluster.collection(resource).objects.get(key)
        if stored is not None and stored.uid == uid and stored.terminating:
            self.drop_finalizer(resource, stored, "foregroundDeletion")
            yield

    def _disown(self, resource: ResourceType, stored: StoredObject, uid: str) -> None:
        obj = load(resource, stored)
        references = obj["metadata"].get("ownerReferences") or []
        remaining = [entry for entry in references if entry.get("uid") != uid]
        if remaining:
            obj["metadata"]["ownerReferences"] = remaining
        else:
            obj["metadata"].pop("ownerReferences", None)
        self.cluster.commit(resource, stored, obj)
