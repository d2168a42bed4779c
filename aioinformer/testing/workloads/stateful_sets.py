"""StatefulSets: numbered pods, created and updated in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.testing.objects import Object
from aioinformer.testing.storage.builtin import CLAIMS, STATEFUL_SETS
from aioinformer.testing.workloads.owner import (
    Owner,
    add_labels,
    hash_of,
    is_ready,
    label_of,
    pod_of,
    replicas_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_REVISION = "controller-revision-hash"


class StatefulSets(Owner):
    """Creates pods from 0 up, each when those before are ready, and deletes and updates them from the top down.

    The claims of `volumeClaimTemplates` remain, as by the default of `persistentVolumeClaimRetentionPolicy`.
    """

    name = "statefulset-controller"
    resource = STATEFUL_SETS

    def reconcile(self, owner: Object) -> Iterator[None]:
        """Do the next step."""
        name, spec = owner["metadata"]["name"], owner["spec"]
        revision = f"{name}-{hash_of(spec['template'])}"
        pods = {child["metadata"]["name"]: child for child in self.children(owner)}
        if self._changes(owner, revision, pods):
            yield
            pods = {child["metadata"]["name"]: child for child in self.children(owner)}
        ready = sum(map(is_ready, pods.values()))
        updated = sum(label_of(pod, _REVISION) == revision for pod in pods.values())
        is_complete = updated == ready == len(pods) == replicas_of(owner)
        before = (owner.get("status") or {}).get("currentRevision") or revision
        status = {
            "replicas": len(pods),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "currentReplicas": updated if is_complete else len(pods) - updated,
            "updatedReplicas": updated,
            "currentRevision": revision if is_complete else before,
            "updateRevision": revision,
            "collisionCount": 0,
        }
        self.write_status(owner, status)
        yield

    def _add_claims(self, owner: Object, pod: Object) -> None:
        """Give a pod its claims; those that exist are used again."""
        namespace, name, spec = owner["metadata"]["namespace"], pod["metadata"]["name"], owner["spec"]
        templates = {
            template["metadata"]["name"]: template for template in spec.get("volumeClaimTemplates") or ()
        }
        volumes = [volume for volume in pod["spec"].get("volumes") or () if volume["name"] not in templates]
        for volume, template in templates.items():
            claim = f"{volume}-{name}"
            volumes.append({"name": volume, "persistentVolumeClaim": {"claimName": claim}})
            if self.cluster.find(CLAIMS, namespace, claim) is None:
                given = template["metadata"]
                labels = {**(given.get("labels") or {}), **(spec["selector"].get("matchLabels") or {})}
                metadata: Object = {"name": claim, "labels": labels}
                if given.get("annotations"):
                    metadata["annotations"] = given["annotations"]
                self.cluster.create(CLAIMS, namespace, {"metadata": metadata, "spec": template["spec"]})
        if volumes:
            pod["spec"]["volumes"] = volumes

    def _changes(self, owner: Object, revision: str, pods: dict[str, Object]) -> bool:
        """Create or delete the next pod; return whether there was one."""
        name, spec = owner["metadata"]["name"], owner["spec"]
        wanted = [f"{name}-{number}" for number in range(replicas_of(owner))]
        is_ordered = spec.get("podManagementPolicy") != "Parallel"
        for pod_name in wanted:
            if pod_name not in pods:
                made = add_labels(pod_of(spec["template"], name=pod_name), controller_revision_hash=revision)
                made["metadata"]["labels"] |= {
                    "apps.kubernetes.io/pod-index": pod_name.rpartition("-")[2],
                    "statefulset.kubernetes.io/pod-name": pod_name,
                }
                made["spec"] |= {"hostname": pod_name, "subdomain": spec.get("serviceName", "")}
                self._add_claims(owner, made)
                self.make(owner, made)
                return True
            if is_ordered and not is_ready(pods[pod_name]):
                break
        surplus = sorted(set(pods) - set(wanted), key=lambda pod_name: int(pod_name.rpartition("-")[2]))
        partition = (spec["updateStrategy"].get("rollingUpdate") or {}).get("partition", 0)
        outdated = [
            pod_name
            for pod_name in wanted[partition:]
            if pod_name in pods and label_of(pods[pod_name], _REVISION) != revision
        ]
        may_update = spec["updateStrategy"]["type"] != "OnDelete"
        if not surplus and not (may_update and all(pod_name in pods for pod_name in wanted)):
            return False
        next_pod = surplus[-1:] or (outdated[-1:] if may_update else [])
        others = [pod for pod_name, pod in pods.items() if pod_name not in next_pod]
        if not next_pod or (not surplus and is_ready(pods[next_pod[0]]) and not all(map(is_ready, others))):
            return False
        self.drop(pods[next_pod[0]])
        return True
