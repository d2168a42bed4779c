"""Binding: assign a pod to a node (kube-apiserver ``registry/core/pod/storage``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aioinformer.testing.errors import StatusError, bad_request, conflict, other_object
from aioinformer.testing.storage.builtin import PODS
from aioinformer.testing.storage.codec import load

if TYPE_CHECKING:
    from aioinformer.testing.cluster.cluster import Cluster
    from aioinformer.testing.objects import Object


def bind(cluster: Cluster, namespace: str, binding: Object, *, dry_run: bool) -> None:
    """Assign a pod to a node, with the binding's labels and annotations.

    Raises:
        StatusError: 400 (it names no pod); 404; 409 (the pod has a node, is terminating, or is another one than the
            binding's uid or resourceVersion says); 500 (the binding names no node).
    """
    given, target = binding["metadata"], binding["target"]
    if not (name := given.get("name")):
        raise bad_request("Name parameter required.")
    if target.get("kind") not in (None, "", "Node"):
        why = f'Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"'
        raise StatusError(500, "", f"target.kind: {why}")
    if not (node := target.get("name")):
        raise StatusError(500, "", "target.name: Required value")
    stored = cluster.get(PODS, namespace, name)
    pod = load(PODS, stored)
    for precondition, field, current in (
        ("UID", "uid", stored.uid),
        ("ResourceVersion", "resourceVersion", str(stored.resource_version)),
    ):
        if (wanted := given.get(field)) and wanted != current:
            raise other_object(PODS, namespace, name, precondition, wanted, current)
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    if stored.terminating:
        raise conflict(PODS, name, f"pod {name} is being deleted, cannot be assigned to a host", "binding")
    if spec.get("nodeName"):
        raise conflict(PODS, name, f'pod {name} is already assigned to node "{spec["nodeName"]}"', "binding")
    if spec.get("schedulingGates"):
        raise conflict(PODS, name, f"pod {name} has non-empty .spec.schedulingGates", "binding")
    for part in ("annotations", "labels"):
        if given.get(part):
            pod["metadata"][part] = {**(pod["metadata"].get(part) or {}), **given[part]}
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None}
    others = [
        condition for condition in status.get("conditions") or () if condition.get("type") != "PodScheduled"
    ]
    pod["status"] = {
        **{field: value for field, value in status.items() if field != "nominatedNodeName"},
        "conditions": [*others, {**scheduled, "lastTransitionTime": cluster.now()}],
    }
    pod["spec"] = {**spec, "nodeName": node}
    if not dry_run:
        cluster.commit(PODS, stored, pod)
