"""The embedded server as kubelet and workload controllers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import ModuleType
from typing import Any

import pytest

from aioinformer.testing import APIServer, ResourceType, StatusError, TestingError, eventually
from aioinformer.testing.controllers import protection
from aioinformer.testing.storage import codec
from aioinformer.testing.storage.storage import StoredObject
from aioinformer.testing.workloads import owner, pods, volumes
from tests.testing.client import APIClient

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
    return [pod["status"]["phase"] for pod in server.list("v1", "pods")]


def images(server: APIServer) -> set[str]:
    return {pod["spec"]["containers"][0]["image"] for pod in server.list("v1", "pods")}


def status(server: APIServer, plural: str, name: str = "web", group: str = "apps/v1") -> Object:
    content: Object = server.get(group, plural, name)["status"]
    return content


def update_image(server: APIServer, plural: str, image: str) -> None:
    template = {"spec": {"containers": [{"name": "main", "image": image}]}}
    server.patch("apps/v1", plural, "web", {"spec": {"template": template}})


async def test_deployment_makes_a_replica_set_makes_pods(server: APIServer) -> None:
    server.create("apps/v1", "deployments", workload("web", 3))
    assert [replica_set["spec"]["replicas"] for replica_set in server.list("apps/v1", "replicasets")] == [3]
    assert phases(server) == ["Running"] * 3
    deployment_status = status(server, "deployments")
    assert deployment_status["availableReplicas"] == deployment_status["updatedReplicas"] == 3
    assert {condition["type"]: condition["status"] for condition in deployment_status["conditions"]} == {
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
    assert sorted(
        replica_set["spec"]["replicas"] for replica_set in server.list("apps/v1", "replicasets")
    ) == [0, 4]
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
    names = [pod["metadata"]["name"] for pod in server.list("v1", "pods")]
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
    assert [pod["metadata"]["name"] for pod in server.list("v1", "pods")] == ["web-0", "web-1"]
    failure.remove()
    await eventually(lambda: status(server, "statefulsets").get("readyReplicas") == 3)
    update_image(server, "statefulsets", "web:2")
    assert images(server) == {"web:2"}
    set_status = status(server, "statefulsets")
    assert set_status["currentRevision"] == set_status["updateRevision"]
    server.patch("apps/v1", "statefulsets", "web", {"spec": {"replicas": 1}})
    assert [pod["metadata"]["name"] for pod in server.list("v1", "pods")] == ["web-0"]


async def test_daemon_set_follows_nodes(server: APIServer) -> None:
    server.create("v1", "nodes", {"metadata": {"name": "a"}})
    server.create("apps/v1", "daemonsets", workload("web", None))
    server.create("v1", "nodes", {"metadata": {"name": "b"}})
    assert sorted(pod["spec"]["nodeName"] for pod in server.list("v1", "pods")) == ["a", "b"]
    update_image(server, "daemonsets", "web:2")
    assert images(server) == {"web:2"}
    assert status(server, "daemonsets")["numberReady"] == 2


async def test_name_in_use_is_reported_in_the_status(server: APIServer) -> None:
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
    assert all(namespace["metadata"]["name"] != "shop" for namespace in server.list("v1", "namespaces"))


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
    job_status = status(server, "jobs", "once", "batch/v1")
    assert job_status["succeeded"] == 3
    assert job_status["conditions"][-1]["type"] == "Complete"
    assert phases(server) == ["Succeeded"] * 3


async def test_job_fails_after_its_backoff_limit(server: APIServer) -> None:
    server.workloads.fail("default/once-*")
    server.create("batch/v1", "jobs", JOB)
    job_status = status(server, "jobs", "once", "batch/v1")
    assert job_status["failed"] >= 2
    assert job_status["conditions"][-1]["type"] == "Failed"


CRON_JOB: Object = {
    "metadata": {"name": "nightly"},
    "spec": {
        "schedule": "0 3 * * *",
        "successfulJobsHistoryLimit": 2,
        "jobTemplate": {"spec": {"template": JOB["spec"]["template"]}},
    },
}


async def test_cron_job_makes_a_job_on_command(server: APIServer) -> None:
    server.create("batch/v1", "cronjobs", CRON_JOB)

    def succeeded() -> list[str]:
        jobs = server.list("batch/v1", "jobs")
        return [job["metadata"]["name"] for job in jobs if (job["status"] or {}).get("succeeded")]

    names = [server.workloads.fire("default/nightly") for _ in range(3)]
    assert len(set(names)) == 3
    await eventually(lambda: succeeded() == sorted(names)[1:])
    assert "active" not in status(server, "cronjobs", "nightly", "batch/v1")
    assert len(phases(server)) == 2


@pytest.mark.parametrize(("policy", "made"), [("Allow", 2), ("Forbid", 1), ("Replace", 1)])
async def test_cron_job_follows_its_concurrency_policy(server: APIServer, policy: str, made: int) -> None:
    server.workloads.delay(run=60)
    spec = {**CRON_JOB["spec"], "concurrencyPolicy": policy}
    server.create("batch/v1", "cronjobs", {**CRON_JOB, "spec": spec})
    first, second = (server.workloads.fire("default/nightly") for _ in range(2))
    assert (second == "") == (policy == "Forbid")
    await eventually(lambda: len(status(server, "cronjobs", "nightly", "batch/v1").get("active", ())) == made)
    remaining = {job["metadata"]["name"] for job in server.list("batch/v1", "jobs")}
    assert remaining == {"Allow": {first, second}, "Forbid": {first}, "Replace": {second}}[policy]


async def test_suspended_and_missing_cron_jobs_make_nothing(server: APIServer) -> None:
    server.create("batch/v1", "cronjobs", {**CRON_JOB, "spec": {**CRON_JOB["spec"], "suspend": True}})
    assert server.workloads.fire("default/nightly") == ""
    with pytest.raises(StatusError, match="not found"):
        server.workloads.fire("default/daily")


CLAIM: Object = {
    "metadata": {"name": "data"},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "fast",
        "resources": {"requests": {"storage": "1Gi"}},
    },
}


async def test_stateful_set_keeps_its_claims(server: APIServer) -> None:
    made = workload("web", 2, serviceName="web", volumeClaimTemplates=[CLAIM])
    server.create("apps/v1", "statefulsets", made)
    claims = server.list("v1", "persistentvolumeclaims")
    assert [claim["metadata"]["name"] for claim in claims] == ["data-web-0", "data-web-1"]
    assert [claim["status"]["phase"] for claim in claims] == ["Bound"] * 2
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}}
    assert volume in server.get("v1", "pods", "web-1")["spec"]["volumes"]
    server.patch("apps/v1", "statefulsets", "web", {"spec": {"replicas": 1}})
    server.patch("apps/v1", "statefulsets", "web", {"spec": {"replicas": 2}})
    assert server.list("v1", "persistentvolumeclaims") == claims
    assert phases(server) == ["Running"] * 2


async def test_partition_holds_an_update_back(server: APIServer) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    server.create("apps/v1", "statefulsets", workload("web", 3, serviceName="web", updateStrategy=strategy))
    update_image(server, "statefulsets", "web:2")
    used = [pod["spec"]["containers"][0]["image"] for pod in server.list("v1", "pods")]
    assert used == ["web:1", "web:1", "web:2"]


async def test_pod_waits_for_its_claim(server: APIServer) -> None:
    server.create(
        "v1", "persistentvolumeclaims", {**CLAIM, "spec": {**CLAIM["spec"], "storageClassName": ""}}
    )
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    server.create("v1", "pods", {"metadata": {"name": "web"}, "spec": {"containers": [], "volumes": volumes}})
    pod = server.get("v1", "pods", "web")
    assert pod["status"]["conditions"][0]["reason"] == "Unschedulable"
    for name, size in (("small", "500Mi"), ("large", "5Gi"), ("fitting", "1Gi")):
        volume = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/"}}
        server.create("v1", "persistentvolumes", {"metadata": {"name": name}, "spec": volume})
        assert phases(server) == (["Pending"] if name == "small" else ["Running"])
    assert server.get("v1", "persistentvolumeclaims", "data")["spec"]["volumeName"] == "large"
    available = [obj["status"]["phase"] for obj in server.list("v1", "persistentvolumes")]
    assert sorted(available) == ["Available", "Available", "Bound"]


async def test_provisioned_volume_goes_with_its_claim(server: APIServer) -> None:
    server.create("v1", "persistentvolumeclaims", CLAIM)
    (volume,) = server.list("v1", "persistentvolumes")
    assert volume["spec"]["claimRef"]["name"] == "data"
    assert volume["spec"]["capacity"] == {"storage": "1Gi"}
    server.delete("v1", "persistentvolumeclaims", "data")
    assert server.list("v1", "persistentvolumes") == []


async def test_service_has_the_addresses_of_its_ready_pods(server: APIServer) -> None:
    port = {"port": 80, "targetPort": "http"}
    service = {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [port]}}
    server.create("v1", "services", service)
    containers = [{"name": "main", "image": "web:1", "ports": [{"name": "http", "containerPort": 8080}]}]
    server.create("apps/v1", "deployments", workload("web", 2, pod={"containers": containers}))

    def slices() -> list[Object]:
        labels = "kubernetes.io/service-name=web"
        listed: list[Object] = server.list("discovery.k8s.io/v1", "endpointslices", label_selector=labels)
        return listed

    def ready() -> list[bool]:
        (endpoint_slice,) = slices()
        assert [listed["port"] for listed in endpoint_slice["ports"]] == [8080]
        return [endpoint["conditions"]["ready"] for endpoint in endpoint_slice["endpoints"]]

    assert ready() == [True, True]
    failure = server.workloads.fail("default/web-*")
    await eventually(lambda: ready() == [False, False])
    failure.remove()
    await eventually(lambda: ready() == [True, True])
    server.delete("v1", "services", "web")
    assert slices() == []


async def test_workloads_are_off_by_default() -> None:
    server = APIServer()
    server.create("apps/v1", "deployments", workload("web"))
    assert server.list("apps/v1", "replicasets") == []
    with pytest.raises(TestingError, match=r"use APIServer\(workloads=True\)"):
        _ = server.workloads


async def test_ordered_rollout_does_not_block_the_event_loop(server: APIServer, api: APIClient) -> None:
    whole = workload("web", 60, serviceName="web") | {"apiVersion": "apps/v1", "kind": "StatefulSet"}
    await api.post("/apis/apps/v1/namespaces/default/statefulsets", whole)
    seen = {len(server.list("v1", "pods"))}
    while len(server.list("v1", "pods")) < 60:
        await asyncio.sleep(0)
        seen.add(len(server.list("v1", "pods")))
    assert len(seen - {0, 60}) > 2


class Loads:
    """Counts the objects that modules decode."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> None:
        self.count = 0
        for module in modules:
            monkeypatch.setattr(module, "load", self)

    def __call__(self, resource: ResourceType, stored: StoredObject) -> Object:
        self.count += 1
        return codec.load(resource, stored)


