"""Values of built-in kinds: normalized, refused, or omitted because they are zero."""

from __future__ import annotations

from datetime import UTC, date, datetime
from enum import Enum
from typing import Any
from uuid import UUID

import pytest

from aioinformer.testing import APIServer, ResourceType, StatusError
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.cluster.options import WriteOptions
from aioinformer.testing.objects import Object
from aioinformer.testing.rules.values import decode_values
from aioinformer.testing.storage.builtin import BUILTIN
from aioinformer.testing.storage.codec import load
from tests.testing.client import STRATEGIC, APIClient

KINDS = {resource.kind: resource for resource in BUILTIN if resource.group != "events.k8s.io"}
APPLY = "application/apply-patch+yaml"
DAY = "2024-01-01"
NOON = datetime(2024, 1, 1, 12, 0, 0, 1, UTC)


def read(kind: str, **content: Any) -> Object:
    return decode_values(KINDS[kind], content)


@pytest.mark.parametrize(
    ("kind", "content", "why"),
    [
        (
            "Deployment",
            {"status": [1]},
            "array into Go struct field Deployment.status of type v1.DeploymentStatus",
        ),
        ("Pod", {"status": "x"}, "string into Go struct field Pod.status of type v1.PodStatus"),
        ("Service", {"spec": "x"}, "string into Go struct field Service.spec of type v1.ServiceSpec"),
        ("Node", {"spec": "x"}, "string into Go struct field Node.spec of type v1.NodeSpec"),
        (
            "Event",
            {"involvedObject": "x"},
            "string into Go struct field Event.involvedObject of type v1.ObjectReference",
        ),
        ("Event", {"reason": 5}, "number into Go struct field Event.reason of type string"),
        (
            "Pod",
            {"status": {"conditions": "x"}},
            "string into Go struct field PodStatus.status.conditions of type []v1.PodCondition",
        ),
    ],
)
def test_invalid_object_is_refused(kind: str, content: Object, why: str) -> None:
    with pytest.raises(StatusError) as refused:
        Cluster().create(
            KINDS[kind], "default" if KINDS[kind].namespaced else "", {"metadata": {"name": "a"}, **content}
        )
    assert (refused.value.code, refused.value.message.endswith(why)) == (400, True), refused.value


def test_canonical_values_are_unchanged() -> None:
    condition = {
        "lastTransitionTime": f"{DAY}T00:00:00Z",
        "lastProbeTime": None,
        "type": "A",
        "status": "True",
    }
    for kind, content in (
        ("Pod", {"status": {"conditions": [condition]}}),
        ("Lease", {"spec": {"renewTime": "2024-12-31T23:59:59.123456Z"}}),
        ("Secret", {"data": {"a": "YQ==", "b": "YWI=", "c": "YWJj"}}),
    ):
        assert read(kind, **content).items() >= content.items()


def test_time_on_a_nonexistent_day_is_refused() -> None:
    for day in (f"2023-{month:02}-{day:02}" for month in range(14) for day in range(33)):
        status = {"startTime": f"{day}T00:00:00Z"}
        try:
            date.fromisoformat(day)
        except ValueError:
            with pytest.raises(StatusError, match="out of range"):
                read("Pod", status=status)
        else:
            assert read("Pod", status=status)["status"] == status


class Color(Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("kind", "given", "taken"),
    [
        ("Lease", {"spec": {"renewTime": NOON}}, {"spec": {"renewTime": f"{DAY}T12:00:00.000001Z"}}),
        ("Pod", {"status": {"startTime": NOON}}, {"status": {"startTime": f"{DAY}T12:00:00Z"}}),
        ("Secret", {"data": {"k": b"abc"}}, {"data": {"k": "YWJj"}}),
        ("ConfigMap", {"data": {"k": UUID(int=1)}}, {"data": {"k": str(UUID(int=1))}}),
        ("ConfigMap", {"data": {"k": Color.RED, "l": NOON.date()}}, {"data": {"k": "red", "l": DAY}}),
    ],
)
def test_a_value_of_python_is_read_as_json_has_it(kind: str, given: Object, taken: Object) -> None:
    assert read(kind, **given).items() >= taken.items()


@pytest.mark.parametrize("kind", ["Deployment", "Pod", "Node"])
def test_the_times_of_conditions_are_whole_seconds_of_utc(kind: str) -> None:
    times = {"lastTransitionTime": f"{DAY}T01:00:00.9+01:00", "lastProbeTime": None}
    obj = {"status": {"conditions": [{"type": "A"}, times]}}
    (_, changed) = decode_values(KINDS[kind], obj)["status"]["conditions"]
    assert changed["lastTransitionTime"] == f"{DAY}T00:00:00Z"
    assert obj["status"]["conditions"][1] is times  # as it was
    with pytest.raises(StatusError, match='cannot parse "" as "Z07:00"'):
        decode_values(KINDS[kind], {"status": {"conditions": [{"lastTransitionTime": f"{DAY}T00:00:00"}]}})


