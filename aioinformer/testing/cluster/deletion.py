"""DELETE: preconditions, grace periods, finalizers and propagation."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aioinformer.testing import errors
from aioinformer.testing.objects import Object, timestamp, with_condition
from aioinformer.testing.storage.builtin import DEFINITIONS, NAMESPACES, PODS
from aioinformer.testing.storage.codec import load, store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from aioinformer.testing.cluster.cluster import Cluster
    from aioinformer.testing.cluster.options import DeleteOptions
    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.storage.storage import StoredEvent, StoredObject

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer that keeps a definition until its objects are deleted."""

_UNDELETABLE = frozenset(["default", "kube-public", "kube-system"])
_ORPHANING = frozenset([("batch", "jobs"), ("", "replicationcontrollers")])
"""Resources whose deletes orphan the dependents by default."""

_JOBS_WARNING = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)


class Deletion(NamedTuple):
    """The outcome of a delete.

    Attributes:
        stored: The object after the delete.
        gone: Whether the object is removed, or would be without the dry run.
        event: The event of the removal, if any.
    """

    stored: StoredObject
    gone: bool
    event: StoredEvent | None = None


def delete(
    cluster: Cluster, resource: ResourceType, namespace: str, name: str, options: DeleteOptions
) -> Deletion:
    """Delete an object, or mark it for deletion.

    The server marks objects with finalizers, namespaces, definitions, and pods on a node with a grace period by a
    deletionTimestamp. They remain until their controllers or the kubelet have done their work.

    Raises:
        StatusError: 403 (a required namespace), 404, 409 (a failed precondition).
    """
    if resource is NAMESPACES and name in _UNDELETABLE:
        raise errors.forbidden(resource, name, "this namespace may not be deleted")
    stored = cluster.get(resource, namespace, name)
    check_preconditions(resource, stored, options)
    if resource is NAMESPACES or resource is DEFINITIONS:
        return _delete_with_contents(cluster, resource, stored, options)
    obj = load(resource, stored)
    wanted = _with_propagation(resource, obj, options)
    grace = _grace(obj, options) if resource is PODS else 0
    if resource is PODS and stored.terminating:
        pending = obj["metadata"].get("deletionGracePeriodSeconds") or 0
        if pending and (options.grace_period_seconds is None or options.grace_period_seconds >= pending):
            return Deletion(stored, False)
        grace = min(grace, pending)
    if wanted or resource is PODS:
        marked = _mark(cluster, obj, wanted, grace)
        if marked:
            stored = _commit(cluster, resource, stored, obj, options)
        if wanted or grace:
            return Deletion(stored, False)
    return Deletion(stored, True, cluster.remove(resource, stored, dry_run=options.dry_run))


def delete_collection(
    cluster: Cluster, resource: ResourceType, objects: Iterable[StoredObject], options: DeleteOptions
) -> Iterator[StoredObject]:
    """Delete those of the objects that still exist, one per step, so that the caller can pause between steps."""
    for stored in objects:
        if cluster.find(resource, stored.namespace, stored.name) is not None:
            delete(cluster, resource, stored.namespace, stored.name, options)
            yield stored


def check_preconditions(resource: ResourceType, stored: StoredObject, options: DeleteOptions) -> None:
    """Check that an object is the one that a delete means.

    Raises:
        StatusError: 409.
    """
    if options.uid is not None and options.uid != stored.uid:
        raise errors.precondition_failed(
            resource,
            stored.name,
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({stored.uid}). "
            "The object might have been deleted and then recreated",
        )
    version = str(stored.resource_version)
    if options.resource_version is not None and options.resource_version != version:
        raise errors.precondition_failed(
            resource,
            stored.name,
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the "
            f"ResourceVersion in record ({version}). The object might have been modified",
        )


def warning(resource: ResourceType, options: DeleteOptions) -> str | None:
    """Return the warning for a delete without a propagation policy, or None."""
    return _JOBS_WARNING if resource.kind == "Job" and _orphans(resource, options) else None


def _orphans(resource: ResourceType, options: DeleteOptions) -> bool:
    """Return whether a delete without a policy orphans the dependents."""
    return options.propagation_policy is None and (resource.group, resource.plural) in _ORPHANING


def _with_propagation(resource: ResourceType, obj: Object, options: DeleteOptions) -> list[str]:
    """Return the finalizers with the finalizer of the propagation policy."""
    finalizers = list(obj["metadata"].get("finalizers") or [])
    policy = options.propagation_policy
    if policy is None:
        if ORPHAN in finalizers or FOREGROUND in finalizers or not _orphans(resource, options):
            return finalizers
        policy = "Orphan"
    kept = [entry for entry in finalizers if entry not in (FOREGROUND, ORPHAN)]
    if policy == "Foreground":
        kept.append(FOREGROUND)
    elif policy == "Orphan":
        kept.append(ORPHAN)
    return kept


def _grace(pod: Object, options: DeleteOptions) -> int:
    """Return a pod's grace period in seconds; 0 if it is on no node or has ended."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    if not spec.get("nodeName") or status.get("phase") in ("Failed", "Succeeded"):
        return 0
    seconds = options.grace_period_seconds
    if seconds is None:
        seconds = spec["terminationGracePeriodSeconds"]
    return 1 if seconds < 0 else int(seconds)


def _mark(cluster: Cluster, obj: Object, finalizers: list[str], grace: int) -> bool:
    """Set the deletionTimestamp and related metadata; return whether anything changed."""
    metadata: Object = obj["metadata"]
    before = dict(metadata)
    if "deletionTimestamp" not in metadata:
        metadata["deletionTimestamp"] = timestamp(cluster.time() + grace)
        if metadata.get("generation"):
            metadata["generation"] += 1
    elif grace < metadata.get("deletionGracePeriodSeconds", 0):
        metadata["deletionTimestamp"] = timestamp(cluster.time() + grace)
    metadata["deletionGracePeriodSeconds"] = grace
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    return before != metadata


def _commit(
    cluster: Cluster, resource: ResourceType, stored: StoredObject, obj: Object, options: DeleteOptions
) -> StoredObject:
    return store(resource, obj) if options.dry_run else cluster.commit(resource, stored, obj)


def _delete_with_contents(
    cluster: Cluster, resource: ResourceType, stored: StoredObject, options: DeleteOptions
) -> Deletion:
    """Mark a namespace or a definition for deletion; a controller then deletes its objects and removes it."""
    if stored.terminating:
        return Deletion(stored, False)
    obj = load(resource, stored)
    if resource is NAMESPACES:
        finalizers = _with_propagation(resource, obj, options)
        if not (obj.get("spec") or {}).get("finalizers") and not finalizers:
            return Deletion(stored, True, cluster.remove(resource, stored, dry_run=options.dry_run))
        if finalizers:
            obj["metadata"]["finalizers"] = finalizers
        obj["status"] = {**(obj.get("status") or {}), "phase": "Terminating"}
    else:
        finalizers = obj["metadata"].get("finalizers") or []
        obj["metadata"]["finalizers"] = [*(entry for entry in finalizers if entry != CLEANUP), CLEANUP]
        why = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
        reason = "InstanceDeletionPending"
        obj["status"] = with_condition(
            obj.get("status") or {}, "Terminating", True, reason, why, cluster.now()
        )
    obj["metadata"]["deletionTimestamp"] = cluster.now()
    return Deletion(_commit(cluster, resource, stored, obj, options), False)
