"""kubectl waits for workloads of the embedded server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from aioinformer.testing import APIServer
from tests.testing.test_kubectl import DEPLOYMENT, Kubectl

pytestmark = pytest.mark.kubernetes

STATEFUL_SET = DEPLOYMENT.replace("kind: Deployment", "kind: StatefulSet")
DAEMON_SET = DEPLOYMENT.replace("kind: Deployment", "kind: DaemonSet").replace("  replicas: 2\n", "")
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: app, image: "app:1"}]}}}
"""


@pytest.fixture
async def kubectl(kubernetes_binaries: Path, tmp_path: Path) -> AsyncIterator[Kubectl]:
    async with APIServer(workloads=True) as server:
        server.create("v1", "nodes", {"metadata": {"name": "a"}})
        server.workloads.delay(start=0.05)
        yield Kubectl(kubernetes_binaries / "kubectl", server, tmp_path)


@pytest.mark.parametrize(
    ("plural", "manifest"),
    [("deployment", DEPLOYMENT), ("statefulset", STATEFUL_SET), ("daemonset", DAEMON_SET)],
    ids=["Deployment", "StatefulSet", "DaemonSet"],
)
async def test_rollout_status_ends(kubectl: Kubectl, plural: str, manifest: str) -> None:
    for image in ("app:1", "app:2"):
        await kubectl("apply", "-f", "-", stdin=manifest.replace("app:1", image))
        await kubectl("rollout", "status", f"{plural}/web", "--timeout=20s")
        pods = kubectl.server.list("v1", "pods")
        assert {pod["spec"]["containers"][0]["image"] for pod in pods} == {image}
        assert {pod["status"]["phase"] for pod in pods} == {"Running"}
    if plural != "daemonset":
        await kubectl("scale", f"{plural}/web", "--replicas=1")
        await kubectl("rollout", "status", f"{plural}/web", "--timeout=20s")
        assert len(kubectl.server.list("v1", "pods")) == 1
    await kubectl("delete", f"{plural}/web", "--cascade=foreground")
    assert kubectl.server.list("v1", "pods") == []


async def test_rollout_is_undone(kubectl: Kubectl) -> None:
    for image in ("app:1", "app:2"):
        await kubectl("apply", "-f", "-", stdin=DEPLOYMENT.replace("app:1", image))
        await kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    await kubectl("rollout", "undo", "deployment/web")
    await kubectl("rollout", "status", "deployment/web", "--timeout=20s")
    images = {pod["spec"]["containers"][0]["image"] for pod in kubectl.server.list("v1", "pods")}
    assert images == {"app:1"}
    history = await kubectl("rollout", "history", "deployment/web")
    assert [line.split()[0] for line in history.strip().splitlines()[2:]] == ["2", "3"]


async def test_wait_for_a_job(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=JOB)
    await kubectl("wait", "--for=condition=complete", "job/once", "--timeout=20s")
    assert "Completed" in await kubectl("get", "pods")
