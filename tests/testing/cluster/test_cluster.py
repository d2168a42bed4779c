"""The rules for creating and changing objects, without a server."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.testing import ResourceType, StatusError
from aioinformer.testing.apply.patches import merge_patch
from aioinformer.testing.cluster.cluster import Cluster
from aioinformer.testing.cluster.options import WriteOptions
from aioinformer.testing.objects import Object
from aioinformer.testing.storage.builtin import BUILTIN, NAMESPACES, PODS
from aioinformer.testing.storage.codec import load

KINDS = {resource.kind: resource for resource in BUILTIN}
CONFIGMAPS, SECRETS, LEASES = KINDS["ConfigMap"], KINDS["Secret"], KINDS["Lease"]
DEPLOYMENTS = KINDS["Deployment"]
CAVES = ResourceType("example.com", "v1", "caves", "Cave")
STATUS = WriteOptions(subresource="status")


@pytest.fixture
def cluster() -> Cluster:
    made = Cluster(seed=1, clock=lambda: 1_700_000_000.0)
    made.registry.add(CAVES)
    return made


def create(
    cluster: Cluster, resource: ResourceType, obj: Object, options: WriteOptions | None = None
) -> Object:
    if resource is CAVES:
        obj = {"apiVersion": "example.com/v1", "kind": "Cave", **obj}
    return load(resource, cluster.create(resource, "default", obj, options or WriteOptions()))


def refusal(code: int, reason: str) -> Any:
    return pytest.raises(StatusError, match=f"^{code} {reason}")


def test_a_new_object_gets_its_metadata(cluster: Cluster) -> None:
    pod = create(
        cluster, PODS, {"metadata": {"name": "a", "uid": "mine", "generation": 9, "labels": {}}, "spec": {}}
    )
    metadata = pod["metadata"]
    assert metadata.pop("uid") not in ("", "mine")
    assert metadata == {
        "name": "a",
        "namespace": "default",
        "resourceVersion": str(cluster.resource_version),
        "generation": 1,
        "creationTimestamp": "2023-11-14T22:13:20Z",
    }
    assert (pod["kind"], pod["apiVersion"], pod["status"]) == (
        "Pod",
        "v1",
        {"phase": "Pending", "qosClass": "BestEffort"},
    )


def test_the_object_given_is_not_changed(cluster: Cluster) -> None:
    obj: Object = {"metadata": {"name": "a"}, "stringData": {"k": "v"}}
    secret = create(cluster, SECRETS, obj)
    assert obj == {"metadata": {"name": "a"}, "stringData": {"k": "v"}}
    assert (secret["data"], secret["type"]) == ({"k": "dg=="}, "Opaque")
    assert "stringData" not in secret


def test_names_are_generated(cluster: Cluster) -> None:
    names = {
        create(cluster, PODS, {"metadata": {"generateName": "web-"}})["metadata"]["name"] for _ in range(20)
    }
    assert len(names) == 20
    assert all(name.startswith("web-") and len(name) == 9 for name in names)
    long = create(cluster, PODS, {"metadata": {"generateName": "x" * 80}})
    assert len(long["metadata"]["name"]) == 63


def test_a_seed_makes_names_and_uids_repeatable() -> None:
    first, second = (create(Cluster(seed=7), PODS, {"metadata": {"generateName": "a-"}}) for _ in range(2))
    assert first["metadata"]["uid"] == second["metadata"]["uid"]
    assert first["metadata"]["name"] == second["metadata"]["name"]


def test_what_is_no_object_is_refused(cluster: Cluster) -> None:
    with refusal(400, "BadRequest"):
        create(cluster, PODS, [])  # type: ignore[arg-type]


def test_the_refusal_of_a_name_reads_as_the_real_one(cluster: Cluster) -> None:
    with pytest.raises(StatusError) as refused:
        create(cluster, NAMESPACES, {"metadata": {"name": "a_b"}})
    assert refused.value.status["details"] == {
        "name": "a_b",
        "kind": "Namespace",
        "causes": [
            {
                "reason": "FieldValueInvalid",
                "message": 'Invalid value: "a_b": a lowercase RFC 1123 label must consist of lower case '
                "alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. "
                "'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
                "field": "metadata.name",
            }
        ],
    }
    with pytest.raises(StatusError, match="must not contain dots"):
        create(cluster, NAMESPACES, {"metadata": {"name": "a.b"}})
    for name in ("x" * 64, "A"):
        with refusal(422, "Invalid"):
            create(cluster, NAMESPACES, {"metadata": {"name": name}})
    roles = KINDS["ClusterRole"]
    assert create(cluster, roles, {"metadata": {"name": "system:cave"}})
    with refusal(422, "Invalid"):
        create(cluster, roles, {"metadata": {"name": "a/b"}})


def test_an_update_replaces_and_counts(cluster: Cluster) -> None:
    pod = create(cluster, PODS, {"metadata": {"name": "a"}, "spec": {"hostname": "x"}})
    pod["spec"] = {"hostname": "y"}
    stored, created = cluster.update(PODS, "default", "a", pod)
    newer = load(PODS, stored)
    assert not created
    assert newer["spec"]["hostname"] == "y"
    assert newer["metadata"]["generation"] == 2
    assert int(newer["metadata"]["resourceVersion"]) == int(pod["metadata"]["resourceVersion"]) + 1
    newer["metadata"]["labels"] = {"a": "b"}
    stored, _ = cluster.update(PODS, "default", "a", newer)
    assert load(PODS, stored)["metadata"]["generation"] == 2


def test_system_metadata_cannot_be_changed(cluster: Cluster) -> None:
    pod = create(cluster, PODS, {"metadata": {"name": "a", "generateName": "g"}})
    stored = cluster.modify(
        PODS,
        "default",
        "a",
        lambda obj: {
            **obj,
            "metadata": {
                "name": "a",
                "creationTimestamp": "2000-01-01T00:00:00Z",
                "generation": 77,
                "selfLink": "/nowhere",
                "annotations": {"a": "b"},
            },
        },
    )
    metadata = load(PODS, stored)["metadata"]
    assert metadata.pop("annotations") == {"a": "b"}
    assert "selfLink" not in metadata
    assert metadata.pop("resourceVersion") != pod["metadata"].pop("resourceVersion")
    assert metadata == pod["metadata"]


def test_changes_of_immutable_metadata_are_refused(cluster: Cluster) -> None:
    pod = create(cluster, PODS, {"metadata": {"name": "a"}})
    for name, value in (
        ("uid", "another"),
        ("deletionTimestamp", "2000-01-01T00:00:00Z"),
        ("deletionGracePeriodSeconds", 0),
    ):
        changed = {**pod, "metadata": {**pod["metadata"], name: value}}
        with pytest.raises(StatusError, match=f"metadata.{name}: Invalid value: .*: field is immutable"):
            cluster.modify(PODS, "default", "a", lambda _, changed=changed: changed)  # type: ignore[misc]
    with pytest.raises(StatusError, match="was undeterminable: name must be provided"):
        cluster.update(PODS, "default", "a", {"spec": {}})


def test_keys_owners_and_finalizers_are_checked(cluster: Cluster) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
    good = {
        "annotations": {"Example.com/A_b": "x" * (2**18 - 15)},
        "ownerReferences": [owner],
        "finalizers": ["orphan", "x.io/y"],
    }
    create(cluster, CONFIGMAPS, {"metadata": {"name": "good", **good}})
    twice = create(cluster, CONFIGMAPS, {"metadata": {"name": "twice", "ownerReferences": [owner, owner]}})
    assert twice["metadata"]["ownerReferences"] == [owner]
    controllers = [{**owner, "controller": True}, {**owner, "name": "q", "uid": "v", "controller": True}]
    bad: list[tuple[Object, str]] = [
        ({"labels": {"a b": "c"}}, "metadata.labels: Invalid value: "),
        ({"labels": {"/b": "c"}}, "prefix part must be non-empty"),
        ({"labels": {"A/b": "c"}}, "prefix part a lowercase RFC 1123 subdomain"),
        ({"labels": {"x" * 64: "c"}}, "name part must be no more than 63 bytes"),
        ({"annotations": {"a b": "c"}}, "metadata.annotations: Invalid value: "),
        (
            {"annotations": {"aé": "x" * (2**18 - 2)}},
            "metadata.annotations: Too long: may not be more than 262144",
        ),
        ({"ownerReferences": [{**owner, "kind": ""}]}, "metadata.ownerReferences.kind: Invalid value: "),
        ({"ownerReferences": ["x"]}, r"^400 .*metadata.ownerReferences of type v1.OwnerReference"),
        (
            {"ownerReferences": [{**owner, "uid": 5}]},
            r"^400 .*OwnerReference.metadata.ownerReferences.uid of",
        ),
        (
            {"ownerReferences": controllers},
            r'Invalid value: \[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u","controller":true},.*\]: Only '
            'one reference can have Controller set to true. Found "true" in references for Pod/p and Pod/q',
        ),
        ({"ownerReferences": [{**owner, "kind": "Event"}]}, "/v1, Kind=Event is disallowed from being"),
        ({"ownerReferences": [{**owner, "apiVersion": "a/b/c"}]}, '"a/b/c": version must not be empty'),
        (
            {"finalizers": ["plain"]},
            r"metadata.finalizers\[0\]: Invalid value: .*neither a standard finalizer",
        ),
        (
            {"finalizers": ["a b"]},
            r"metadata.finalizers: Invalid value: .*metadata.finalizers\[0\]: Invalid value",
        ),
        ({"finalizers": [7]}, r"^400 .*cannot unmarshal number .*metadata.finalizers of type string"),
        ({"finalizers": [None]}, "name part must be non-empty"),
        ({"generation": "x"}, "^400 .*unmarshal string .*ObjectMeta.metadata.generation of type int64"),
        ({"selfLink": 3}, "^400 .*unmarshal number .*ObjectMeta.metadata.selfLink of type string"),
        ({"managedFields": "x"}, r"^400 .*metadata.managedFields of type \[\]v1.ManagedFieldsEntry"),
        ({"creationTimestamp": "yesterday"}, '^400 .*parsing time "yesterday"'),
    ]
    for metadata, message in bad:
        with pytest.raises(StatusError, match=message):
            create(cluster, CONFIGMAPS, {"metadata": {"name": "bad", **metadata}})
    for resource in (CAVES, LEASES, KINDS["PodDisruptionBudget"]):
        create(cluster, resource, {"metadata": {"name": "plain", "finalizers": ["plain"]}})
        with pytest.raises(StatusError, match=r"metadata.finalizers: Invalid value: "):
            create(cluster, resource, {"metadata": {"name": "bad", "finalizers": ["a b"]}})


def test_status_and_spec_are_written_separately(cluster: Cluster) -> None:
    create(cluster, CAVES, {"metadata": {"name": "a"}, "spec": {"x": 1}, "status": {"lost": True}})
    cave = load(CAVES, cluster.get(CAVES, "default", "a"))
    assert "status" not in cave
    both = {
        **cave,
        "spec": {"x": 2},
        "status": {"y": 1},
        "metadata": {**cave["metadata"], "labels": {"a": "b"}},
    }
    status = load(CAVES, cluster.modify(CAVES, "default", "a", lambda _: both, STATUS))
    assert (status["spec"], status["status"]) == ({"x": 1}, {"y": 1})
    assert "labels" not in status["metadata"]
    assert status["metadata"]["generation"] == 1
    both = {**both, "status": {"y": 2}, "metadata": {**status["metadata"]}}
    spec = load(CAVES, cluster.modify(CAVES, "default", "a", lambda _: both))
    assert (spec["spec"], spec["status"]) == ({"x": 2}, {"y": 1})
    assert spec["metadata"]["generation"] == 2


@pytest.mark.parametrize(
    ("kind", "change", "counts"),
    [
        ("Deployment", {"spec": {"paused": True}}, True),
        ("Deployment", {"metadata": {"annotations": {"a": "b"}}}, True),
        ("Deployment", {"metadata": {"labels": {"a": "b"}}}, False),
        ("EndpointSlice", {"ports": [{"port": 80}]}, True),
        ("EndpointSlice", {"metadata": {"labels": {"a": "b"}}}, True),
        ("EndpointSlice", {"metadata": {"annotations": {"a": "b"}}}, False),
        ("PodTemplate", {"template": {"spec": {"hostname": "x"}}}, True),
        ("StatefulSet", {"spec": {"replicas": 2}}, True),
        ("StatefulSet", {"metadata": {"annotations": {"a": "b"}}}, False),
    ],
)
def test_the_generation_counts_what_the_kind_says(
    cluster: Cluster, kind: str, change: Object, counts: bool
) -> None:
    resource = KINDS[kind]
    create(cluster, resource, {"metadata": {"name": "a"}})
    changed = cluster.modify(resource, "default", "a", lambda obj: merge_patch(obj, change))
    assert load(resource, changed)["metadata"]["generation"] == (2 if counts else 1)


APPROVED = {"type": "Approved", "status": "True", "lastUpdateTime": None, "lastTransitionTime": None}


def test_approval_is_written_like_a_status(cluster: Cluster) -> None:
    requests = KINDS["CertificateSigningRequest"]
    obj = create(cluster, requests, {"metadata": {"name": "a"}, "spec": {"signerName": "example.com/s"}})
    approved = {**obj, "spec": {}, "status": {"conditions": [APPROVED]}}
    stored, _ = cluster.update(requests, "", "a", approved, WriteOptions(subresource="approval"))
    result = load(requests, stored)
    assert result["status"] == approved["status"]
    assert result["spec"]["signerName"] == "example.com/s"


def test_everything_can_be_written_at_once(cluster: Cluster) -> None:
    whole = WriteOptions(whole=True)
    pod = create(cluster, PODS, {"metadata": {"name": "a"}, "status": {"phase": "Running"}}, whole)
    assert pod["status"] == {"phase": "Running", "qosClass": "BestEffort"}
    new = {"metadata": {"name": "a"}, "spec": {"hostname": "x"}, "status": {"phase": "Failed"}}
    stored, _ = cluster.update(PODS, "default", "a", new, whole)
    assert load(PODS, stored)["status"] == {"phase": "Failed"}


def test_some_resources_are_created_by_an_update(cluster: Cluster) -> None:
    lease = {"metadata": {"name": "a", "resourceVersion": "5"}, "spec": {"holderIdentity": "me"}}
    stored, created = cluster.update(LEASES, "default", "a", lease)
    assert created
    assert load(LEASES, stored)["spec"] == {"holderIdentity": "me"}
    with refusal(404, "NotFound"):
        cluster.update(CONFIGMAPS, "default", "a", {"metadata": {"name": "a"}})
    for resource in (LEASES, CONFIGMAPS):
        for metadata in ({"name": "a"}, {}):
            with refusal(400, "BadRequest"):
                cluster.update(resource, "default", "b", {"metadata": metadata})
