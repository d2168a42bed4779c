"""Workloads of the embedded server end as those of kube-controller-manager."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from aioinformer.testing import eventually

from ..api import Object, Resource
from ..clusters import Cluster, EmbeddedCluster, KubernetesCluster
from .shapes import (
    CLAIMS,
    CRON_JOBS,
    DEPLOYMENTS,
    JOBS,
    PODS,
    REPLICA_SETS,
    SERVICES,
    SLICES,
    STATEFUL_SETS,
    VOLUMES,
    shape,
)

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.xdist_group("kubernetes"),
    pytest.mark.asyncio(loop_factories=["asyncio"]),
]


def workload(name: str, image: str = "web:1", **spec: Any) -> Object:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": image}]}}
    return {
        "metadata": {"name": name},
        "spec": {"replicas": 3, "selector": {"matchLabels": labels}, "template": template, **spec},
    }


def job(name: str, **spec: Any) -> Object:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": f"{name}er:1"}]}
    return {"metadata": {"name": name}, "spec": {"template": {"spec": pod}, **spec}}


async def set_image(cluster: Cluster, resource: Resource, image: str) -> None:
    containers = [{"name": "main", "image": image}]
    patch = {"spec": {"template": {"spec": {"containers": containers}}}}
    await cluster.patch(resource, "web", patch)


async def status(cluster: Cluster, resource: Resource, name: str) -> Object:
    obj = (await cluster.list(resource))[cluster.key(name)]
    whole: Object = {"observedGeneration": 0, **obj.get("status", {})}
    whole["is_current"] = whole["observedGeneration"] == obj["metadata"].get("generation")
    return whole


async def until_status(cluster: Cluster, resource: Resource, name: str, **wanted: object) -> None:
    """Wait for these values in an object's status."""

    async def has_come() -> bool:
        current = await status(cluster, resource, name)
        return all(current.get(key) == value for key, value in wanted.items())

    await eventually(has_come, within=30, every=0.05, what=f"{name} has {wanted}")


Scenario = Callable[[Cluster], Awaitable[None]]


async def rollout(cluster: Cluster) -> None:
    await cluster.create(DEPLOYMENTS, workload("web"))
    await until_status(cluster, DEPLOYMENTS, "web", availableReplicas=3)
    await set_image(cluster, DEPLOYMENTS, "web:2")
    await until_status(
        cluster, DEPLOYMENTS, "web", is_current=True, updatedReplicas=3, replicas=3, availableReplicas=3
    )


async def rollback(cluster: Cluster) -> None:
    await rollout(cluster)
    await set_image(cluster, DEPLOYMENTS, "web:1")
    await until_status(
        cluster, DEPLOYMENTS, "web", is_current=True, updatedReplicas=3, replicas=3, availableReplicas=3
    )


async def broken_rollout(cluster: Cluster) -> None:
    await cluster.create(DEPLOYMENTS, workload("web", replicas=4))
    await until_status(cluster, DEPLOYMENTS, "web", availableReplicas=4)
    await set_image(cluster, DEPLOYMENTS, "broken:2")
    await until_status(cluster, DEPLOYMENTS, "web", is_current=True, updatedReplicas=2, availableReplicas=3)


async def recreation(cluster: Cluster) -> None:
    await cluster.create(DEPLOYMENTS, workload("web", strategy={"type": "Recreate"}))
    await until_status(cluster, DEPLOYMENTS, "web", availableReplicas=3)
    await set_image(cluster, DEPLOYMENTS, "web:2")
    await until_status(cluster, DEPLOYMENTS, "web", is_current=True, updatedReplicas=3, availableReplicas=3)


