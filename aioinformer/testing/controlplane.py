"""What a cluster's controllers and kubelets do, as far as deletion needs them.

A real API server on its own finalises nothing: a deleted namespace stays Terminating, a deleted pod on a node stays
until its kubelet has stopped it. The control plane here does the least of it that lets objects end:

- a namespace that is being deleted is emptied and then removed;
- the claims that a pod uses and the volumes that a claim is bound to keep their protection finalizers;
- a pod on a node goes as soon as it is deleted, as if its kubelet were instantaneous;
- owned objects go with their last owner, or before it (Foreground), or lose the reference (Orphan);
- a custom resource is established when its definition is created, and emptied when that is deleted.

Observing a change only notes what to look at; `work` then does it in small steps, so that emptying a
namespace of 100,000 objects can share the event loop.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from aioinformer.testing.builtin import CLAIMS, DEFINITIONS, NAMESPACES, PODS, VOLUMES
from aioinformer.testing.cluster import DeleteOptions
from aioinformer.testing.defaults import CLAIM_PROTECTION, VOLUME_PROTECTION
from aioinformer.testing.definitions import establish, resource_types
from aioinformer.testing.deletion import delete
from aioinformer.testing.errors import StatusError
from aioinformer.testing.objects import Object, load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from aioinformer.testing.cluster import Cluster
    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.storage import StoredEvent, StoredObject

_Task = tuple["Callable[..., Iterator[None]]", tuple[object, ...]]


class _Dependent(NamedTuple):
    resource: ResourceType
    key: str


class ControlPlane:
    """The controllers of a cluster; `observe` is called at each change, `work` does what follows from them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._tasks: OrderedDict[_Task, None] = OrderedDict()
        self._terminating: set[str] = set()
        self._dependents: dict[str, dict[_Dependent, None]] = {}
        self._foreground: dict[str, _Dependent] = {}
        cluster.observers.append(self.observe)

    @property
    def busy(self) -> bool:
        """Whether there is work."""
        return bool(self._tasks)

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
                self._add(self._release, resource, current.key)
            elif current is None and resource is CLAIMS:
                self._add(self._release_volumes)
        elif resource is DEFINITIONS:
            self._observe_definition(current, previous)
        if current is None:
            assert previous is not None
            if previous.namespace in self._terminating:
                self._add(self._empty_namespace, previous.namespace)
            if resource.custom:
                self._add(self._finish_definition, f"{resource.plural}.{resource.group}")
            if previous.uid in self._dependents:
                self._add(self._collect, previous.uid)
            for owner in previous.owners:
                if owner in self._foreground:
                    self._add(self._finish_foreground, owner)
        elif current.terminating and not (previous and previous.terminating):
            self._add(self._propagate, resource, current.key)

    def work(self) -> Iterator[None]:
        """Do what there is to do, a small step at a time, until nothing is left."""
        while self._tasks:
            (step, arguments), _ = self._tasks.popitem(last=False)
            yield from step(*arguments)

    def settle(self) -> None:
        """Do everything at once."""
        for _ in self.work():
            pass

    def _add(self, step: Callable[..., Iterator[None]], *arguments: object) -> None:
        self._tasks[step, arguments] = None

    # Namespaces

    def _observe_namespace(self, current: StoredObject | None, previous: StoredObject | None) -> None:
        if current is None:
            assert previous is not None
            self._terminating.discard(previous.name)
        elif current.terminating:
            self._terminating.add(current.name)
            self._add(self._empty_namespace, current.name)

    def _empty_namespace(self, name: str) -> Iterator[None]:
        cluster, empty = self._cluster, True
        if name not in self._terminating:
            return
        for resource in cluster.registry:
            if not resource.namespaced:
                continue
            for stored in cluster.collection(resource).in_namespace(name):
                if not stored.terminating:
                    self._delete(resource, stored)
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
            self._add(self._release_claims, previous.namespace)
        elif current.terminating:
            self._add(self._stop_pod, current.namespace, current.name)

    def _stop_pod(self, namespace: str, name: str) -> Iterator[None]:
        pod = self._cluster.find(PODS, namespace, name)
        if pod is not None and pod.terminating and not _finalizers(load(PODS, pod)):
            delete(self._cluster, PODS, namespace, name, DeleteOptions(grace_period_seconds=0))
            yield

    def _release_claims(self, namespace: str) -> Iterator[None]:
        for claim in self._cluster.collection(CLAIMS).in_namespace(namespace):
            if claim.terminating:
                yield from self._release(CLAIMS, claim.key)

    def _release_volumes(self) -> Iterator[None]:
        for volume in list(self._cluster.collection(VOLUMES).objects.values()):
            if volume.terminating:
                yield from self._release(VOLUMES, volume.key)

    def _release(self, resource: ResourceType, key: str) -> Iterator[None]:
        stored = self._cluster.collection(resource).objects.get(key)
        if stored is None or not stored.terminating:
            return
        obj = load(resource, stored)
        finalizer = CLAIM_PROTECTION if resource is CLAIMS else VOLUME_PROTECTION
        in_use = self._claim_in_use(stored) if resource is CLAIMS else self._volume_bound(obj)
        if finalizer in _finalizers(obj) and not in_use:
            self._drop_finalizer(resource, stored, finalizer)
            yield

    def _claim_in_use(self, claim: StoredObject) -> bool:
        for pod in self._cluster.collection(PODS).in_namespace(claim.namespace):
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
        claim = self._cluster.find(CLAIMS, reference.get("namespace", ""), reference.get("name", ""))
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
            stored = self._cluster.collection(resource).objects.get(key)
            if stored is not None:
                yield resource, stored

    def _collect(self, uid: str) -> Iterator[None]:
        """Delete what an object that is gone has owned; what has another owner only loses the reference."""
        for resource, stored in self._dependents_of(uid):
            if any(owner != uid and self._exists(owner) for owner in stored.owners):
                self._disown(resource, stored, uid)
            elif not stored.terminating:
                self._delete(resource, stored)
            yield

    def _exists(self, uid: str) -> bool:
        for _, collection in self._cluster.storage.collections():
            if any(stored.uid == uid for stored in collection.objects.values()):
                return True
        return False

    def _propagate(self, resource: ResourceType, key: str) -> Iterator[None]:
        """Do what the finalizers of the garbage collector ask for when a deletion begins."""
        stored = self._cluster.collection(resource).objects.get(key)
        if stored is None or not stored.terminating:
            return
        finalizers = _finalizers(load(resource, stored))
        if "orphan" in finalizers:
            for kind, dependent in self._dependents_of(stored.uid):
                self._disown(kind, dependent, stored.uid)
                yield
            self._drop_finalizer(resource, stored, "orphan")
        elif "foregroundDeletion" in finalizers:
            for kind, dependent in self._dependents_of(stored.uid):
                if not dependent.terminating:
                    self._delete(kind, dependent, "Foreground")
                    yield
            self._foreground[stored.uid] = _Dependent(resource, key)
            yield from self._finish_foreground(stored.uid)

    def _finish_foreground(self, uid: str) -> Iterator[None]:
        """Let an owner go once nothing that it owns is left."""
        if uid not in self._foreground or next(self._dependents_of(uid), None) is not None:
            return
        resource, key = self._foreground.pop(uid)
        stored = self._cluster.collection(resource).objects.get(key)
        if stored is not None and stored.uid == uid and stored.terminating:
            self._drop_finalizer(resource, stored, "foregroundDeletion")
            yield

    def _disown(self, resource: ResourceType, stored: StoredObject, uid: str) -> None:
        obj = load(resource, stored)
        references = obj["metadata"].get("ownerReferences") or []
        remaining = [entry for entry in references if entry.get("uid") != uid]
        if remaining:
            obj["metadata"]["ownerReferences"] = remaining
        else:
            obj["metadata"].pop("ownerReferences", None)
        self._cluster.commit(resource, stored, obj)

    # Definitions of custom resources

    def _observe_definition(self, current: StoredObject | None, previous: StoredObject | None) -> None:
        registry = self._cluster.registry
        if current is None:
            assert previous is not None
            plural, _, group = previous.name.partition(".")
            registry.remove(group, plural)
            self._cluster.storage.drop(group, plural)
            return
        for resource in resource_types(load(DEFINITIONS, current)):
            registry.add(resource)
        if current.terminating:
            self._add(self._finish_definition, current.name)
        elif previous is None:
            self._add(self._establish, current.name)

    def _establish(self, name: str) -> Iterator[None]:
        stored = self._cluster.find(DEFINITIONS, "", name)
        if stored is not None:
            self._cluster.commit(
                DEFINITIONS, stored, establish(load(DEFINITIONS, stored), self._cluster.now())
            )
            yield

    def _finish_definition(self, name: str) -> Iterator[None]:
        definition = self._cluster.find(DEFINITIONS, "", name)
        if definition is None or not definition.terminating:
            return
        plural, _, group = name.partition(".")
        resource = self._cluster.registry.any_version(group, plural)
        if resource is not None:
            for stored in list(self._cluster.collection(resource).objects.values()):
                if not stored.terminating:
                    self._delete(resource, stored)
                    yield
            if self._cluster.collection(resource).objects:
                return
        self._cluster.remove(DEFINITIONS, definition)
        yield

    # Helpers

    def _delete(self, resource: ResourceType, stored: StoredObject, policy: str | None = None) -> None:
        options = DeleteOptions(propagation_policy=policy)
        try:
            delete(self._cluster, resource, stored.namespace, stored.name, options)
        except StatusError:
            return  # gone already, or changed: whoever did that has been observed

    def _drop_finalizer(self, resource: ResourceType, stored: StoredObject, finalizer: str) -> None:
        def change(obj: Object) -> Object:
            obj["metadata"]["finalizers"] = [entry for entry in _finalizers(obj) if entry != finalizer]
            return obj

        self._cluster.modify(resource, stored.namespace, stored.name, change)


def _finalizers(obj: Object) -> list[str]:
    return obj["metadata"].get("finalizers") or []
