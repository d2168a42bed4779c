"""kubectl against the embedded server: what people try first."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.kubernetes.kubectl import KubectlError, run_kubectl

from .clusters import EmbeddedCluster, pod_manifest
from .definitions import CAVE_DEFINITION, cave
from .processes import Lines, started_program

pytestmark = pytest.mark.kubernetes  # for the binary

Kubectl = Callable[..., Awaitable[str]]

CONFIGMAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, labels: {app: web}}
data: {k: "1"}
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: example.com/main}]}
"""


@pytest.fixture
def command(kubernetes_binaries: Path, secure: EmbeddedCluster) -> list[str]:
    return [
        str(kubernetes_binaries / "kubectl"),
        f"--kubeconfig={secure.kubeconfig}",
        f"--cache-dir={secure.folder / 'kubectl'}",
        f"--namespace={secure.namespace}",
    ]


@pytest.fixture
def kubectl(command: list[str]) -> Kubectl:
    async def run(*args: str, stdin: str | None = None) -> str:
        return (await run_kubectl(command, *args, stdin=stdin)).strip()

    return run


async def test_apply_get_and_delete(kubectl: Kubectl, secure: EmbeddedCluster) -> None:
    assert await kubectl("apply", "-f", "-", stdin=CONFIGMAP) == "configmap/settings created"
    assert await kubectl("apply", "-f", "-", stdin=CONFIGMAP) == "configmap/settings unchanged"
    changed = CONFIGMAP.replace('"1"', '"2"')
    assert await kubectl("apply", "-f", "-", stdin=changed) == "configmap/settings configured"
    header, row = (await kubectl("get", "configmaps")).splitlines()
    assert header.split() == ["NAME", "DATA", "AGE"]
    assert row.split()[:2] == ["settings", "1"]
    assert await kubectl("get", "cm", "-A", "-l", "app=web", "-o", "name") == "configmap/settings"
    assert await kubectl("get", "cm", "settings", "-o", "jsonpath={.data.k}") == "2"
    assert await kubectl("get", "cm", "--field-selector=metadata.name=other") == ""
    assert 'k: "2"' in await kubectl("get", "cm", "settings", "-o", "yaml")
    assert "'2'" not in await kubectl("diff", "-f", "-", stdin=changed)
    deleted = await kubectl("delete", "-f", "-", stdin=changed)
    assert deleted.startswith('configmap "settings" deleted')
    with pytest.raises(KubectlError, match='configmaps "settings" not found'):
        await kubectl("get", "configmap", "settings")
    assert secure.server.snapshot("v1", "configmaps", secure.namespace) == {}


async def test_server_side_apply(kubectl: Kubectl) -> None:
    apply = "apply", "--server-side", "-f", "-"
    assert await kubectl(*apply, stdin=CONFIGMAP) == "configmap/settings serverside-applied"
    assert (
        await kubectl(*apply, stdin=CONFIGMAP.replace('"1"', '"2"'))
        == "configmap/settings serverside-applied"
    )
    assert await kubectl("get", "cm", "settings", "-o", "jsonpath={.data.k}") == "2"
    with pytest.raises(KubectlError, match='conflict with "kubectl"'):
        await kubectl(*apply, "--field-manager=other", stdin=CONFIGMAP.replace('"1"', '"3"'))


async def test_server_side_apply_after_client_side_apply(kubectl: Kubectl) -> None:
    more = CONFIGMAP.replace('{k: "1"}', '{k: "1", m: "1"}')
    await kubectl("apply", "-f", "-", stdin=more)
    applied = await kubectl("apply", "--server-side", "-f", "-", stdin=CONFIGMAP.replace('"1"', '"2"'))
    assert applied == "configmap/settings serverside-applied"
    assert await kubectl("get", "cm", "settings", "-o", "jsonpath={.data}") == '{"k":"2"}'
    managers = "jsonpath={.metadata.managedFields[*].manager}"
    assert (await kubectl("get", "cm", "settings", "-o", managers)).split() == [
        "kubectl-last-applied",
        "kubectl",
    ]
    assert await kubectl("apply", "-f", "-", stdin=more) == "configmap/settings configured"
    assert await kubectl("get", "cm", "settings", "-o", "jsonpath={.data}") == '{"k":"1","m":"1"}'


async def test_explain(kubectl: Kubectl) -> None:
    explained = await kubectl("explain", "pods.spec.containers.image")
    assert "Container image name." in explained
    assert "strategy" in await kubectl("explain", "deployments", "--recursive")
    await kubectl("apply", "-f", "-", stdin=json.dumps(CAVE_DEFINITION))
    assert "KIND:       Cave" in await kubectl("explain", "caves.spec")


