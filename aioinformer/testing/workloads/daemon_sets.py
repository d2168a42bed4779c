"""DaemonSets: a pod on each node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.testing.objects import Object
from aioinformer.testing.storage.builtin import DAEMON_SETS, NODES
from aioinformer.testing.workloads.owner import Owner, add_labels, hash_of, is_ready, label_of, pod_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.storage.storage import StoredEvent

_REVISION = "controller-revision-hash"


class DaemonSets(Owner):
    """Makes a pod on each node that fits the node selector, and updates them one after the other."""

    name = "daemonset-controller"
    resource = DAEMON_SETS

    def observe(self, resource: ResourceType, event: StoredEvent) -> None:
        """Queue all DaemonSets when a node changes."""
        super().observe(resource, event)
        if resource is NODES:
            for key in self.cluster.collection(DAEMON_SETS).objects:
                self.add(self._visit, key)

    def reconcile(self, owner: Object) -> Iterator[None]:
        """Make missing pods, delete those on no node, and update the next one."""
        name, spec = owner["metadata"]["name"], owner["spec"]
        revision = hash_of(spec["template"])
        wanted = (spec["template"]["spec"].get("nodeSelector") or {}).items()
        nodes = [
            node.name
            for node in self.cluster.collection(NODES).objects.values()
            if wanted <= node.labels.items()
        ]
        pods = {child["spec"].get("nodeName"): child for child in self.children(owner)}
        for node in nodes:
            if node not in pods:
                made = add_labels(
                    pod_of(spec["template"], generateName=f"{name}-"), controller_revision_hash=revision
                )
                made["spec"]["nodeName"] = node
                self.make(owner, made)
                yield
        for node, pod in pods.items():
            if node not in nodes:
                self.drop(pod)
                yield
        outdated = [pod for pod in pods.values() if label_of(pod, _REVISION) != revision]
        may_update = spec["updateStrategy"]["type"] != "OnDelete"
        current = [pod for pod in pods.values() if label_of(pod, _REVISION) == revision]
        if outdated and may_update and len(pods) == len(nodes) and all(map(is_ready, current)):
            self.drop(outdated[0])
            yield
        placed = self.children(owner)
        ready = sum(map(is_ready, placed))
        status = {
            "desiredNumberScheduled": len(nodes),
            "currentNumberScheduled": len(placed),
            "numberMisscheduled": 0,
            "numberReady": ready,
            "numberAvailable": ready,
            "numberUnavailable": len(nodes) - ready,
            "updatedNumberScheduled": sum(label_of(pod, _REVISION) == revision for pod in placed),
        }
        self.write_status(owner, status)
        yield
