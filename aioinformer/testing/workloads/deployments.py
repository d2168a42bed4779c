"""Deployments: a ReplicaSet for each revision of their pods, and rollouts from one to the next."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from aioinformer.testing.objects import Object, with_condition
from aioinformer.testing.storage.builtin import DEPLOYMENTS, REPLICA_SETS
from aioinformer.testing.workloads.owner import Owner, add_labels, hash_of, label_of, pod_of, replicas_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.resources import ResourceType

_REVISION = "deployment.kubernetes.io/revision"
_HASH = "pod-template-hash"


class Deployments(Owner):
    """Makes a ReplicaSet for the newest template and scales it up as it scales the others down."""

    name = "deployment-controller"
    resource = DEPLOYMENTS
    child = REPLICA_SETS

    def reconcile(self, owner: Object) -> Iterator[None]:
        """Do the next step of a rollout."""
        sets, revision = self.children(owner), hash_of(owner["spec"]["template"])
        if not any(label_of(replica_set, _HASH) == revision for replica_set in sets) and not owner[
            "spec"
        ].get("paused"):
            self._make_set(owner, revision, 1 + max(map(_revision, sets), default=0))
            yield
            sets = self.children(owner)
        new = [replica_set for replica_set in sets if label_of(replica_set, _HASH) == revision]
        old = [replica_set for replica_set in sets if label_of(replica_set, _HASH) != revision]
        newest = max(map(_revision, old), default=0)
        if new and _revision(new[0]) <= newest:  # rolled back to
            self._number(REPLICA_SETS, new[0]["metadata"], newest + 1)
            self._number(DEPLOYMENTS, owner["metadata"], newest + 1)
            yield
        for replica_set, replicas in _scales(owner, new[0] if new else None, old):
            self._scale(replica_set, replicas)
            yield
        self.write_status(owner, self._status(owner, revision))
        yield

    def _make_set(self, owner: Object, revision: str, number: int) -> None:
        spec, metadata = owner["spec"], owner["metadata"]
        template = add_labels(pod_of(spec["template"]), pod_template_hash=revision)
        made = {
            "metadata": {
                "name": f"{metadata['name']}-{revision}",
                "labels": template["metadata"]["labels"],
                "annotations": {_REVISION: str(number)},
            },
            "spec": {
                "replicas": 0,
                "selector": {**spec["selector"], "matchLabels": template["metadata"]["labels"]},
                "template": template,
            },
        }
        self.make(owner, made)
        self._number(DEPLOYMENTS, metadata, number)

    def _number(self, resource: ResourceType, metadata: Object, number: int) -> None:
        """Write the number of a revision."""

        def annotate(obj: Object) -> Object:
            annotations = obj["metadata"].get("annotations") or {}
            obj["metadata"]["annotations"] = {**annotations, _REVISION: str(number)}
            return obj

        self.cluster.modify(resource, metadata["namespace"], metadata["name"], annotate)

    def _scale(self, replica_set: Object, replicas: int) -> None:
        def change(obj: Object) -> Object:
            obj["spec"]["replicas"] = replicas
            return obj

        self.cluster.modify(
            REPLICA_SETS, replica_set["metadata"]["namespace"], replica_set["metadata"]["name"], change
        )

    def _status(self, owner: Object, revision: str) -> Object:
        sets, wanted, now = self.children(owner), replicas_of(owner), self.cluster.now()
        updated = sum(
            _count(replica_set, "replicas")
            for replica_set in sets
            if label_of(replica_set, _HASH) == revision
        )
        total = sum(_count(replica_set, "replicas") for replica_set in sets)
        available = sum(_count(replica_set, "availableReplicas") for replica_set in sets)
        counts = {
            "replicas": total,
            "updatedReplicas": updated,
            "readyReplicas": available,
            "availableReplicas": available,
            "unavailableReplicas": max(total, wanted) - available,
        }
        before = {"conditions": (owner.get("status") or {}).get("conditions") or []}
        is_available = available >= wanted - _limits(owner)[1]
        reason = "MinimumReplicasAvailable" if is_available else "MinimumReplicasUnavailable"
        message = f"Deployment {'has' if is_available else 'does not have'} minimum availability."
        status = with_condition(before, "Available", is_available, reason, message, now)
        is_complete = updated == total == available == wanted
        reason = "NewReplicaSetAvailable" if is_complete else "ReplicaSetUpdated"
        progress = "has successfully progressed" if is_complete else "is progressing"
        message = f'ReplicaSet "{owner["metadata"]["name"]}-{revision}" {progress}.'
        status = with_condition(status, "Progressing", True, reason, message, now)
        terminating = sum(_count(replica_set, "terminatingReplicas") for replica_set in sets)
        positive = {name: count for name, count in counts.items() if count}
        return {**status, **positive, "terminatingReplicas": terminating}


def _scales(owner: Object, new: Object | None, old: list[Object]) -> Iterator[tuple[Object, int]]:
    """Return the ReplicaSets to scale now, with their replicas."""
    wanted = replicas_of(owner)
    surge, unavailable = _limits(owner)
    is_recreated = owner["spec"]["strategy"]["type"] == "Recreate"
    sets = [*old, *([new] if new is not None else [])]
    total = sum(map(replicas_of, sets))
    if new is None:
        if old and owner["spec"].get("paused") and replicas_of(old[-1]) != wanted:
            yield old[-1], wanted
        return
    current = replicas_of(new)
    if is_recreated:
        yield from ((replica_set, 0) for replica_set in old if replicas_of(replica_set))
        if (
            not any(_count(replica_set, "replicas") or replicas_of(replica_set) for replica_set in old)
            and current != wanted
        ):
            yield new, wanted
        return
    next_size = wanted if current > wanted else min(wanted, current + max(0, wanted + surge - total))
    if next_size != current:
        yield new, next_size
    removable = total - (wanted - unavailable) - (current - min(current, _count(new, "availableReplicas")))
    for replica_set in old:
        fewer = min(replicas_of(replica_set), max(0, removable))
        if fewer:
            removable -= fewer
            yield replica_set, replicas_of(replica_set) - fewer


def _limits(owner: Object) -> tuple[int, int]:
    """Return how many pods may be too many and unavailable during a rollout."""
    wanted = replicas_of(owner)
    rolling = owner["spec"]["strategy"].get("rollingUpdate") or {}
    surge = _resolve(rolling.get("maxSurge", "25%"), wanted, up=True)
    unavailable = _resolve(rolling.get("maxUnavailable", "25%"), wanted, up=False)
    return surge, max(unavailable, 0 if surge else 1)


def _resolve(given: object, wanted: int, *, up: bool) -> int:
    if isinstance(given, str) and given.endswith("%"):
        share = wanted * int(given[:-1]) / 100
        return math.ceil(share) if up else math.floor(share)
    return int(str(given))


def _count(replica_set: Object, name: str) -> int:
    return int((replica_set.get("status") or {}).get(name) or 0)


def _revision(replica_set: Object) -> int:
    return int((replica_set["metadata"].get("annotations") or {}).get(_REVISION, 0))