async def test_tokens_and_other_users(kubectl: Kubectl, secure: EmbeddedCluster) -> None:
    await kubectl("create", "serviceaccount", "robot")
    token = await kubectl("create", "token", "robot")
    name = f"system:serviceaccount:{secure.namespace}:robot"
    config = json.loads(secure.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": token}
    secure.kubeconfig.write_text(json.dumps(config))
    assert name in await kubectl("auth", "whoami")
    other = await kubectl("auth", "whoami", "--as=ada", "--as-group=devs")
    assert "[devs system:authenticated]" in other


async def test_pods_and_deployments(kubectl: Kubectl, secure: EmbeddedCluster) -> None:
    manifest = json.dumps({"apiVersion": "v1", "kind": "Pod", **pod_manifest("web", node="node-1")})
    assert await kubectl("create", "-f", "-", stdin=manifest) == "pod/web created"
    with pytest.raises(KubectlError, match="AlreadyExists"):
        await kubectl("create", "-f", "-", stdin=manifest)
    header, row = (await kubectl("get", "pods", "-o", "wide")).splitlines()
    assert header.split()[:5] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row.split()[:3] == ["web", "0/1", "Pending"]
    assert row.split()[6] == "node-1"
    assert await kubectl("label", "pod", "web", "tier=front") == "pod/web labeled"
    assert await kubectl("annotate", "pod", "web", "note=yes") == "pod/web annotated"
    described = await kubectl("describe", "pod", "web")
    assert "tier=front" in described
    assert "example.com/main" in described
    assert await kubectl("apply", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/web created"
    assert await kubectl("scale", "deployment", "web", "--replicas=3") == "deployment.apps/web scaled"
    assert await kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.replicas}") == "3"
    image = "set", "image", "deployment/web", "main=example.com/main:2"
    assert await kubectl(*image) == "deployment.apps/web image updated"
    assert "example.com/main:2" in await kubectl("describe", "deployments.apps", "web")
    assert "deleted" in await kubectl("delete", "pod", "web", "--timeout=20s")
    assert secure.server.snapshot("v1", "pods", secure.namespace) == {}


async def test_custom_resources(kubectl: Kubectl) -> None:
    await kubectl("apply", "-f", "-", stdin=json.dumps(CAVE_DEFINITION))
    await kubectl("wait", "--for=condition=Established", "crd/caves.example.com", "--timeout=20s")
    assert (
        await kubectl("apply", "-f", "-", stdin=json.dumps(cave("deep", 7)))
        == "cave.example.com/deep created"
    )
    assert (await kubectl("get", "caves")).splitlines()[1].split()[0] == "deep"
    merged = "patch", "cave", "deep", "--type=merge", "-p", '{"spec": {"depth": 8}}'
    assert await kubectl(*merged) == "cave.example.com/deep patched"
    assert await kubectl("get", "caves.v1.example.com", "-o", "jsonpath={.items[*].spec.depth}") == "8"
    assert "depth" in (await kubectl("describe", "cave", "deep")).lower()
    assert "caves" in await kubectl("api-resources", "--api-group=example.com")


async def test_a_namespace_goes_with_what_is_in_it(kubectl: Kubectl) -> None:
    assert await kubectl("create", "namespace", "passing") == "namespace/passing created"
    await kubectl("--namespace=passing", "create", "configmap", "inside", "--from-literal=k=1")
    assert "deleted" in await kubectl("delete", "namespace", "passing", "--timeout=20s")
    assert await kubectl("--namespace=passing", "get", "configmaps") == ""


async def test_an_object_held_by_a_finalizer_is_waited_for(kubectl: Kubectl) -> None:
    held = CONFIGMAP.replace("labels:", "finalizers: [example.com/a], labels:")
    await kubectl("apply", "-f", "-", stdin=held)
    deleting = asyncio.ensure_future(kubectl("delete", "configmap", "settings", "--timeout=20s"))
    await kubectl("wait", "--for=jsonpath={.metadata.deletionTimestamp}", "cm/settings", "--timeout=20s")
    assert not deleting.done()
    await kubectl(
        "patch", "cm", "settings", "--type=json", "-p", '[{"op":"remove","path":"/metadata/finalizers"}]'
    )
    assert "deleted" in await deleting


async def test_get_with_watch_follows(kubectl: Kubectl, command: list[str]) -> None:
    async with watch(command, "get", "configmaps", "-w", "--output-watch-events") as lines:
        await kubectl("apply", "-f", "-", stdin=CONFIGMAP)
        assert (await lines.next()).split() == ["EVENT", "NAME", "DATA", "AGE"]
        assert (await lines.next()).split()[:3] == ["ADDED", "settings", "1"]
        await kubectl("apply", "-f", "-", stdin=CONFIGMAP.replace('"1"', '"2", m: "1"'))
        assert (await lines.next()).split()[:3] == ["MODIFIED", "settings", "2"]
        await kubectl("delete", "configmap", "settings")
        assert (await lines.next()).split()[:3] == ["DELETED", "settings", "2"]


async def test_a_watch_begins_with_what_is_there(kubectl: Kubectl, command: list[str]) -> None:
    await kubectl("apply", "-f", "-", stdin=CONFIGMAP)
    async with watch(command, "get", "configmaps", "--watch") as lines:
        assert (await lines.next()).split() == ["NAME", "DATA", "AGE"]
        assert (await lines.next()).split()[:2] == ["settings", "1"]
        await kubectl("patch", "cm", "settings", "-p", '{"data": {"m": "1"}}')
        assert (await lines.next()).split()[:2] == ["settings", "2"]


async def test_request_without_token_is_refused(kubectl: Kubectl, secure: EmbeddedCluster) -> None:
    config = json.loads(secure.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": "wrong"}
    secure.kubeconfig.write_text(json.dumps(config))
    with pytest.raises(KubectlError, match=r"Unauthorized|must be logged in"):
        await kubectl("get", "pods")


@asynccontextmanager
async def watch(command: list[str], *args: str) -> AsyncIterator[Lines]:
    async with started_program(*command, *args) as process:
        yield process.output