def test_custom_resource_without_a_schema_keeps_its_values() -> None:
    odd = {"data": {"k": 5}, "status": {"conditions": [{"lastTransitionTime": "soon"}]}}
    assert decode_values(ResourceType("example.com", "v1", "secrets", "Secret"), odd) == {
        **odd,
        "metadata": {},
    }


async def test_a_time_in_yaml_is_a_text(api: APIClient) -> None:
    maps, yaml = "/api/v1/namespaces/default/configmaps", "application/yaml"
    body = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{day: {DAY}, time: {DAY}T01:00:00Z}}\n"
    made = await api.ask("POST", maps, body.encode(), content_type=yaml)
    assert (made.status, made.body.get("data")) == (201, {"day": DAY, "time": f"{DAY}T01:00:00Z"}), made.body
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    body = (
        "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: a}\n"
        f"spec: {{renewTime: {DAY}T00:00:00.123456Z}}\n"
    )
    made = await api.patch(f"{leases}/a", body.encode(), APPLY, fieldManager="me")
    assert (made.status, made.body.get("spec")) == (201, {"renewTime": f"{DAY}T00:00:00.123456Z"}), made.body


async def test_refusal_depends_on_the_kind_of_write(api: APIClient, server: APIServer) -> None:
    maps = "/api/v1/namespaces/default/configmaps"
    odd = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": 5}}
    assert (await api.post(maps, odd)).status == 400
    server.create("v1", "configmaps", {"metadata": {"name": "a"}})
    for answer, status, begin in (
        (
            await api.put(f"{maps}/a", odd),
            400,
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: ',
        ),
        (await api.patch(f"{maps}/a", {"data": {"k": 5}}), 422, ' "" is invalid: patch: Invalid value: "{'),
        (
            await api.patch(f"{maps}/a", {"data": {"k": 5}}, STRATEGIC),
            422,
            ' "" is invalid: patch: Invalid value: "map[data:map[k:5]]": cannot convert int64 to string',
        ),
        (
            await api.patch(f"{maps}/a", odd, APPLY, fieldManager="me"),
            500,
            "failed to create typed patch object (/a; /v1, Kind=ConfigMap): .data.k: expected string, got "
            "&value.valueUnstructured{Value:5}",
        ),
    ):
        assert (answer.status, answer.body["message"].startswith(begin)) == (status, True), answer.body
    assert "data" not in server.get("v1", "configmaps", "a")
    with pytest.raises(StatusError, match=r"^422 Invalid: "):
        server.patch("v1", "configmaps", "a", {"data": {"k": 5}})


@pytest.mark.parametrize(
    ("kind", "status", "kept"),
    [
        ("Deployment", {"readyReplicas": 0, "conditions": [], "collisionCount": 0}, {"collisionCount": 0}),
        ("Deployment", {"readyReplicas": 1, "terminatingReplicas": None}, {"readyReplicas": 1}),
        ("ReplicaSet", {"readyReplicas": 0}, {"replicas": 0}),
        ("StatefulSet", {"replicas": 2, "currentRevision": ""}, {"replicas": 2, "availableReplicas": 0}),
        (
            "Job",
            {"active": 0, "ready": 0, "uncountedTerminatedPods": {}},
            {"ready": 0, "uncountedTerminatedPods": {}},
        ),
        ("Job", None, {}),
        ("Service", None, {"loadBalancer": {}}),
    ],
)
def test_zeros_of_a_status(kind: str, status: Object | None, kept: Object) -> None:
    cluster, resource = Cluster(), KINDS[kind]
    made = cluster.create(resource, "default", {"metadata": {"name": "a"}})
    changed = cluster.modify(
        resource, "default", "a", lambda obj: {**obj, "status": status}, WriteOptions(subresource="status")
    )
    assert load(resource, changed)["status"] == kept
    if not kept or kept == load(resource, made)["status"]:
        assert changed is made


def test_defaults_apply_on_every_write() -> None:
    server = APIServer()
    server.create("v1", "secrets", {"metadata": {"name": "a"}})
    secret = server.update("v1", "secrets", {"metadata": {"name": "a"}, "stringData": {"a": "b"}})
    assert (secret["type"], secret["data"]) == ("Opaque", {"a": "Yg=="})
    server.create("v1", "services", {"metadata": {"name": "a"}, "spec": {"type": "NodePort"}})
    spec = server.update("v1", "services", {"metadata": {"name": "a"}, "spec": {"ports": []}})["spec"]
    assert (spec["type"], spec["sessionAffinity"], "ports" in spec) == ("ClusterIP", "None", False)
