"""Services: their EndpointSlices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.testing.objects import Object
from aioinformer.testing.storage.builtin import ENDPOINT_SLICES, PODS, SERVICES
from aioinformer.testing.storage.codec import read
from aioinformer.testing.workloads.owner import Owner, is_active, is_ready

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aioinformer.testing.resources import ResourceType
    from aioinformer.testing.storage.storage import StoredEvent


class Services(Owner):
    """Makes an EndpointSlice for each Service with a selector, with the addresses of its pods."""

    name = "endpointslice-controller"
    resource = SERVICES
    child = ENDPOINT_SLICES

    def observe(self, resource: ResourceType, event: StoredEvent) -> None:
        """Queue the Services of a namespace when a pod changes."""
        super().observe(resource, event)
        if resource is PODS:
            for stored in self.cluster.collection(SERVICES).in_namespace(event.namespace):
                self.add(self._visit, stored.key)

    def reconcile(self, owner: Object) -> Iterator[None]:
        """Make or update the slice."""
        metadata, spec = owner["metadata"], owner["spec"]
        if not spec.get("selector") or spec.get("type") == "ExternalName":
            return
        wanted = spec["selector"].items()
        pods = [
            read(PODS, stored)
            for stored in self.cluster.collection(PODS).in_namespace(metadata["namespace"])
            if wanted <= stored.labels.items()
        ]
        content = {
            "endpoints": [_endpoint(child, spec) for child in pods if _has_address(child)],
            "ports": [_port(port, pods) for port in spec.get("ports") or ()],
        }
        slices = self.children(owner)
        if not slices:
            labels = {
                **(metadata.get("labels") or {}),
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
                "kubernetes.io/service-name": metadata["name"],
            }
            if spec.get("clusterIP") == "None":
                labels["service.kubernetes.io/headless"] = ""
            made = {"generateName": f"{metadata['name']}-", "labels": labels}
            self.make(owner, {"metadata": made, "addressType": "IPv4", **content})
        else:
            name = slices[0]["metadata"]["name"]
            self.cluster.modify(ENDPOINT_SLICES, metadata["namespace"], name, lambda obj: {**obj, **content})
        yield


def _has_address(pod: Object) -> bool:
    return bool((pod.get("status") or {}).get("podIP")) and is_active(pod)


def _endpoint(pod: Object, service: Object) -> Object:
    terminating = "deletionTimestamp" in pod["metadata"]
    serving = is_ready(pod)
    ready = (serving and not terminating) or bool(service.get("publishNotReadyAddresses"))
    endpoint: Object = {
        "addresses": [pod["status"]["podIP"]],
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
        "targetRef": {
            "kind": "Pod",
            "namespace": pod["metadata"]["namespace"],
            "name": pod["metadata"]["name"],
            "uid": pod["metadata"]["uid"],
        },
    }
    if pod["spec"].get("nodeName"):
        endpoint["nodeName"] = pod["spec"]["nodeName"]
    return endpoint


def _port(port: Object, pods: list[Object]) -> Object:
    """Return a port of the pods; a name is that of a container's port."""
    target = port.get("targetPort") or port["port"]
    if isinstance(target, str):
        ports = (
            declared
            for pod in pods
            for container in pod["spec"].get("containers") or ()
            for declared in container.get("ports") or ()
        )
        target = next(
            (declared["containerPort"] for declared in ports if declared.get("name") == target), port["port"]
        )
    return {"name": port.get("name", ""), "port": target, "protocol": port.get("protocol", "TCP")}
