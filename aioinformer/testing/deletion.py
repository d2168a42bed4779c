"""DELETE: preconditions, grace, finalizers; what a delete does at once and what it leaves for later."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from aioinformer.testing import errors
from aioinformer.testing.builtin import DEFINITIONS, NAMESPACES, PODS
from aioinformer.testing.conditions import with_condition
from aioinformer.testing.objects import Object, load, store, timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from aioinformer.testing.cluster import Cluster, DeleteOptions
    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.storage import StoredEvent, StoredObject

_DEFAULT_GRACE = 30
FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer that keeps a definition until its objects are gone."""

_UNDELETABLE = frozenset(["default", "kube-public", "kube-system"])
_ORPHANING = frozenset([("batch", "jobs"), ("", "replicationcontrollers")])
"""What leaves its dependents behind unless a delete says otherwise."""

_JOBS_WARNING = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)


class Deletion(NamedTuple):
    """The outcome.

    Attributes:
        stored: The object as it was left.
        gone: Whether it is gone, or would be but for the dry run.
        event: The event of its going, if there was one.
    """

    stored: StoredObject
    gone: bool
    event: StoredEvent | None = None


def delete(
    cluster: Cluster, resource: ResourceType, namespace: str, name: str, options: DeleteOptions
) -> Deletion:
    """Delete an object, as far as a delete goes.

    An object with finalizers, a namespace, a definition of a custom resource and a pod that has a grace period
    on a node are marked with a deletionTimestamp and stay until whoever is in charge has done its work.

    Raises:
        StatusError: 403 (a namespace that has to be there), 404, 409 (a precondition does not hold).
    """
    if resource is NAMESPACES and name in _UNDELETABLE:
        raise errors.forbidden(resource, name, "this namespace may not be deleted")
    stored = cluster.get(resource, namespace, name)
    _check_preconditions(resource, stored, options)
    if resource is NAMESPACES or resource is DEFINITIONS:
        return _delete_with_contents(cluster, resource, stored, options)
    obj = load(resource, stored)
    wanted = _with_propagation(resource, obj, options)
    grace = _grace(obj, options) if resource is PODS else 0
    if resource is PODS and stored.terminating:
        pending = obj["metadata"].get("deletionGracePeriodSeconds") or 0
        if options.grace_period_seconds is None or options.grace_period_seconds >= pending > 0:
            return Deletion(stored, False)
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
    """Delete what is still there of some objects, one at each step, so that the caller may pause between them."""
    for stored in objects:
        if cluster.find(resource, stored.namespace, stored.name) is not None:
            delete(cluster, resource, stored.namespace, stored.name, options)
            yield stored


def _check_preconditions(resource: ResourceType, stored: StoredObject, options: DeleteOptions) -> None:
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
    """What a client is told that deletes without saying what becomes of the dependents."""
    return _JOBS_WARNING if resource.kind == "Job" and _orphans(resource, options) else None


def _orphans(resource: ResourceType, options: DeleteOptions) -> bool:
    """Whether a delete orphans for want of a policy."""
    return options.propagation_policy is None and (resource.group, resource.plural) in _ORPHANING


def _with_propagation(resource: ResourceType, obj: Object, options: DeleteOptions) -> list[str]:
    """The finalizers with those that the propagation policy asks for."""
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
    """How long a pod may take to end: not at all if it runs on no node or has run to its end."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    if not spec.get("nodeName") or status.get("phase") in ("Failed", "Succeeded"):
        return 0
    seconds = options.grace_period_seconds
    if seconds is None:
        seconds = spec.get("terminationGracePeriodSeconds", _DEFAULT_GRACE)
    return 1 if seconds < 0 else int(seconds)


def _mark(cluster: Cluster, obj: Object, finalizers: list[str], grace: int) -> bool:
    """Write the deletionTimestamp and what goes with it; says whether anything changed."""
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
    """Mark a namespace or a definition: the control plane empties it, then it goes."""
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
