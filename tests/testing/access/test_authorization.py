"""`APIServer(rbac=True)`: roles decide what users may do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from aioinformer import Client, ForbiddenError, KubeObject, Resource
from aioinformer.operator import Context, Operator, Owned, Request, owner_reference
from aioinformer.operator.manifests import Installation, manifests
from aioinformer.testing import APIServer, eventually
from tests.testing.client import APIClient

RBAC = "rbac.authorization.k8s.io/v1"
REVIEWS = "/apis/authorization.k8s.io/v1"
PODS = "/api/v1/namespaces/default/pods"
ADA = {"Impersonate-User": "ada"}


@pytest.fixture
async def server() -> AsyncIterator[APIServer]:
    async with APIServer(rbac=True, seed=1) as running:
        yield running


@pytest.fixture
def api(server: APIServer, http: aiohttp.ClientSession) -> APIClient:
    return APIClient(http, server.url)


def grant(server: APIServer, rules: list[dict[str, Any]], subject: dict[str, str], namespace: str) -> None:
    """Bind a subject to a new Role, or, without a namespace, to a new ClusterRole."""
    kind = "Role" if namespace else "ClusterRole"
    metadata = {"name": "granted", **({"namespace": namespace} if namespace else {})}
    server.create(RBAC, f"{kind.lower()}s", {"metadata": metadata, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "granted"}
    server.create(
        RBAC, f"{kind.lower()}bindings", {"metadata": metadata, "roleRef": role, "subjects": [subject]}
    )


def rule(*verbs: str, resource: str = "pods", **more: Any) -> dict[str, Any]:
    return {"apiGroups": [""], "resources": [resource], "verbs": [*verbs], **more}


async def test_a_user_without_a_role_is_refused(api: APIClient) -> None:
    assert (await api.get(PODS)).status == 200
    refused = await api.get(PODS, ADA)
    assert (refused.status, refused.body["message"]) == (
        403,
        'pods is forbidden: User "ada" cannot list resource "pods" in API group "" in the namespace "default"',
    )
    assert (await api.get("/api/v1/namespaces/a", ADA)).body["message"] == (
        'namespaces "a" is forbidden: User "ada" cannot get resource "namespaces" in API group "" in the namespace "a"'
    )
    assert (await api.get("/metrics", ADA)).status == 403
    assert (await api.get("/version", ADA)).status == 200
    assert (await api.get(PODS, {"Authorization": "Bearer nonsense"})).status == 401


@pytest.mark.parametrize(
    "subject",
    [
        {"kind": "User", "name": "system:serviceaccount:team:robot"},
        {"kind": "Group", "name": "system:serviceaccounts:team"},
        {"kind": "ServiceAccount", "name": "robot", "namespace": "team"},
    ],
)
async def test_a_role_permits_in_its_namespace(
    api: APIClient, server: APIServer, subject: dict[str, str]
) -> None:
    grant(server, [rule("list")], subject, "default")
    robot = {"Impersonate-User": "system:serviceaccount:team:robot"}
    assert (await api.get(PODS, robot)).status == 200
    assert (await api.get("/api/v1/pods", robot)).status == 403
    assert (await api.get(f"{PODS}/a", robot)).status == 403


async def test_a_cluster_role_permits_everywhere_and_can_be_aggregated(
    api: APIClient, server: APIServer
) -> None:
    labels = {"example.com/part": "true"}
    server.create(
        RBAC, "clusterroles", {"metadata": {"name": "part", "labels": labels}, "rules": [rule("list")]}
    )
    server.create(
        RBAC,
        "clusterroles",
        {
            "metadata": {"name": "whole"},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": labels}]},
        },
    )
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "whole"}
    subjects = [{"kind": "User", "name": "ada"}]
    binding = {"metadata": {"name": "ada"}, "roleRef": role, "subjects": subjects}
    server.create(RBAC, "clusterrolebindings", binding)
    assert (await api.get("/api/v1/pods", ADA)).status == 200
    server.delete(RBAC, "clusterrolebindings", "ada")
    assert (await api.get("/api/v1/pods", ADA)).status == 403


async def test_cluster_roles_that_aggregate_each_other_have_the_rules_of_both(
    api: APIClient, server: APIServer
) -> None:
    labels = {"example.com/part": "true"}
    selector = {"clusterRoleSelectors": [{"matchLabels": labels}]}
    for name, verb in (("a", "get"), ("b", "list")):
        metadata = {"name": name, "labels": labels}
        role = {"metadata": metadata, "rules": [rule(verb)], "aggregationRule": selector}
        server.create(RBAC, "clusterroles", role)
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "a"}
    binding = {"roleRef": reference, "subjects": [{"kind": "User", "name": "ada"}]}
    server.create(RBAC, "clusterrolebindings", {"metadata": {"name": "ada"}, **binding})
    assert (await api.get("/api/v1/pods", ADA)).status == 200
    assert (await api.get("/api/v1/nodes", ADA)).status == 403


async def test_an_apply_that_creates_needs_create(api: APIClient, server: APIServer) -> None:
    grant(server, [rule("patch", resource="configmaps")], {"kind": "User", "name": "ada"}, "default")
    path = "/api/v1/namespaces/default/configmaps/a"
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}

    async def apply() -> int:
        headers = {**ADA, "Content-Type": "application/apply-patch+yaml"}
        answer = await api.ask("PATCH", f"{path}?fieldManager=tests", applied, headers=headers)
        return answer.status

    assert await apply() == 403
    server.create("v1", "configmaps", {"metadata": {"name": "a"}})
    assert await apply() == 200


async def test_impersonation_needs_a_right(api: APIClient, server: APIServer) -> None:
    server.users["token"] = "ada"
    ada = {"Authorization": "Bearer token"}
    assert (await api.get(PODS, {**ada, "Impersonate-User": "bob"})).status == 403
    rules = [rule("impersonate", resource="users", resourceNames=["bob"])]
    grant(server, rules, {"kind": "User", "name": "ada"}, "")
    refused = await api.get(PODS, {**ada, "Impersonate-User": "bob"})
    assert 'User "bob" cannot list' in refused.body["message"]


async def test_reviews_answer_by_roles(api: APIClient, server: APIServer) -> None:
    grant(server, [rule("get", resource="pods/log")], {"kind": "User", "name": "ada"}, "default")

    async def review(kind: str, verb: str, headers: dict[str, str], **spec: Any) -> Any:
        attributes = {"verb": verb, "resource": "pods", "subresource": "log", "namespace": "default"}
        asked = {"spec": {"resourceAttributes": attributes, **spec}}
        return (await api.ask("POST", f"{REVIEWS}/{kind}", asked, headers=headers)).body["status"]

    reason = 'RBAC: allowed by RoleBinding "granted/default" of Role "granted" to User "ada"'
    allowed = {"allowed": True, "reason": reason}
    assert await review("selfsubjectaccessreviews", "get", ADA) == allowed
    assert await review("selfsubjectaccessreviews", "list", ADA) == {"allowed": False}
    assert await review("subjectaccessreviews", "get", {}, user="ada") == allowed
    assert await review("subjectaccessreviews", "get", {}, user="bob") == {"allowed": False}
    asked = {"spec": {"namespace": "default"}}
    answer = await api.ask("POST", f"{REVIEWS}/selfsubjectrulesreviews", asked, headers=ADA)
    rules = answer.body["status"]["resourceRules"]
    assert rule("get", resource="pods/log") in rules
    assert not any("*" in granted["verbs"] for granted in rules)


def copies() -> Operator:
    """Return an operator that applies a Secret for each ConfigMap."""
    operator = Operator("copies", events=False)

    @operator.controller("configmaps", owns=[Owned("secrets", verbs=("create", "patch"))])
    async def reconcile(request: Request[KubeObject], context: Context) -> None:
        if (config := request.object) is not None:
            owners = [owner_reference(config)]
            metadata = {"name": config.name, "namespace": config.namespace, "ownerReferences": owners}
            await context.resource("secrets").apply({"metadata": metadata})

    return operator


async def robot_of(api: APIClient, server: APIServer, operator: Operator) -> tuple[str, list[dict[str, Any]]]:
    """Install an operator's manifests; return a token of its ServiceAccount, and its roles."""
    installation = Installation(target="copies:operator", name="copies", image="copies:1")
    kinds = {
        resource_type.kind: resource_type
        for resource_type in server.cluster.registry
        if resource_type.api_version != "autoscaling/v1"
    }
    roles: list[dict[str, Any]] = []
    for obj in manifests(operator, installation):
        made = server.create(obj["apiVersion"], kinds[obj["kind"]].plural, obj)
        roles += [made] if obj["kind"] in ("Role", "ClusterRole") else []
    account = f"/api/v1/namespaces/{installation.home}/serviceaccounts/copies/token"
    issued = await api.post(account, {"spec": {}})
    return issued.body["status"]["token"], roles


