"""kubectl against the embedded server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from aioinformer.testing import APIServer
from tests.kubernetes.kubectl import KubectlError, run_kubectl

pytestmark = pytest.mark.kubernetes

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: "app:1", ports: [{containerPort: 80}]}]}
"""

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: caves.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: caves, singular: cave, kind: Cave, shortNames: [cv]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns: [{name: Depth, type: integer, jsonPath: .spec.depth}]
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""

CAVE = """
apiVersion: example.com/v1
kind: Cave
metadata: {name: deep}
spec: {depth: 7}
"""


class Kubectl:
    """kubectl with a kubeconfig for one server and a cache of its own."""

    def __init__(self, binary: Path, server: APIServer, directory: Path) -> None:
        self.server = server
        config = directory / "kubeconfig"
        server.kubeconfig(config)
        self.command: list[str | Path] = [
            binary,
            f"--kubeconfig={config}",
            f"--cache-dir={directory / 'cache'}",
        ]

    async def __call__(self, *args: str, stdin: str | None = None) -> str:
        return await run_kubectl(self.command, *args, stdin=stdin)


@pytest.fixture
async def kubectl(kubernetes_binaries: Path, tmp_path: Path) -> AsyncIterator[Kubectl]:
    async with APIServer(tls=True, token="secret") as server:
        yield Kubectl(kubernetes_binaries / "kubectl", server, tmp_path)


CREATED = """
create deployment web --image=app --replicas=2
create job once --image=app
create cronjob often --image=app --schedule=@daily
create service clusterip web --tcp=80:8080
create role reader --verb=get --resource=pods
create rolebinding reader --role=reader --user=me
create quota few --hard=pods=5
create priorityclass high --value=1000
create poddisruptionbudget web --selector=app=web --min-available=1
create ingress web --rule=a/b=web:80
create serviceaccount me
run app --image=app
expose deployment web --name=exposed --port=80
autoscale deployment web --max=5
cordon node-1
drain node-1
"""
"""Objects that kubectl builds itself; it sends and reads most of them as protobuf."""


async def test_all_that_kubectl_creates(kubectl: Kubectl) -> None:
    kubectl.server.create("v1", "nodes", {"metadata": {"name": "node-1"}})
    for command in CREATED.strip().splitlines():
        await kubectl(*command.split())
    service = kubectl.server.get("v1", "services", "web")
    assert service["spec"]["ports"] == [
        {"name": "80-8080", "protocol": "TCP", "port": 80, "targetPort": 8080}
    ]
    web = kubectl.server.get("apps/v1", "deployments", "web")
    assert (web["spec"]["replicas"], web["spec"]["strategy"]["type"]) == (2, "RollingUpdate")
    container = web["spec"]["template"]["spec"]["containers"][0]
    assert (container["name"], container["imagePullPolicy"]) == ("app", "Always")
    assert kubectl.server.get("v1", "nodes", "node-1")["spec"]["unschedulable"] is True


async def test_apply_of_a_list_and_of_a_kind_that_is_not_there(kubectl: Kubectl) -> None:
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}}
    both = json.dumps({"apiVersion": "v1", "kind": "List", "items": [settings]})
    assert await kubectl("apply", "-f", "-", stdin=both) == "configmap/settings created\n"
    assert await kubectl("apply", "-f", "-", stdin=both) == "configmap/settings unchanged\n"
    with pytest.raises(KubectlError, match=r'no matches for kind "Cave" in version "example\.com/v1"'):
        await kubectl("apply", "-f", "-", stdin=CAVE)


async def test_a_server_with_tls_that_asks_for_no_token(kubernetes_binaries: Path, tmp_path: Path) -> None:
    async with APIServer(tls=True) as server:
        kubectl = Kubectl(kubernetes_binaries / "kubectl", server, tmp_path)
        assert "namespace/default" in await kubectl("get", "namespaces", "-o", "name")


async def test_a_custom_resource(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=DEFINITION)
    await kubectl("wait", "--for=condition=established", "crd/caves.example.com", "--timeout=10s")
    await kubectl("apply", "-f", "-", stdin=CAVE)
    table = (await kubectl("get", "cv")).splitlines()
    assert [line.split()[:2] for line in table] == [["NAME", "DEPTH"], ["deep", "7"]]
    assert "caves" in await kubectl("api-resources", "--api-group=example.com")
    await kubectl("delete", "crd", "caves.example.com")
    with pytest.raises(
        KubectlError, match=r"the server doesn't have a resource|could not find the requested"
    ):
        await kubectl("get", "cv")


async def test_what_kubectl_makes_itself(kubectl: Kubectl) -> None:
    await kubectl("create", "namespace", "team")
    await kubectl("create", "configmap", "settings", "-n", "team", "--from-literal=a=b")
    await kubectl("create", "secret", "generic", "token", "-n", "team", "--from-literal=a=b")
    await kubectl("wait", "--for=jsonpath={.data.a}=b", "configmap/settings", "-n", "team", "--timeout=10s")
    assert kubectl.server.get("v1", "secrets", "token", "team")["data"] == {"a": "Yg=="}
    await kubectl("delete", "namespace", "team")
    assert kubectl.server.snapshot("v1", "configmaps") == {}


async def test_a_node_is_drained(kubectl: Kubectl) -> None:
    kubectl.server.create("v1", "nodes", {"metadata": {"name": "n1"}})
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
    kubectl.server.create("apps/v1", "replicasets", {"metadata": {"name": "r"}})
    kubectl.server.create(
        "v1", "pods", {"metadata": {"name": "a", "ownerReferences": [owner]}, "spec": {"nodeName": "n1"}}
    )
    assert "node/n1 drained" in await kubectl("drain", "n1", "--timeout=20s")
    assert kubectl.server.get("v1", "nodes", "n1")["spec"]["unschedulable"] is True
    assert kubectl.server.snapshot("v1", "pods") == {}


async def test_who_may_do_what(kubectl: Kubectl) -> None:
    assert (await kubectl("auth", "can-i", "list", "pods")).strip() == "yes"
    assert (await kubectl("auth", "can-i", "get", "/version")).strip() == "yes"
    kubectl.server.forbid("list", "pods")
    with pytest.raises(KubectlError, match=r"can-i list pods: $"):  # it says no, on its output
        await kubectl("auth", "can-i", "list", "pods")
    assert "embedded" in await kubectl("auth", "whoami")
    assert "*.*" in await kubectl("auth", "can-i", "--list")
