"""A watcher that prints what it hears of each pod, besides what Airflow makes of it."""

from __future__ import annotations

import os
import queue
import tempfile
from collections.abc import Iterator
from typing import Any

os.environ.setdefault("AIRFLOW_HOME", tempfile.mkdtemp(prefix="airflow-"))
os.environ["AIRFLOW__KUBERNETES_EXECUTOR__IN_CLUSTER"] = "False"
os.environ["AIRFLOW__KUBERNETES_EXECUTOR__CONFIG_FILE"] = os.environ["KUBECONFIG"]

from airflow.providers.cncf.kubernetes.executors.kubernetes_executor_types import (
    ADOPTED,
    KubernetesWatch,
)
from airflow.providers.cncf.kubernetes.executors.kubernetes_executor_utils import (
    KubernetesJobWatcher,
)
from airflow.providers.cncf.kubernetes.kube_config import KubeConfig

from examples.migrations.telling import tell

JOB = "1"
"""The scheduler's job, whose pods have it as a label."""


def watch(watcher_class: type[KubernetesJobWatcher]) -> None:
    """Run a watcher in this process."""

    class Telling(watcher_class):  # type: ignore[misc, valid-type]
        def process_status(self, **values: Any) -> None:
            super().process_status(**values)
            is_deleted = values["event"]["type"] == "DELETED"
            was_adopted = any(result.state == ADOPTED for result in drain(results))
            if not was_adopted:  # no pod is, so Airflow has taken a deletion for that
                tell(values["pod_name"], None if is_deleted else values["resource_version"])

    results: queue.Queue[KubernetesWatch] = queue.Queue()
    Telling(os.environ["NAMESPACE"], results, None, JOB, KubeConfig()).run()


def drain(results: queue.Queue[KubernetesWatch]) -> Iterator[KubernetesWatch]:
    """Take what Airflow has made of the event."""
    while not results.empty():
        yield results.get()