async def test_an_operator_runs_with_its_derived_rights_alone(api: APIClient, server: APIServer) -> None:
    operator = copies()
    token, _ = await robot_of(api, server, operator)
    server.create("v1", "configmaps", {"metadata": {"name": "settings"}})
    async with Client.from_url(server.url, token) as robot, operator.running(robot):
        await eventually(lambda: "default/settings" in server.snapshot("v1", "secrets"))
        with pytest.raises(ForbiddenError, match="cannot list resource"):
            await Resource(robot, "pods", KubeObject).list("default")
    assert {request.user for request in server.requests if request.resource == "secrets"} == {
        "system:serviceaccount:copies:copies"
    }


async def test_an_operator_without_one_of_its_rules_is_refused(api: APIClient, server: APIServer) -> None:
    operator = copies()
    token, roles = await robot_of(api, server, operator)
    for role in roles:
        role["rules"] = [kept for kept in role["rules"] if "secrets" not in kept.get("resources", ())]
        server.update(role["apiVersion"], f"{role['kind'].lower()}s", role)
    server.create("v1", "configmaps", {"metadata": {"name": "settings"}})
    async with Client.from_url(server.url, token) as robot, operator.running(robot):
        await eventually(
            lambda: any(
                request.status == 403 and request.resource == "secrets" for request in server.requests
            )
        )
    assert not server.list("v1", "secrets")
