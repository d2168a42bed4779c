"""The embedded server as kubelet and workload controllers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from aioinformer.testing import APIServer, TestingError, eventually

Object = dict[str, Any]


@pytest.fixture
async def server() -> AsyncIterator[APIServer]:
    async with APIServer(seed=1, workloads=True) as running:
        yield running


def workload(name: str, replicas: int | None = 2, image: str = "web:1", **spec: Any) -> Object:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": image}], **spec.pop("pod", {})},
    }
    whole = {"selector": {"matchLabels": {"app": name}}, "template": template, **spec}
    if replicas is not None:
        whole["replicas"] = replicas
    return {"metadata": {"name": name}, "spec": whole}


def phases(server: APIServer) -> list[str]:
    return [each["status"]["phase"] for each in server.list("v1", "pods")]


def images(server: APIServer) -> set[str]:
    return {each["spec"]["containers"][0]["image"] for each in server.list("v1", "pods")}


def status(server: APIServer, plural: str, name: str = "web", group: str = "apps/v1") -> Object:
    found: Object = server.get(group, plural, name)["status"]
    return found


def update_image(server: APIServer, plural: str, image: str) -> None:
    template = {"spec": {"containers": [{"name": "main", "image": image}]}}
    server.patch("apps/v1", plural, "web", {"spec": {"template": template}})


async def test_deployment_makes_a_replica_set_makes_pods(server: APIServer) -> None:
    server.create("apps/v1", "deployments", workload("web", 3))
    assert [each["spec"]["replicas"] for each in server.list("apps/v1", "replicasets")] == [3]
    assert phases(server) == ["Running"] * 3
    found = status(server, "deployments")
    assert found["availableReplicas"] == found["updatedReplicas"] == 3
    assert {each["type"]: each["status"] for each in found["conditions"]} == {
        "Available": "True",
        "Progressing": "True",
    }


async def test_deployment_scales_and_is_deleted(server: APIServer) -> None:
    server.create("apps/v1", "deployments", workload("web", 3))
    server.patch("apps/v1", "deployments", "web", {"spec": {"replicas": 1}})
    assert len(phases(server)) == 1
    server.delete("apps/v1", "deployments", "web", propagation_policy="Background")
    assert phases(server) == []
    assert server.list("apps/v1", "replicasets") == []


@pytest.mark.parametrize("strategy", ["RollingUpdate", "Recreate"])
async def test_deployment_rolls_out(server: APIServer, strategy: str) -> None:
    server.create("apps/v1", "deployments", workload("web", 4, strategy={"type": strategy}))
    update_image(server, "deployments", "web:2")
    assert images(server) == {"web:2"}
    assert sorted(each["spec"]["replicas"] for each in server.list("apps/v1", "replicasets")) == [0, 4]
    assert status(server, "deployments")["updatedReplicas"] == 4


async def test_failing_rollout_keeps_the_old_pods(server: APIServer) -> None:
    server.create("apps/v1", "deployments", workload("web", 4))
    failure = server.workloads.fail_image("web:2")
    update_image(server, "deployments", "web:2")
    assert sorted(phases(server)) == ["Pending"] * 2 + ["Running"] * 3
    assert status(server, "deployments")["availableReplicas"] == 3
    failure.remove()
    await eventually(lambda: phases(server) == ["Running"] * 4 and images(server) == {"web:2"})


async def test_pods_crash_on_command(server: APIServer) -> None:
    server.create("apps/v1", "deployments", workload("web", 2))
    failure = server.workloads.fail("default/web-*")
    await eventually(lambda: status(server, "deployments").get("availableReplicas", 0) == 0)
    state = server.list("v1", "pods")[0]["status"]["containerStatuses"][0]["state"]
    assert state["waiting"]["reason"] == "CrashLoopBackOff"
    failure.remove()
    await eventually(lambda: status(server, "deployments").get("availableReplicas") == 2)


async def test_deleted_pod_is_replaced(server: APIServer) -> None:
    server.create("apps/v1", "deployments", workload("web", 2))
    first = server.list("v1", "pods")[0]["metadata"]["name"]
    server.delete("v1", "pods", first)
    names = [each["metadata"]["name"] for each in server.list("v1", "pods")]
    assert len(names) == 2
    assert first not in names


async def test_start_takes_its_delay(server: APIServer) -> None:
    server.workloads.delay(start=0.05)
    server.create("apps/v1", "deployments", workload("web", 1))
    assert phases(server) == ["Pending"]
    await eventually(lambda: phases(server) == ["Running"])


async def test_stateful_set_is_ordered(server: APIServer) -> None:
    failure = server.workloads.fail("default/web-1")
    server.create("apps/v1", "statefulsets", workload("web", 3, serviceName="web"))
    assert [each["metadata"]["name"] for each in server.list("v1", "pods")] == ["web-0", "web-1"]
    failure.remove()
    await eventually(lambda: status(server, "statefulsets").get("readyReplicas") == 3)
    update_image(server, "statefulsets", "web:2")
    assert images(server) == {"web:2"}
    found = status(server, "statefulsets")
    assert found["currentRevision"] == found["updateRevision"]
    server.patch("apps/v1", "statefulsets", "web", {"spec": {"replicas": 1}})
    assert [each["metadata"]["name"] for each in server.list("v1", "pods")] == ["web-0"]


async def test_daemon_set_follows_nodes(server: APIServer) -> None:
    server.create("v1", "nodes", {"metadata": {"name": "a"}})
    server.create("apps/v1", "daemonsets", workload("web", None))
    server.create("v1", "nodes", {"metadata": {"name": "b"}})
    assert sorted(each["spec"]["nodeName"] for each in server.list("v1", "pods")) == ["a", "b"]
    update_image(server, "daemonsets", "web:2")
    assert images(server) == {"web:2"}
    assert status(server, "daemonsets")["numberReady"] == 2


async def test_name_in_use_is_told_in_the_status(server: APIServer) -> None:
    server.create("v1", "pods", {"metadata": {"name": "web-0"}, "spec": {"containers": []}})
    server.create("apps/v1", "statefulsets", workload("web", 1, serviceName="web"))
    (failure,) = status(server, "statefulsets")["conditions"]
    assert failure["type"] == "ReplicaFailure"
    assert failure["message"] == 'pods "web-0" already exists'
    server.delete("v1", "pods", "web-0")
    server.patch("apps/v1", "statefulsets", "web", {"metadata": {"labels": {"again": "1"}}})
    assert status(server, "statefulsets")["readyReplicas"] == 1
    assert "conditions" not in status(server, "statefulsets")


async def test_namespace_is_emptied(server: APIServer) -> None:
    server.create("apps/v1", "deployments", workload("web", 2), namespace="shop")
    server.create("batch/v1", "jobs", JOB, namespace="shop")
    server.delete("v1", "namespaces", "shop")
    assert phases(server) == []
    assert all(each["metadata"]["name"] != "shop" for each in server.list("v1", "namespaces"))


JOB: Object = {
    "metadata": {"name": "once"},
    "spec": {
        "completions": 3,
        "parallelism": 2,
        "backoffLimit": 1,
        "template": {
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "job:1"}]},
        },
    },
}


async def test_job_completes(server: APIServer) -> None:
    server.create("batch/v1", "jobs", JOB)
    found = status(server, "jobs", "once", "batch/v1")
    assert found["succeeded"] == 3
    assert found["conditions"][-1]["type"] == "Complete"
    assert phases(server) == ["Succeeded"] * 3


async def test_job_fails_after_its_backoff_limit(server: APIServer) -> None:
    server.workloads.fail("default/once-*")
    server.create("batch/v1", "jobs", JOB)
    found = status(server, "jobs", "once", "batch/v1")
    assert found["failed"] >= 2
    assert found["conditions"][-1]["type"] == "Failed"


async def test_workloads_are_off_by_default() -> None:
    server = APIServer()
    server.create("apps/v1", "deployments", workload("web"))
    assert server.list("apps/v1", "replicasets") == []
    with pytest.raises(TestingError, match=r"use APIServer\(workloads=True\)"):
        _ = server.workloads
