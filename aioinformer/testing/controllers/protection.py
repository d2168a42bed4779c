"""The protection of claims and volumes against deletion while they are in use.

The rules are those of kube-controller-manager (pkg/controller/volume/pvcprotection and pvprotection, v1.36): a claim
is in use by every pod on a node that names it, even one that has ended; a volume is while its phase is Bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.testing.controllers.controller import ClusterController, finalizers_of
from aioinformer.testing.objects import Object
from aioinformer.testing.rules.defaults import CLAIM_PROTECTION, VOLUME_PROTECTION
from aioinformer.testing.storage.builtin import CLAIMS, PODS, VOLUMES
from aioinformer.testing.storage.codec import load, read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.storage.storage import StoredEvent


class _Protection(ClusterController):
    """Keeps a finalizer on all objects of a resource; removes it from terminating objects that are not in use."""

    resource: ResourceType
    finalizer: str

    def in_use(self, obj: Object) -> bool:
        """Return whether the object is in use."""
        raise NotImplementedError

    def observe(self, resource: ResourceType, event: StoredEvent) -> None:
        """Queue a changed object."""
        if resource is self.resource and event.current is not None:
            self.add(self.protect, event.key)

    def protect(self, key: str) -> Iterator[None]:
        """Add or remove the finalizer."""
        stored = self.cluster.collection(self.resource).objects.get(key)
        if stored is None:
            return
        obj = load(self.resource, stored)
        has = self.finalizer in finalizers_of(obj)
        if not stored.terminating and not has:
            self.cluster.modify(self.resource, stored.namespace, stored.name, self._with_finalizer)
            yield
        elif stored.terminating and has and not self.in_use(obj):
            self.drop_finalizer(self.resource, stored, self.finalizer)
            yield

    def _with_finalizer(self, obj: Object) -> Object:
        obj["metadata"]["finalizers"] = [*finalizers_of(obj), self.finalizer]
        return obj


class ClaimProtection(_Protection):
    """Protects claims that pods use."""

    name = "persistentvolumeclaim-protection-controller"
    resource = CLAIMS
    finalizer = CLAIM_PROTECTION

    def observe(self, resource: ResourceType, event: StoredEvent) -> None:
        """Queue a changed claim, and the claims of a pod that may no longer use them."""
        super().observe(resource, event)
        if resource is not PODS or event.previous is None:
            return
        if event.current is None or event.current.terminating:
            pod = load(PODS, event.previous)
            for claim in (*_claims_named(pod), *_ephemeral_claims(pod)):
                self.add(self.protect, f"{event.namespace}/{claim}")

    def in_use(self, obj: Object) -> bool:
        """Return whether a pod on a node uses the claim; a pod on no node will not start with a terminating claim."""
        name, namespace = obj["metadata"]["name"], obj["metadata"]["namespace"]
        owners = {owner.get("uid") for owner in obj["metadata"].get("ownerReferences") or []}
        for stored in self.cluster.collection(PODS).in_namespace(namespace):
            pod = read(PODS, stored)
            if not (pod.get("spec") or {}).get("nodeName"):
                continue
            if name in _claims_named(pod):
                return True
            if name in _ephemeral_claims(pod) and stored.uid in owners and not _is_shut_down(pod):
                return True
        return False


class VolumeProtection(_Protection):
    """Protects volumes that are bound."""

    name = "persistentvolume-protection-controller"
    resource = VOLUMES
    finalizer = VOLUME_PROTECTION

    def in_use(self, obj: Object) -> bool:
        """Return whether its phase is Bound."""
        return (obj.get("status") or {}).get("phase") == "Bound"


class VolumeBinder(ClusterController):
    """The part of the volume controller that releases a volume when its claim is deleted."""

    name = "persistentvolume-binder-controller"

    def observe(self, resource: ResourceType, event: StoredEvent) -> None:
        """Queue a check of all volumes when a claim is deleted."""
        if resource is CLAIMS and event.current is None:
            self.add(self._release)

    def _release(self) -> Iterator[None]:
        for stored in list(self.cluster.collection(VOLUMES).objects.values()):
            obj = read(VOLUMES, stored)
            reference = (obj.get("spec") or {}).get("claimRef") or {}
            if reference and obj["status"].get("phase") == "Bound" and self._is_gone(reference):
                self.set_status(VOLUMES, "", stored.name, {**obj["status"], "phase": "Released"})
                yield

    def _is_gone(self, reference: Object) -> bool:
        claim = self.cluster.find(CLAIMS, reference.get("namespace", ""), reference.get("name", ""))
        return claim is None or reference.get("uid") not in (None, claim.uid)


def _volumes(pod: Object) -> list[Object]:
    return (pod.get("spec") or {}).get("volumes") or []


def _claims_named(pod: Object) -> list[str]:
    """Return the claims that a pod names."""
    claims = [volume.get("persistentVolumeClaim") or {} for volume in _volumes(pod)]
    return [claim["claimName"] for claim in claims if "claimName" in claim]


def _ephemeral_claims(pod: Object) -> list[str]:
    """Return the claims of a pod's ephemeral volumes."""
    name = pod["metadata"]["name"]
    return [f"{name}-{volume['name']}" for volume in _volumes(pod) if "ephemeral" in volume]


def _is_shut_down(pod: Object) -> bool:
    """Return whether the kubelet has stopped the pod, or it was force-deleted."""
    metadata = pod["metadata"]
    return "deletionTimestamp" in metadata and metadata.get("deletionGracePeriodSeconds") == 0
