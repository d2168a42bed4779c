"""Subresources that connect to kubelets, pods and Services; `docs/conformance.md` compares kubectl's answers."""

from __future__ import annotations

import pytest

from aioinformer.testing import APIServer
from tests.testing.client import APIClient

POD = "/api/v1/namespaces/default/pods/web"


def pod_with(*names: str, node: str = "") -> dict[str, object]:
    spec = {"containers": [{"name": name, "image": "a"} for name in names]}
    return {"metadata": {"name": "web"}, "spec": {**spec, **({"nodeName": node} if node else {})}}


async def test_a_pod_without_a_node_has_no_logs(api: APIClient, server: APIServer) -> None:
    server.create("v1", "pods", pod_with("main"))
    answer = await api.get(f"{POD}/log")
    assert (answer.status, answer.raw) == (200, b"")
    for subresource in ("exec", "attach", "portforward"):
        answer = await api.get(f"{POD}/{subresource}")
        assert (answer.status, answer.body["message"]) == (400, "pod web does not have a host assigned")
    assert (await api.get(f"{POD}/proxy/metrics")).body["message"] == "address not allowed"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "a container name must be specified for pod web, choose one of: [a b]"),
        ("?container=c", "container c is not valid for pod web"),
    ],
)
async def test_a_container_must_be_one_of_the_pods(
    api: APIClient, server: APIServer, query: str, message: str
) -> None:
    server.create("v1", "pods", pod_with("a", "b"))
    answer = await api.get(f"{POD}/log{query}")
    assert (answer.status, answer.body["message"]) == (400, message)


async def test_there_is_no_kubelet_and_no_endpoint(api: APIClient, server: APIServer) -> None:
    server.create("v1", "pods", pod_with("main", node="one"))
    assert (await api.get(f"{POD}/log")).status == 404
    server.create("v1", "nodes", {"metadata": {"name": "one"}})
    for path in (f"{POD}/log", "/api/v1/nodes/one/proxy/metrics"):
        answer = await api.get(path)
        assert answer.status == 500
        assert "cannot connect to the kubelet of node" in answer.body["message"]
    server.create("v1", "services", {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}})
    answer = await api.get("/api/v1/namespaces/default/services/http:web:80/proxy/")
    assert (answer.status, answer.body["message"]) == (503, 'no endpoints available for service "web"')
