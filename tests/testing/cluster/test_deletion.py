"""DELETE: policies, warnings and refusals."""

from __future__ import annotations

import pytest

from aioinformer.testing import APIServer, StatusError
from tests.testing.client import APIClient

JOBS = "/apis/batch/v1/namespaces/default/jobs"


@pytest.mark.parametrize(
    ("api_version", "plural", "kind"),
    [("batch/v1", "jobs", "Job"), ("v1", "replicationcontrollers", "ReplicationController")],
)
def test_jobs_and_replication_controllers_orphan_by_default(api_version: str, plural: str, kind: str) -> None:
    server = APIServer()
    for policy, left in ((None, ["web"]), ("Orphan", ["web"]), ("Background", []), ("Foreground", [])):
        owner = server.create(api_version, plural, {"metadata": {"name": "web"}})["metadata"]["uid"]
        reference = {"apiVersion": api_version, "kind": kind, "name": "web", "uid": owner}
        server.create("v1", "pods", {"metadata": {"name": "web", "ownerReferences": [reference]}})
        server.delete(api_version, plural, "web", propagation_policy=policy)
        assert server.list(api_version, plural) == []
        assert [pod["metadata"]["name"] for pod in server.list("v1", "pods")] == left, policy
        server.delete_collection("v1", "pods")


def test_unknown_policy_is_refused() -> None:
    server = APIServer()
    server.create("v1", "pods", {"metadata": {"name": "web"}})
    with pytest.raises(StatusError, match='Unsupported value: "foreground"'):
        server.delete("v1", "pods", "web", propagation_policy="foreground")
    assert server.get("v1", "pods", "web")["metadata"]["name"] == "web"


def test_a_pod_without_remaining_grace_can_get_another_policy() -> None:
    server = APIServer(control_plane=False)
    for node in ("", "node-1"):
        metadata = {"name": "web", "finalizers": ["example.com/held"]}
        server.create("v1", "pods", {"metadata": metadata, "spec": {"nodeName": node}})
        server.delete("v1", "pods", "web", grace_period_seconds=0)
        server.delete("v1", "pods", "web", propagation_policy="Orphan")
        metadata = server.get("v1", "pods", "web")["metadata"]
        assert metadata["finalizers"] == ["example.com/held", "orphan"]
        assert metadata["deletionGracePeriodSeconds"] == 0
        server.patch("v1", "pods", "web", {"metadata": {"finalizers": None}})


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/apis/storage.k8s.io/v1/volumeattributesclasses", "VolumeAttributesClass"),
        ("/apis/storage.k8s.io/v1/storageclasses", "StorageClass"),
        ("/api/v1/namespaces/default/configmaps", "Status"),
    ],
)
async def test_a_delete_answers_with_the_object_or_a_status_as_the_real_server(
    api: APIClient, path: str, kind: str
) -> None:
    obj = {"metadata": {"name": "a"}, "driverName": "example.com", "provisioner": "example.com"}
    assert (await api.post(path, {**obj, "parameters": {"a": "b"}})).status == 201
    assert (await api.ask("DELETE", f"{path}/a")).body["kind"] == kind


async def test_delete_of_a_job_without_a_policy_has_a_warning(api: APIClient, server: APIServer) -> None:
    for body, warned in (
        (None, True),
        ({"orphanDependents": True}, False),
        ({"propagationPolicy": "Orphan"}, False),
        ({"propagationPolicy": "Foreground"}, False),
    ):
        server.create("batch/v1", "jobs", {"metadata": {"name": "web", "finalizers": ["example.com/held"]}})
        answer = await api.delete(f"{JOBS}/web", body)
        assert answer.body["kind"] == "Job"
        warning = answer.headers.get("Warning", "")
        assert warning.startswith('299 - "child pods are preserved by default') == warned, body
        server.patch("batch/v1", "jobs", "web", {"metadata": {"finalizers": None}})
