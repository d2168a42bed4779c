"""Users grant only rights that they have, unless they may `escalate` or `bind` roles."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from aioinformer.testing import APIServer
from tests.testing.client import MERGE, Answer, APIClient

from .test_authorization import ADA, RBAC, grant, rule

Object = dict[str, Any]
GROUP = "rbac.authorization.k8s.io"
ROLES, BINDINGS = (f"/apis/{RBAC}/namespaces/default/{plural}" for plural in ("roles", "rolebindings"))
CLUSTER_ROLES = f"/apis/{RBAC}/clusterroles"
ADA_MAY = [
    {"apiGroups": [GROUP], "resources": ["*"], "verbs": ["create", "get", "patch", "update"]},
    rule("get", "list"),
    rule("get", resource="configmaps", resourceNames=["a"]),
    {"nonResourceURLs": ["/x/*"], "verbs": ["get"]},
]


@pytest.fixture
async def server() -> AsyncIterator[APIServer]:
    async with APIServer(rbac=True) as running:
        grant(running, ADA_MAY, {"kind": "User", "name": "ada"}, "")
        running.create(
            RBAC, "roles", {"metadata": {"name": "secrets"}, "rules": [rule("get", resource="secrets")]}
        )
        yield running


@pytest.fixture
def api(server: APIServer, http: aiohttp.ClientSession) -> APIClient:
    return APIClient(http, server.url)


async def create(api: APIClient, path: str, body: Object) -> Answer:
    return await api.ask("POST", path, {"metadata": {"name": "new"}, **body}, headers=ADA)


def refusal(resource: str, name: str, *missing: str) -> str:
    who = 'user "ada" (groups=["system:authenticated"])'
    why = f"{who} is attempting to grant RBAC permissions not currently held:"
    return "\n".join([f'{resource}.{GROUP} "{name}" is forbidden: {why}', *missing])


@pytest.mark.parametrize(
    ("rules", "missing"),
    [
        ([], []),
        ([rule("get", "list")], []),
        ([rule("get", resource="configmaps", resourceNames=["a"])], []),
        ([{"nonResourceURLs": ["/x/y"], "verbs": ["get"]}], []),
        (
            [rule("get", "delete", "watch")],
            ['{APIGroups:[""], Resources:["pods"], Verbs:["delete" "watch"]}'],
        ),
        ([rule("*")], ['{APIGroups:[""], Resources:["pods"], Verbs:["*"]}']),
        (
            [rule("get", resource="pods/log"), rule("get", resource="configmaps")],
            [
                '{APIGroups:[""], Resources:["configmaps"], Verbs:["get"]}',
                '{APIGroups:[""], Resources:["pods/log"], Verbs:["get"]}',
            ],
        ),
        (
            [rule("get", resource="configmaps", resourceNames=["a", "b"])],
            ['{APIGroups:[""], Resources:["configmaps"], ResourceNames:["b"], Verbs:["get"]}'],
        ),
        (
            [{"nonResourceURLs": ["/y"], "verbs": ["get", "post"]}],
            ['{NonResourceURLs:["/y"], Verbs:["get"]}', '{NonResourceURLs:["/y"], Verbs:["post"]}'],
        ),
    ],
)
async def test_new_role_has_only_rights_of_its_creator(
    api: APIClient, rules: list[Object], missing: list[str]
) -> None:
    answer = await create(api, CLUSTER_ROLES, {"rules": rules})
    assert answer.status == (403 if missing else 201)
    if missing:
        assert answer.body["message"] == refusal("clusterroles", "new", *missing)


async def test_changed_role_has_only_rights_of_the_user(api: APIClient) -> None:
    async def patch(change: Object) -> Answer:
        return await api.ask("PATCH", f"{ROLES}/secrets", change, content_type=MERGE, headers=ADA)

    missing = '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'
    labelled = await patch({"metadata": {"labels": {"a": "b"}}})
    assert (labelled.status, labelled.body["message"]) == (403, refusal("roles", "secrets", missing))
    assert (await patch({"metadata": {"finalizers": ["a.b/c"]}})).status == 200
    assert (await patch({"rules": [rule("get")]})).status == 200


async def test_binding_grants_only_rights_of_its_creator(api: APIClient, server: APIServer) -> None:
    def binding(kind: str, name: str) -> Object:
        subject = {"kind": "User", "name": "bob"}
        return {"roleRef": {"apiGroup": GROUP, "kind": kind, "name": name}, "subjects": [subject]}

    missing = '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'
    refused = await create(api, BINDINGS, binding("Role", "secrets"))
    assert (refused.status, refused.body["message"]) == (403, refusal("rolebindings", "new", missing))
    assert (await create(api, BINDINGS, binding("Role", "nope"))).status == 404
    assert (await create(api, BINDINGS, binding("ClusterRole", "granted"))).status == 201
    may_bind = {"apiGroups": [GROUP], "resources": ["roles"], "verbs": ["bind", "escalate"]}
    grant(server, [may_bind], {"kind": "User", "name": "ada"}, "default")
    later = {"metadata": {"name": "later"}}
    assert (await create(api, BINDINGS, binding("Role", "secrets") | later)).status == 201
    assert (await create(api, ROLES, {"rules": [rule("get", resource="nodes")]})).status == 201


async def test_aggregated_role_needs_all_rights(api: APIClient) -> None:
    selector = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    answer = await create(api, CLUSTER_ROLES, {"rules": [], "aggregationRule": selector})
    why = "must have cluster-admin privileges to use the aggregationRule"
    assert answer.body["message"] == f'clusterroles.{GROUP} "new" is forbidden: {why}'
