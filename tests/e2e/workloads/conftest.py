"""Both servers with workload controllers; the real one's pods are started by the tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from aioinformer.testing import APIServer
from aioinformer.testing.workloads.pods import NODE
from tests.kubernetes.configuration import CONTROLLERS
from tests.kubernetes.controlplane import ControlPlane

from ..api import API, MERGE, PODS, Object
from ..clusters import Cluster, EmbeddedCluster, KubernetesCluster

WORKLOADS = (
    *CONTROLLERS,
    "cronjob-controller",
    "deployment-controller",
    "endpointslice-controller",
    "job-controller",
    "persistentvolume-binder-controller",
    "replicaset-controller",
    "statefulset-controller",
)


@pytest.fixture
async def embedded(tmp_path: Path) -> AsyncIterator[EmbeddedCluster]:
    async with (
        APIServer(token="administrator", seed=1, workloads=True) as server,
        API(server.url, server.token, None) as api,
    ):
        cluster = EmbeddedCluster(server, api, tmp_path)
        cluster.namespace = await cluster.new_namespace()
        server.workloads.fail_image("broken:*")
        server.workloads.fail("*/broken-*")
        yield cluster


@pytest.fixture(scope="package")
def controller_manager(kubernetes_binaries: Path) -> Iterator[ControlPlane]:
    with ControlPlane() as running:
        running.start_controller_manager(WORKLOADS)
        yield running


@pytest.fixture
async def real(controller_manager: ControlPlane, tmp_path: Path) -> AsyncIterator[KubernetesCluster]:
    context = controller_manager.ssl_context()
    async with API(controller_manager.url, controller_manager.token, context) as api:
        cluster = KubernetesCluster(controller_manager, api, tmp_path)
        cluster.namespace = await cluster.new_namespace()
        await api.ask("POST", "/api/v1/nodes", {"metadata": {"name": NODE}})  # the first test does
        kubelet = asyncio.create_task(play_kubelet(cluster))
        yield cluster
        kubelet.cancel()
        await asyncio.gather(kubelet, return_exceptions=True)


async def play_kubelet(cluster: Cluster) -> None:
    """Put the namespace's pods on the node, start and end them; images whose name has ``broken`` fail."""
    ask = cluster.api.ask  # a pod may be deleted meanwhile
    async with cluster.api.watch(PODS.path(cluster.namespace), {}) as events:
        async for event in events:
            pod = event["object"]
            name = pod["metadata"]["name"]
            path = PODS.path(cluster.namespace, name)
            if event["type"] == "DELETED":
                continue
            if "deletionTimestamp" in pod["metadata"]:
                await ask("DELETE", path, {"gracePeriodSeconds": 0})
            elif "nodeName" not in pod["spec"]:
                target = {"kind": "Node", "name": NODE}
                await ask("POST", f"{path}/binding", {"metadata": {"name": name}, "target": target})
            elif pod["status"].get("phase") == "Pending" and (status := status_of(pod)):
                await ask("PATCH", f"{path}/status", {"status": status}, content_type=MERGE)


def status_of(pod: Object) -> Object:
    is_broken = "broken" in pod["spec"]["containers"][0]["image"]
    if any(reference["kind"] == "Job" for reference in pod["metadata"].get("ownerReferences", ())):
        return {"phase": "Failed" if is_broken else "Succeeded"}
    if is_broken:
        return {}
    now = pod["metadata"]["creationTimestamp"]
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": now}
    ip = f"10.2.0.{int(pod['metadata']['resourceVersion']) % 250 + 1}"
    return {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}], "conditions": [ready]}
