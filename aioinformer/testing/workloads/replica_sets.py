"""ReplicaSets: a number of equal pods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.testing.objects import Object
from aioinformer.testing.storage.builtin import REPLICA_SETS
from aioinformer.testing.workloads.owner import Owner, is_active, is_ready, pod_of, replicas_of

if TYPE_CHECKING:
    from collections.abc import Iterator


class ReplicaSets(Owner):
    """Creates the missing pods and deletes the surplus."""

    name = "replicaset-controller"
    resource = REPLICA_SETS

    def reconcile(self, owner: Object) -> Iterator[None]:
        """Scale to the wanted number of pods."""
        wanted, template = replicas_of(owner), owner["spec"]["template"]
        pods = [child for child in self.children(owner) if is_active(child)]
        for _ in range(wanted - len(pods)):
            self.make(owner, pod_of(template, generateName=f"{owner['metadata']['name']}-"))
            yield
        if len(pods) > wanted:
            pods.sort(key=is_ready)  # those that are not ready go first
            for pod in pods[: len(pods) - wanted]:
                self.drop(pod)
                yield
        pods = [child for child in self.children(owner) if is_active(child)]
        ready = sum(map(is_ready, pods))
        terminating = len(self.children(owner, terminating=True))
        counts = {"fullyLabeledReplicas": len(pods), "readyReplicas": ready, "availableReplicas": ready}
        nonzero = {name: count for name, count in counts.items() if count}
        self.write_status(owner, {"replicas": len(pods), "terminatingReplicas": terminating, **nonzero})
        yield
