"""Protobuf answers and requests."""

from __future__ import annotations

from aioinformer.testing.http.encodings import PROTOBUF as ENCODING
from tests.samples import configmap

from ...testing.protobuf.reading import AS_PARTIAL, AS_PARTIAL_LIST, PROTOBUF
from ..api import MERGE, Object
from ..clusters import pod_manifest
from ..definitions import definition
from ..recording import AnswerRecorder
from .common import CONFIGMAPS, DEPLOYMENTS, LEASES, PODS, catch_up, version_of

OR_JSON = f"{PROTOBUF},application/json"
METADATA_OR_JSON = ",".join([PROTOBUF + AS_PARTIAL, f"application/json{AS_PARTIAL}", "application/json"])
AS_TABLE = ";as=Table;g=meta.k8s.io;v=v1"
STREAM = {
    "sendInitialEvents": "true",
    "resourceVersionMatch": "NotOlderThan",
    "allowWatchBookmarks": "true",
}
FUTURE = str(10**9)


async def answers_in_protobuf(server: AnswerRecorder) -> None:
    """Objects, lists, errors and what writes bring, as different headers ask for them."""
    first = version_of(
        await server.ask("POST", CONFIGMAPS, configmap("a", labels={"app": "web"}, k="1"), accept=PROTOBUF)
    )
    await server.ask("POST", CONFIGMAPS, configmap("b"), accept=OR_JSON)
    await server.ask("POST", PODS, pod_manifest("web", node="node-1"), accept=PROTOBUF)
    for accept in (
        PROTOBUF, OR_JSON, f"application/json,{PROTOBUF}", f"*/*,{PROTOBUF}", f"{PROTOBUF};q=0.5,application/json",
        f"{PROTOBUF};stream=watch", f"{PROTOBUF};stream=x", f"text/html,{PROTOBUF}", "application/*",
        f"{PROTOBUF}{AS_TABLE}", f"{PROTOBUF}{AS_TABLE},application/json{AS_TABLE}", f"{PROTOBUF};as=Nonsense",
        PROTOBUF + AS_PARTIAL, PROTOBUF + AS_PARTIAL_LIST, METADATA_OR_JSON,
    ):  # fmt: skip
        for path in (
            f"{CONFIGMAPS}/a",
            CONFIGMAPS,
            f"{CONFIGMAPS}/absent",
            "/api/v1/namespaces/NS/cauldrons",
        ):
            await server.ask("GET", path, accept=accept)
    await server.ask("GET", PODS, accept=PROTOBUF)
    await server.ask("GET", CONFIGMAPS, query={"limit": "1"}, accept=PROTOBUF)
    await server.ask("GET", CONFIGMAPS, query={"limit": "1"}, accept=PROTOBUF + AS_PARTIAL_LIST)
    await server.ask("GET", CONFIGMAPS, query={"labelSelector": "none"}, accept=PROTOBUF + AS_PARTIAL_LIST)
    await server.ask("GET", CONFIGMAPS, query={"resourceVersion": FUTURE}, accept=PROTOBUF)
    await server.ask("PATCH", f"{CONFIGMAPS}/a", {"data": {"k": "2"}}, content_type=MERGE, accept=PROTOBUF)
    await server.ask("PUT", f"{CONFIGMAPS}/a", configmap("other"), accept=PROTOBUF)
    await catch_up(server)
    for accept in (PROTOBUF, OR_JSON, METADATA_OR_JSON, PROTOBUF + AS_PARTIAL_LIST):
        await server.watch_all(
            (CONFIGMAPS, {"resourceVersion": first}),
            (CONFIGMAPS, {"resourceVersion": first, "labelSelector": "app=web"}),
            (CONFIGMAPS, STREAM),
            (PODS, STREAM),
            (CONFIGMAPS, STREAM | {"resourceVersion": FUTURE, "timeoutSeconds": "5"}),
            (CONFIGMAPS, {"resourceVersion": "abc"}),
            accept=accept,
        )
    await server.ask("DELETE", f"{CONFIGMAPS}/a", accept=PROTOBUF)
    await server.ask("DELETE", f"{PODS}/web", accept=PROTOBUF + AS_PARTIAL)
    await server.ask("DELETE", CONFIGMAPS, accept=PROTOBUF)


