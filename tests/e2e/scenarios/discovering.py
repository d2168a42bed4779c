"""Discovery: groups, versions, resources."""

from __future__ import annotations

from ..api import MERGE, Object
from ..recording import AnswerRecorder

GROUPS = (
    "admissionregistration.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "node.k8s.io",
    "resource.k8s.io",
    "apps",
    "batch",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "apiextensions.k8s.io",
)


async def discovery(server: AnswerRecorder) -> None:
    """The documents that clients find resources with."""
    await server.ask("GET", "/api")
    await server.ask("GET", "/apis")
    await server.ask("GET", "/api/v1")
    await server.ask("GET", "/version")
    for path in ("/healthz", "/livez", "/readyz"):
        await server.ask("GET", path)
    for group in GROUPS:
        await server.ask("GET", f"/apis/{group}")
        await server.ask("GET", f"/apis/{group}/v1")


async def reviews(server: AnswerRecorder) -> None:
    """Questions that are put by creating an object."""
    access = "/apis/authorization.k8s.io/v1"
    pods = {"verb": "list", "resource": "pods", "namespace": "default"}
    for spec in (
        {"resourceAttributes": pods},
        {"nonResourceAttributes": {"verb": "get", "path": "/version"}},
    ):
        await server.ask("POST", f"{access}/selfsubjectaccessreviews", {"spec": spec})
    both = {"resourceAttributes": pods, "nonResourceAttributes": {"verb": "get", "path": "/version"}}
    refused: list[Object] = [{"spec": {}}, {"spec": both}, {"kind": "Pod", "apiVersion": "v1"}]
    for odd in refused:
        await server.ask("POST", f"{access}/selfsubjectaccessreviews", odd)
    asked: Object = {"user": "admin", "groups": ["system:masters"], "resourceAttributes": pods}
    await server.ask("POST", f"{access}/subjectaccessreviews", {"spec": asked})
    await server.ask("POST", f"{access}/namespaces/default/localsubjectaccessreviews", {"spec": asked})
    await server.ask("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "unowned"}})
    for method in ("GET", "DELETE"):
        await server.ask(method, f"{access}/selfsubjectaccessreviews")
        await server.ask(method, f"{access}/selfsubjectaccessreviews/a")


async def kinds(server: AnswerRecorder) -> None:
    """Objects of the kinds that few have: which have generations, and what else is filled in."""
    webhook = {
        "name": "a.example.com",
        "clientConfig": {"url": "https://example.com"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "timeoutSeconds": 10,
    }
    mutating = webhook | {"reinvocationPolicy": "Never"}
    admission = "admissionregistration.k8s.io/v1"
    names = {"metadata": {"name": "aioinformer.example.com"}}
    content: Object
    for path, content in (
        (f"{admission}/mutatingwebhookconfigurations", {"webhooks": [mutating]}),
        (f"{admission}/validatingwebhookconfigurations", {"webhooks": [webhook]}),
        ("node.k8s.io/v1/runtimeclasses", {"handler": "runc"}),
        ("resource.k8s.io/v1/deviceclasses", {"spec": {}}),
        ("resource.k8s.io/v1/namespaces/NS/resourceclaims", {"spec": {}}),
        ("resource.k8s.io/v1/namespaces/NS/resourceclaimtemplates", {"spec": {"spec": {}}}),
        ("storage.k8s.io/v1/csidrivers", {"spec": {}}),
        ("storage.k8s.io/v1/csinodes", {"spec": {"drivers": []}}),
        ("storage.k8s.io/v1/namespaces/NS/csistoragecapacities", {"storageClassName": "a"}),
        (
            "storage.k8s.io/v1/volumeattachments",
            {"spec": {"attacher": "a", "nodeName": "b", "source": {"persistentVolumeName": "c"}}},
        ),
        (
            "flowcontrol.apiserver.k8s.io/v1/flowschemas",
            {"spec": {"priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": 100}},
        ),
    ):
        await server.ask("POST", f"/apis/{path}", names | content)
        metadata = {"metadata": {"labels": {"a": "b"}}}
        await server.ask("PATCH", f"/apis/{path}/aioinformer.example.com", metadata, content_type=MERGE)
        if "webhooks" in content:
            await server.ask(
                "PATCH", f"/apis/{path}/aioinformer.example.com", {"webhooks": []}, content_type=MERGE
            )
        await server.ask("DELETE", f"/apis/{path}/aioinformer.example.com")
