"""Airflow's KubernetesJobWatcher on aioinformer: the same process and the same queue, an informer's events inside.

What stays: the process, ``watcher_queue``, what Airflow makes of an event. What goes: the process that ends on every
error but a timeout and starts again from version 0, and the deletions that it misses meanwhile.

Airflow takes a DELETED pod without deletionTimestamp for one that another executor has adopted: its label has changed.
A deletion that a list has shown comes with the last known state, which has none either, so the server is asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from airflow.providers.cncf.kubernetes.executors.kubernetes_executor_types import ALL_NAMESPACES
from airflow.providers.cncf.kubernetes.executors.kubernetes_executor_utils import KubernetesJobWatcher
from kubernetes.client import ApiException

from aioinformer import KubeObject, blocking


class Answer(NamedTuple):
    """What the client's ``deserialize`` reads."""

    data: str


class InformerJobWatcher(KubernetesJobWatcher):
    """A KubernetesJobWatcher that reads from an informer."""

    def _pod_events(self, kube_client: Any, query_kwargs: dict[str, Any]) -> Iterator[dict[str, Any]]:
        namespace = None if self.namespace == ALL_NAMESPACES else self.namespace
        with blocking.Factory(namespace=namespace) as factory:
            pods = factory.for_resource("v1", "pods", label_selector=query_kwargs["label_selector"])
            for event in pods.events():
                if isinstance(event.object, KubeObject):
                    raw = event.object.to_dict()
                    metadata = raw["metadata"]
                    if event.type == "DELETED" and is_gone(kube_client, metadata):
                        metadata.setdefault("deletionTimestamp", datetime.now(UTC).isoformat())
                    pod = kube_client.api_client.deserialize(Answer(json.dumps(raw)), "V1Pod")
                    yield {"type": event.type, "object": pod, "raw_object": raw}


def is_gone(kube_client: Any, metadata: dict[str, Any]) -> bool:
    """Return whether this pod was deleted, and did not merely leave the selection."""
    if "deletionTimestamp" in metadata:
        return True
    try:
        present = kube_client.read_namespaced_pod(metadata["name"], metadata["namespace"])
    except ApiException as error:
        if error.status != 404:
            raise
        return True
    return bool(present.metadata.uid != metadata["uid"])
