"""What two clusters can have in common: objects without names, times and versions that the servers choose."""

from __future__ import annotations

import re
from typing import Any

from ..api import Object, Resource
from ..clusters import Cluster

DEPLOYMENTS = Resource("apps/v1", "deployments")
REPLICA_SETS = Resource("apps/v1", "replicasets")
STATEFUL_SETS = Resource("apps/v1", "statefulsets")
JOBS = Resource("batch/v1", "jobs")
CRON_JOBS = Resource("batch/v1", "cronjobs")
CLAIMS = Resource("v1", "persistentvolumeclaims")
SLICES = Resource("discovery.k8s.io/v1", "endpointslices")
SERVICES = Resource("v1", "services")
VOLUMES = Resource("v1", "persistentvolumes", namespaced=False)
PODS = Resource("v1", "pods")

_CHOSEN = re.compile(
    r"uid|name|namespace|addresses|.*Time|resourceVersion|(current|update)Revision|observedGeneration"
)
_KEPT_ANNOTATIONS = ("deployment.kubernetes.io/revision", "pv.kubernetes.io/bind-completed")


async def shape(cluster: Cluster, *resources: Resource) -> dict[str, list[Object]]:
    """Return the objects of the test's namespace."""
    shapes: dict[str, list[Object]] = {}
    for resource in resources:
        objects = (await cluster.list(resource)).values()
        shapes[resource.plural] = sorted(map(_shape, objects), key=repr)
    return shapes


def _shape(obj: Object) -> Object:
    metadata = obj["metadata"]
    annotations = metadata.get("annotations") or {}
    kept: Object = {
        "owners": [reference["kind"] for reference in metadata.get("ownerReferences", ())],
        "labels": sorted(metadata.get("labels") or {}),
        "annotations": {name: annotations[name] for name in _KEPT_ANNOTATIONS if name in annotations},
    }
    if obj["kind"] == "Pod":
        return {**kept, "image": obj["spec"]["containers"][0]["image"], "phase": obj["status"]["phase"]}
    if "replicas" in obj.get("spec", {}):
        kept["replicas"] = obj["spec"]["replicas"]
    for part in ("status", "endpoints", "ports"):
        if part in obj:
            kept[part] = _without_chosen(obj[part])
    return kept


def _without_chosen(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_chosen(member) for key, member in value.items() if not _CHOSEN.fullmatch(key)}
    if isinstance(value, list):
        return sorted(map(_without_chosen, value), key=repr)
    if isinstance(value, str):
        return re.sub(r'ReplicaSet "[^"]+"', "the ReplicaSet", value)
    return value