async def test_job_reads_each_pod_a_few_times(server: APIServer, monkeypatch: pytest.MonkeyPatch) -> None:
    loads, count = Loads(monkeypatch, owner, pods), 100
    for number in range(5):
        server.create("v1", "nodes", {"metadata": {"name": f"n{number}"}})
    job = {**JOB, "spec": {**JOB["spec"], "completions": count, "parallelism": 2}}
    server.create("batch/v1", "jobs", job)
    assert status(server, "jobs", "once", "batch/v1")["succeeded"] == count
    assert loads.count < 20 * count


async def test_claims_read_each_volume_and_pod_a_few_times(
    server: APIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads, count = Loads(monkeypatch, pods, volumes, protection), 60
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    for number in range(count):
        name = f"data-{number}"
        server.create("v1", "persistentvolumeclaims", {"metadata": {"name": name}, "spec": wanted})
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": name}}
        spec = {"containers": [{"name": "main", "image": "web:1"}], "volumes": [volume]}
        server.create("v1", "pods", {"metadata": {"name": name}, "spec": spec})
    assert phases(server) == ["Running"] * count
    assert server.delete_collection("v1", "persistentvolumeclaims") == count
    server.delete_collection("v1", "pods")
    assert not server.list("v1", "persistentvolumeclaims")
    assert loads.count < 25 * count
