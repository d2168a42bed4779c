"""All kubelets in one: they remove a pod on a node as soon as it is deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.testing.cluster.deletion import delete
from aioinformer.testing.cluster.options import DeleteOptions
from aioinformer.testing.controllers.controller import ClusterController
from aioinformer.testing.storage.builtin import PODS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.storage.storage import StoredEvent


class Kubelet(ClusterController):
    """Stops terminating pods immediately."""

    name = "kubelet"

    def observe(self, resource: ResourceType, event: StoredEvent) -> None:
        """Queue a terminating pod."""
        if resource is PODS and event.current is not None and event.current.terminating:
            self.add(self._stop, event.current.namespace, event.current.name)

    def _stop(self, namespace: str, name: str) -> Iterator[None]:
        pod = self.cluster.find(PODS, namespace, name)
        if pod is not None and pod.terminating:
            delete(self.cluster, PODS, namespace, name, DeleteOptions(grace_period_seconds=0, uid=pod.uid))
            yield
