"""Valid objects of many kinds: manifests of the kubectl commands."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import yaml

from .kubectl import MANIFESTS

Object = dict[str, Any]


class Sample(NamedTuple):
    """A valid object.

    Attributes:
        plural: The name of its resource.
        namespaced: Whether its kind is.
        content: The object, without a name.
    """

    plural: str
    namespaced: bool
    content: Object

    @property
    def custom(self) -> bool:
        return ".example.com/" in self.content["apiVersion"]

    def with_name(self, name: str) -> Object:
        """Return a copy with a name."""
        made = copy.deepcopy(self.content)
        made["metadata"]["name"] = name
        return made

    def collection(self, namespace: str) -> str:
        """Return the path of its collection."""
        version = self.content["apiVersion"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        return f"{root}/namespaces/{namespace}/{self.plural}" if self.namespaced else f"{root}/{self.plural}"


_PLURALS = {
    "autoscaler": "horizontalpodautoscalers",
    "budget": "poddisruptionbudgets",
    "claim": "persistentvolumeclaims",
    "configmap": "configmaps",
    "cronjob": "cronjobs",
    "daemonset": "daemonsets",
    "deployment": "deployments",
    "endpointslice": "endpointslices",
    "ingress": "ingresses",
    "job": "jobs",
    "lease": "leases",
    "networkpolicy": "networkpolicies",
    "node": "nodes",
    "pod": "pods",
    "quota": "limitranges",
    "replicaset": "replicasets",
    "role": "roles",
    "secret": "secrets",
    "service": "services",
    "service-headless": "services",
    "service-node-port": "services",
    "statefulset": "statefulsets",
    "storageclass": "storageclasses",
    "vault": "vaults",
    "volume": "persistentvolumes",
}
"""The manifests that random requests begin with, and the names of their resources."""
_WITHOUT_NAMESPACE = ("nodes", "storageclasses", "persistentvolumes")


def _load(manifest: str) -> Object:
    loaded: Object = yaml.safe_load((MANIFESTS / f"{manifest}.yaml").read_text())
    return loaded


SAMPLES = tuple(
    Sample(plural, plural not in _WITHOUT_NAMESPACE, _load(manifest)) for manifest, plural in _PLURALS.items()
)
CUSTOM = tuple(sample for sample in SAMPLES if sample.custom)
DEFINITION = _load("crd")
"""The CustomResourceDefinition of the custom resources."""
