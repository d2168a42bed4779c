"""The base class of controllers that make objects for an object."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from aioinformer.testing.controllers.controller import ClusterController
from aioinformer.testing.errors import StatusError
from aioinformer.testing.objects import Object, is_true, with_condition
from aioinformer.testing.storage.builtin import PODS
from aioinformer.testing.storage.codec import load, read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.storage.storage import StoredEvent

_FAILURE = "ReplicaFailure"


class Owner(ClusterController):
    """Reconciles the objects of a resource with those that they own.

    Attributes:
        resource: The resource of the owners.
        child: The resource of what they own.
    """

    resource: ResourceType
    child: ResourceType = PODS

    def observe(self, resource: ResourceType, event: StoredEvent) -> None:
        """Queue a changed owner, and the owners of a changed child."""
        if resource is self.resource:
            self.add(self._visit, event.key)
        elif resource is self.child:
            owners = {
                uid
                for stored in (event.current, event.previous)
                if stored is not None
                for uid in stored.owners
            }
            for stored in (
                self.cluster.collection(self.resource).in_namespace(event.namespace) if owners else ()
            ):
                if stored.uid in owners:
                    self.add(self._visit, stored.key)

    def reconcile(self, owner: Object) -> Iterator[None]:
        """Create and delete children, and write the owner's status."""
        raise NotImplementedError

    def _visit(self, key: str) -> Iterator[None]:
        stored = self.cluster.collection(self.resource).objects.get(key)
        if stored is None or stored.terminating:
            return
        owner = load(self.resource, stored)
        status = owner.get("status") or {}
        if others := [
            condition for condition in status.get("conditions") or () if condition["type"] != _FAILURE
        ]:
            owner["status"] = {**status, "conditions": others}
        elif "conditions" in status:
            del status["conditions"]
        try:
            yield from self.reconcile(owner)
        except StatusError as error:
            if error.code == 404:
                return  # deleted meanwhile, which has queued the owner again
            self._record_failure(key, error)

    def _record_failure(self, key: str, error: StatusError) -> None:
        """Say in the owner's status why it cannot make its children, as upstream."""
        stored = self.cluster.collection(self.resource).objects.get(key)
        if stored is not None and not stored.terminating:
            owner = load(self.resource, stored)
            failed = (_FAILURE, True, "FailedCreate", error.message)
            self.write_status(owner, with_condition(owner.get("status") or {}, *failed, self.cluster.now()))

    def children(self, owner: Object, *, terminating: bool = False) -> list[Object]:
        """Return what an object owns and is not being deleted, or is, oldest first; do not modify it."""
        uid, namespace = owner["metadata"]["uid"], owner["metadata"]["namespace"]
        stored = self.cluster.collection(self.child).in_namespace(namespace)
        owned = [
            read(self.child, stored)
            for stored in stored
            if uid in stored.owners and stored.terminating is terminating
        ]
        return sorted(
            owned, key=lambda child: (child["metadata"]["creationTimestamp"], child["metadata"]["name"])
        )

    def make(self, owner: Object, child: Object) -> None:
        """Create an object that belongs to its owner."""
        metadata = owner["metadata"]
        reference = {
            "apiVersion": self.resource.api_version,
            "kind": self.resource.kind,
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        child["metadata"]["ownerReferences"] = [reference]
        self.cluster.create(self.child, metadata["namespace"], child)

    def drop(self, child: Object, policy: str | None = None) -> None:
        """Delete an object, and with `"Background"` what it owns."""
        metadata = child["metadata"]
        stored = self.cluster.find(self.child, metadata["namespace"], metadata["name"])
        if stored is not None:
            self.delete(self.child, stored, policy)

    def write_status(self, owner: Object, status: Object) -> None:
        """Write an owner's status; without a difference nothing changes."""
        metadata = owner["metadata"]
        whole = {**status, "observedGeneration": metadata.get("generation", 1)}
        if self.resource.kind in ("CronJob", "Job", "Service"):
            del whole["observedGeneration"]
        self.set_status(self.resource, metadata["namespace"], metadata["name"], whole)


def pod_of(template: Object, **metadata: object) -> Object:
    """Return a pod of a template."""
    given = template.get("metadata") or {}
    kept = {key: dict(given[key]) for key in ("labels", "annotations") if given.get(key)}
    return {"metadata": {**kept, **metadata}, "spec": dict(template["spec"])}


def add_labels(child: Object, **labels: str) -> Object:
    """Return an object with more labels; `_` in a name means `-`."""
    metadata = child["metadata"]
    more = {name.replace("_", "-"): value for name, value in labels.items()}
    return {**child, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **more}}}


def hash_of(template: Object) -> str:
    """Return the hash of a pod template, which names its revision."""
    return hashlib.sha256(msgspec.json.encode(template, order="deterministic")).hexdigest()[:10]


def label_of(child: Object, name: str) -> str:
    """Return a label, or `""`."""
    return str((child["metadata"].get("labels") or {}).get(name, ""))


def is_active(pod: Object) -> bool:
    """Return whether a pod has not ended."""
    return (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")


def is_ready(pod: Object) -> bool:
    """Return whether a pod is ready."""
    return is_true(pod, "Ready")


def replicas_of(obj: Object) -> int:
    """Return how many replicas an object wants."""
    wanted: int = obj["spec"]["replicas"]
    return wanted
