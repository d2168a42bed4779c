"""Request bodies in protobuf, as Go clients send them."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.testing import APIServer, StatusError
from aioinformer.testing.http.encodings import PROTOBUF
from aioinformer.testing.protobuf import read_object
from aioinformer.testing.rules.values import decode_values
from aioinformer.testing.storage import builtin
from tests.objects.protobuf.samples import entry, field
from tests.testing.client import APIClient

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def envelope(kind: str, raw: bytes) -> bytes:
    return b"k8s\x00" + field(1, field(1, "v1") + field(2, kind)) + field(2, raw) + field(3, "")


METADATA = (
    field(1, "a")
    + field(2, "")
    + field(3, "ns")
    + field(7, 0)
    + field(8, b"")
    + field(11, entry("app", "web"))
    + field(13, field(1, "Node") + field(3, "n") + field(4, "u") + field(5, "v1") + field(6, 1))
    + field(14, "x/y")
)


def test_an_object() -> None:
    raw = field(1, METADATA) + field(2, entry("k", "v" * 300)) + field(3, entry("b", b"\xff"))
    assert read_object(envelope("ConfigMap", raw), "v1", "ConfigMap") == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "a",
            "namespace": "ns",
            "labels": {"app": "web"},
            "ownerReferences": [
                {"kind": "Node", "name": "n", "uid": "u", "apiVersion": "v1", "controller": True}
            ],
            "finalizers": ["x/y"],
        },
        "data": {"k": "v" * 300},
        "binaryData": {"b": "/w=="},
    }


def test_zeros_that_go_always_writes_mean_nothing() -> None:
    spec = {
        "replicas": 0,
        "selector": {},
        "template": {
            "spec": {
                "containers": [{"name": "a"}, {}],
                "volumes": [{"name": "v", "emptyDir": {}}],
                "automountServiceAccountToken": False,
                "overhead": {"cpu": "0"},
            }
        },
    }
    deployment = {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "a"}, "spec": spec}
    sent = read_object(PROTOBUF.body(deployment), "apps/v1", "Deployment")
    assert decode_values(builtin.DEPLOYMENTS, sent) == decode_values(builtin.DEPLOYMENTS, deployment)
    service = {
        "kind": "Service",
        "apiVersion": "v1",
        "metadata": {"name": "a"},
        "spec": {"ports": [{"port": 80}]},
    }
    sent = read_object(PROTOBUF.body(service), "v1", "Service")
    assert decode_values(builtin.SERVICES, sent) == decode_values(builtin.SERVICES, service)


def test_object_without_a_kind_has_the_expected_kind() -> None:
    body = b"k8s\x00" + field(2, field(1, field(1, "a")))
    read = read_object(body, "apps/v1", "Deployment")
    assert (read["apiVersion"], read["kind"], read["metadata"]) == ("apps/v1", "Deployment", {"name": "a"})


def test_options_are_of_any_group() -> None:
    body = PROTOBUF.body({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Orphan"})
    of_apps = body.replace(field(1, field(1, "v1") + field(2, "DeleteOptions")),
                           field(1, field(1, "apps/v1") + field(2, "DeleteOptions")))  # fmt: skip
    read = read_object(of_apps, "v1", "DeleteOptions")
    assert read == {"apiVersion": "apps/v1", "kind": "DeleteOptions", "propagationPolicy": "Orphan"}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", 400),
        (b"{}", 400),
        (b"k8s\x00", 400),
        (b"k8s\x00\x0a\xff", 400),
        (b"k8s\x00\x0b", 400),
        (envelope("ConfigMap", field(1, METADATA)[:-1]), 400),
        (envelope("Cave", b""), 415),
    ],
)
def test_invalid_protobuf_is_refused(body: bytes, code: int) -> None:
    with pytest.raises(StatusError) as refused:
        read_object(body, "v1", "ConfigMap")
    assert refused.value.code == code


async def send(api: APIClient, method: str, path: str, obj: dict[str, Any], **query: str) -> Any:
    """Send an object as Go clients do and return the answer."""
    answer = await api.ask(method, path, PROTOBUF.body(obj), content_type=PROTOBUF.media_type, query=query)
    return answer.status, answer.body


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "labels": {"app": "web"}},
    "spec": {"containers": [{"name": "main", "image": "example.com/main"}]},
}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "a"},
    "spec": {
        "replicas": 0,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": POD["spec"]},
    },
}


@pytest.mark.parametrize(("path", "obj"), [(PODS, POD), (DEPLOYMENTS, DEPLOYMENT)])
async def test_json_and_protobuf_bodies_give_the_same_object(
    api: APIClient, path: str, obj: dict[str, Any]
) -> None:
    _, by_protobuf = await send(api, "POST", path, obj, dryRun="All")
    by_json = (await api.post(path, obj, dryRun="All")).body
    for body in (by_protobuf, by_json):
        del body["metadata"]["uid"], body["metadata"]["creationTimestamp"]
    assert by_protobuf == by_json


async def test_objects_are_created_and_replaced(api: APIClient, server: APIServer) -> None:
    status, created = await send(api, "POST", PODS, POD)
    assert (status, created["status"]) == (201, {"phase": "Pending", "qosClass": "BestEffort"})
    status, replaced = await send(
        api, "PUT", f"{PODS}/a", {**created, "metadata": {"name": "a", "labels": {"app": "db"}}}
    )
    assert (status, replaced["metadata"]["labels"]) == (200, {"app": "db"})
    status, _ = await send(api, "POST", "/api/v1/namespaces", {
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}
    })  # fmt: skip
    assert status == 201
    assert server.get("v1", "namespaces", "team")["status"] == {"phase": "Active"}


async def test_subresources_and_options_too(api: APIClient, server: APIServer) -> None:
    await send(api, "POST", DEPLOYMENTS, DEPLOYMENT)
    scale = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "a"},
        "spec": {"replicas": 3},
    }
    status, scaled = await send(api, "PUT", f"{DEPLOYMENTS}/a/scale", scale)
    assert (status, scaled["spec"]) == (200, {"replicas": 3})
    await send(api, "POST", PODS, POD)
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"}, "target": {"name": "node-1"}}
    assert (await send(api, "POST", f"{PODS}/a/binding", binding))[0] == 201
    assert server.get("v1", "pods", "a")["spec"]["nodeName"] == "node-1"
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
    assert (await send(api, "POST", f"{PODS}/a/eviction", eviction))[0] == 201
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "another"}}
    assert (await send(api, "DELETE", f"{DEPLOYMENTS}/a", options))[0] == 409
    assert (await send(api, "DELETE", f"{DEPLOYMENTS}/a", {**options, "preconditions": {}}))[0] == 200


async def test_a_review(api: APIClient) -> None:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    status, reviewed = await send(api, "POST", path, review)
    assert (status, reviewed["status"]["allowed"]) == (201, True)


async def test_requests_that_refuse_protobuf(api: APIClient) -> None:
    answer = await api.ask("PATCH", f"{PODS}/a", PROTOBUF.body(POD), content_type=PROTOBUF.media_type)
    assert answer.status == 415
    body = await api.ask("POST", CONFIGMAPS, b"a: b", content_type="text/plain")
    assert body.status == 415
    assert body.body["message"].endswith(
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )
    assert (await send(api, "POST", CONFIGMAPS, POD))[0] == 400