async def stateful_set(cluster: Cluster) -> None:
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": cluster.namespace,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    for number in range(3):
        spec = {
            "capacity": {"storage": "2Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": cluster.namespace,
            "hostPath": {"path": "/"},
        }
        await cluster.create(VOLUMES, {"metadata": {"name": f"{cluster.namespace}-{number}"}, "spec": spec})
    await cluster.create(STATEFUL_SETS, workload("web", serviceName="web", volumeClaimTemplates=[claim]))
    await until_status(cluster, STATEFUL_SETS, "web", readyReplicas=3)
    await set_image(cluster, STATEFUL_SETS, "web:2")
    await until_status(
        cluster, STATEFUL_SETS, "web", is_current=True, updatedReplicas=3, readyReplicas=3, currentReplicas=3
    )
    await cluster.patch(STATEFUL_SETS, "web", {"spec": {"replicas": 1}})
    await until_status(cluster, STATEFUL_SETS, "web", is_current=True, replicas=1)


async def job_that_completes(cluster: Cluster) -> None:
    await cluster.create(JOBS, job("once", completions=3, parallelism=2))
    await until_status(cluster, JOBS, "once", succeeded=3, ready=0)


async def job_that_fails(cluster: Cluster) -> None:
    await cluster.create(JOBS, job("broken", backoffLimit=0))
    await until_status(cluster, JOBS, "broken", failed=1, ready=0)


async def cron_job(cluster: Cluster) -> None:
    spec = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": job("once")["spec"]}}
    await cluster.create(CRON_JOBS, {"metadata": {"name": "yearly"}, "spec": spec})
    await fire(cluster, "yearly")

    async def has_succeeded() -> bool:
        return "lastSuccessfulTime" in await status(cluster, CRON_JOBS, "yearly")

    await eventually(has_succeeded, within=30, every=0.05)
    scheduled = datetime.fromisoformat((await status(cluster, CRON_JOBS, "yearly"))["lastScheduleTime"])
    assert [*await cluster.list(JOBS)] == [cluster.key(f"yearly-{int(scheduled.timestamp()) // 60}")]


async def fire(cluster: Cluster, name: str) -> None:
    """Make the next Job of a yearly CronJob; kube-controller-manager does if it believes that it has missed one."""
    if isinstance(cluster, EmbeddedCluster):
        assert cluster.server.workloads.fire(cluster.key(name))
    else:
        ago = (datetime.now(UTC) - timedelta(days=400)).strftime("%Y-%m-%dT%H:%M:%SZ")
        await cluster.patch(CRON_JOBS, name, {"status": {"lastScheduleTime": ago}}, subresource="/status")


async def service(cluster: Cluster) -> None:
    ports = [{"name": "http", "port": 80, "targetPort": 8080}]
    await cluster.create(
        SERVICES, {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": ports}}
    )
    await cluster.create(DEPLOYMENTS, workload("web", replicas=2))
    await until_status(cluster, DEPLOYMENTS, "web", availableReplicas=2)


@pytest.mark.parametrize(
    ("scenario", "resources"),
    [
        (rollout, [DEPLOYMENTS, REPLICA_SETS, PODS]),
        (rollback, [DEPLOYMENTS, REPLICA_SETS, PODS]),
        (broken_rollout, [DEPLOYMENTS, REPLICA_SETS, PODS]),
        (recreation, [DEPLOYMENTS, REPLICA_SETS, PODS]),
        (stateful_set, [STATEFUL_SETS, PODS, CLAIMS]),
        (job_that_completes, [JOBS, PODS]),
        (job_that_fails, [JOBS, PODS]),
        (cron_job, [CRON_JOBS, JOBS]),
        (service, [SLICES]),
    ],
)
async def test_both_servers_end_in_the_same_state(
    embedded: EmbeddedCluster, real: KubernetesCluster, scenario: Scenario, resources: list[Resource]
) -> None:
    await asyncio.gather(scenario(embedded), scenario(real))
    ours, wanted = await shape(embedded, *resources), await shape(real, *resources)
    for _ in range(50):  # the last events may be on their way
        if ours == wanted:
            break
        await asyncio.sleep(0.1)
        ours, wanted = await shape(embedded, *resources), await shape(real, *resources)
    assert ours == wanted