async def metadata_of_custom_resources_in_protobuf(server: AnswerRecorder) -> None:
    """Which has protobuf, though they have not."""
    group = f"{server.namespace}.proto.example.com"
    relics = f"/apis/{group}/v1/namespaces/NS/relics"
    await server.define(definition(group, "Relic"))
    relic: Object = {
        "apiVersion": f"{group}/v1",
        "kind": "Relic",
        "metadata": {"name": "a"},
        "spec": {"z": 1},
    }
    await server.ask("POST", relics, relic)
    for accept in (PROTOBUF, OR_JSON, PROTOBUF + AS_PARTIAL, PROTOBUF + AS_PARTIAL_LIST, "application/*"):
        for path in (relics, f"{relics}/absent"):
            await server.ask("GET", path, accept=accept)
    await server.ask("GET", f"{relics}/a", accept=PROTOBUF + AS_PARTIAL)
    await server.ask("GET", relics)
    await server.watch_all((relics, STREAM), accept=METADATA_OR_JSON)
    await server.watch_all((relics, STREAM), accept=OR_JSON)
    await server.ask("DELETE", f"{relics}/a", accept=PROTOBUF + AS_PARTIAL)


async def bodies_in_protobuf(server: AnswerRecorder) -> None:
    """Requests of Go clients; their zeros and empty texts mean nothing."""

    async def send(
        method: str, path: str, obj: Object, *, accept: str = "application/json", **query: str
    ) -> None:
        body = ENCODING.body(obj)
        await server.ask(method, path, body, query, content_type=PROTOBUF, accept=accept)

    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod_manifest("a")["spec"]}
    deployment = {
        "metadata": {"name": "a"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    await send("POST", CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", **configmap("a", k="1")})
    await send(
        "POST", CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", **configmap("b")}, accept=PROTOBUF
    )
    await send("POST", CONFIGMAPS, {"apiVersion": "v1", "kind": "Secret", **configmap("c")})
    await send("POST", CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", **configmap("UPPER")})
    await send("PUT", f"{CONFIGMAPS}/a", {"apiVersion": "v1", "kind": "ConfigMap", **configmap("a", k="2")})
    await send(
        "PUT", f"{CONFIGMAPS}/b", {"apiVersion": "v1", "kind": "ConfigMap", **configmap("b")}
    )  # no change
    await send("POST", PODS, {"apiVersion": "v1", "kind": "Pod", **pod_manifest("a")})
    await send("POST", DEPLOYMENTS, {"apiVersion": "apps/v1", "kind": "Deployment", **deployment})
    await send(
        "POST", LEASES, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"}}
    )
    await send("POST", "/api/v1/namespaces/NS/secrets", {"apiVersion": "v1", "kind": "Secret",
               "metadata": {"name": "a"}, "data": {"k": "AA==", "empty": ""}})  # fmt: skip
    await send("POST", "/api/v1/namespaces/NS/services", {"apiVersion": "v1", "kind": "Service",
               "metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}})  # fmt: skip
    for body in (
        b"",
        b"{}",
        b"k8s\x00",
        b"k8s\x00\x0a\xff",
        ENCODING.body({"apiVersion": "v1", "kind": "ConfigMap"}),
    ):
        await server.ask("POST", CONFIGMAPS, body, content_type=PROTOBUF)
    await server.ask("POST", CONFIGMAPS, b"\x00", content_type="text/plain")
    await server.ask("PATCH", f"{CONFIGMAPS}/a", b"", content_type=PROTOBUF)
    options: Object = {"apiVersion": "v1", "kind": "DeleteOptions"}
    await send("DELETE", f"{CONFIGMAPS}/a", options | {"dryRun": ["All"]})
    await send("DELETE", f"{CONFIGMAPS}/a", options | {"preconditions": {"resourceVersion": "1"}})
    await send("DELETE", f"{CONFIGMAPS}/a", options | {"propagationPolicy": "Background"}, accept=PROTOBUF)
    await server.ask("DELETE", f"{CONFIGMAPS}/b", b"no options", content_type=PROTOBUF)
    scale: Object = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "a"},
        "spec": {"replicas": 3},
    }
    await send("PUT", f"{DEPLOYMENTS}/a/scale", scale, accept=PROTOBUF)
    binding: Object = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "a"},
        "target": {"name": "node-1"},
    }
    await send("POST", f"{PODS}/a/binding", binding, accept=PROTOBUF)
    eviction: Object = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}}
    await send("POST", f"{PODS}/a/eviction", eviction, dryRun="All")
    review: Object = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    review["spec"] = {"resourceAttributes": {"verb": "get", "resource": "pods"}}
    await send("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review, accept=PROTOBUF)
