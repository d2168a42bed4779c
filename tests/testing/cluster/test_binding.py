"""Binding and eviction of pods."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.testing import APIServer
from tests.testing.client import APIClient

PODS = "/api/v1/namespaces/default/pods"


async def test_a_pod_is_bound_and_evicted(api: APIClient, server: APIServer) -> None:
    server.create("v1", "pods", {"metadata": {"name": "a"}, "spec": {}})
    binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n1"}}
    assert (await api.post(f"{PODS}/a/binding", binding, dryRun="Some")).status == 422
    assert (await api.post(f"{PODS}/a/binding", binding, dryRun="All")).status == 201
    assert "nodeName" not in server.get("v1", "pods", "a")["spec"]
    bound = await api.post(f"{PODS}/a/binding", binding)
    assert bound.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "code": 201,
    }
    pod = server.get("v1", "pods", "a")
    assert (pod["spec"]["nodeName"], pod["metadata"]["generation"]) == ("n1", 1)
    assert (await api.post(f"{PODS}/a/binding", binding)).status == 409
    assert (await api.post(f"{PODS}/a/status", {})).status == 405
    assert (await api.post(f"{PODS}/a/eviction", {"metadata": {"name": "a"}})).status == 201
    assert server.snapshot("v1", "pods") == {}


async def test_binding_copies_labels_and_annotations(api: APIClient, server: APIServer) -> None:
    old = {"type": "PodScheduled", "status": "False"}
    status = {"nominatedNodeName": "n2", "conditions": [old, {"type": "Other", "status": "True"}]}
    server.create("v1", "pods", {"metadata": {"name": "a", "labels": {"a": "1", "b": "1"}}, "status": status})
    metadata = {"name": "a", "labels": {"b": "2"}, "annotations": {"c": "3"}}
    assert (
        await api.post(f"{PODS}/a/binding", {"metadata": metadata, "target": {"name": "n1"}})
    ).status == 201
    pod = server.get("v1", "pods", "a")
    assert (pod["metadata"]["labels"], pod["metadata"]["annotations"]) == ({"a": "1", "b": "2"}, {"c": "3"})
    assert [(condition["type"], condition["status"]) for condition in pod["status"]["conditions"]] == [
        ("Other", "True"),
        ("PodScheduled", "True"),
    ]
    assert "nominatedNodeName" not in pod["status"]


@pytest.mark.parametrize(
    ("spec", "metadata", "why"),
    [
        ({"nodeName": "n2"}, {}, 'pod a is already assigned to node "n2"'),
        ({"schedulingGates": [{"name": "x"}]}, {}, "pod a has non-empty .spec.schedulingGates"),
        ({}, {"finalizers": ["example.com/a"]}, "pod a is being deleted, cannot be assigned to a host"),
    ],
)
async def test_pods_that_cannot_be_bound(
    api: APIClient, server: APIServer, spec: dict[str, Any], metadata: dict[str, Any], why: str
) -> None:
    server.create("v1", "pods", {"metadata": {"name": "a", **metadata}, "spec": spec})
    if metadata:
        server.delete("v1", "pods", "a")
    refused = await api.post(f"{PODS}/a/binding", {"metadata": {"name": "a"}, "target": {"name": "n1"}})
    assert refused.status == 409
    assert refused.body["message"] == f'Operation cannot be fulfilled on pods/binding "a": {why}'
