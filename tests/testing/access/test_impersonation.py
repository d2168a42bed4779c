"""Impersonation."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.testing import APIServer, UnknownNameError
from tests.testing.client import APIClient

WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
PODS = "/api/v1/namespaces/default/pods"


async def who(api: APIClient, **headers: str) -> dict[str, Any]:
    sent = {f"Impersonate-{name}": value for name, value in headers.items()}
    info: dict[str, Any] = (await api.ask("POST", WHO, {}, headers=sent)).body["status"]["userInfo"]
    return info


async def test_a_request_acts_as_another_user(api: APIClient, server: APIServer) -> None:
    assert await who(api, User="ada", Group="devs", Uid="7") == {
        "username": "ada",
        "uid": "7",
        "groups": ["devs", "system:authenticated"],
    }
    request = server.requests[-1]
    assert (request.user, request.impersonator) == ("ada", "system:anonymous")
    extra = {"Impersonate-User": "ada", "Impersonate-Extra-A.example%2fB": "c"}
    answer = await api.ask("POST", WHO, {}, headers=extra)
    assert answer.body["status"]["userInfo"]["extra"] == {"a.example/b": ["c"]}
    assert "system:serviceaccounts:team" in (await who(api, User="system:serviceaccount:team:a"))["groups"]


async def test_rules_and_faults_see_the_impersonated_user(api: APIClient, server: APIServer) -> None:
    server.forbid("list", "pods", matching=lambda request: request.user == "ada")
    server.faults.fail(503, verb="get", matching=lambda request: "devs" in request.groups)
    ada = {"Impersonate-User": "ada", "Impersonate-Group": "devs"}
    assert (await api.get(PODS)).status == 200
    refused = await api.get(PODS, ada)
    assert refused.status == 403
    assert 'User "ada" cannot list resource "pods"' in refused.body["message"]
    assert (await api.get(f"{PODS}/a", ada)).status == 503
    access = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    asked = {"spec": {"resourceAttributes": {"verb": "list", "resource": "pods"}}}
    assert (await api.ask("POST", access, asked, headers=ada)).body["status"] == {"allowed": False}
    assert (await api.post(access, asked)).body["status"] == {"allowed": True}


async def test_who_may_not_impersonate_is_refused(api: APIClient, server: APIServer) -> None:
    rule = server.forbid("impersonate", "users", matching=lambda request: request.name == "root")
    masters = server.forbid(
        "impersonate", "groups", matching=lambda request: request.name == "system:masters"
    )
    refused = await api.get(PODS, {"Impersonate-User": "root"})
    assert refused.status == 403
    assert 'User "system:anonymous" cannot impersonate-on:user-info:list' in refused.body["message"]
    assert (await api.get(PODS, {"Impersonate-User": "ada"})).status == 200
    elevated = {"Impersonate-User": "ada", "Impersonate-Group": "system:masters"}
    assert (await api.get(PODS, elevated)).status == 403
    assert (rule.hits, masters.hits) == (1, 1)
    with pytest.raises(UnknownNameError):
        server.forbid("list", "userextras")


async def test_every_part_of_a_user_needs_permission(api: APIClient, server: APIServer) -> None:
    asked: list[tuple[str, str, str, str]] = []

    def note(request: Any) -> bool:
        if request.verb == "impersonate":
            asked.append((request.resource, request.namespace, request.name, request.subresource))
        return False

    server.forbid(matching=note)
    headers = {
        "Impersonate-User": "system:serviceaccount:team:a",
        "Impersonate-Group": "g",
        "Impersonate-Uid": "7",
        "Impersonate-Extra-Scopes": "read",
    }
    assert (await api.get(PODS, headers)).status == 200
    assert asked == [
        ("serviceaccounts", "team", "a", ""),
        ("groups", "", "g", ""),
        ("uids", "", "7", ""),
        ("userextras", "", "read", "scopes"),
    ]


async def test_a_group_without_a_user_is_refused(api: APIClient) -> None:
    assert (await api.get(PODS, {"Impersonate-Group": "devs"})).status == 400
