"""Reviews: permissions and users."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer.testing import APIServer, User
from tests.testing.client import APIClient

ACCESS = "/apis/authorization.k8s.io/v1"
IDENTITY = "/apis/authentication.k8s.io/v1"


async def review_access(api: APIClient, kind: str = "selfsubjectaccessreviews", **spec: Any) -> bool:
    answer = await api.post(f"{ACCESS}/{kind}", {"spec": spec})
    assert answer.status == 201
    assert answer.body["spec"] == spec
    is_allowed: bool = answer.body["status"]["allowed"]
    return is_allowed


async def test_what_is_forbidden_is_not_allowed(api: APIClient, server: APIServer) -> None:
    reading = {"verb": "list", "resource": "pods", "namespace": "default"}
    assert await review_access(api, resourceAttributes=reading)
    rule = server.forbid("list", "pods")
    assert not await review_access(api, resourceAttributes=reading)
    assert await review_access(api, resourceAttributes={**reading, "verb": "watch"})
    assert await review_access(api, resourceAttributes={**reading, "resource": "secrets"})
    assert rule.hits == 0
    rule.remove()
    server.forbid(matching=lambda request: request.path == "/version" or request.user == "ada")
    assert not await review_access(api, nonResourceAttributes={"verb": "get", "path": "/version"})
    assert await review_access(api, nonResourceAttributes={"verb": "get", "path": "/healthz"})
    assert not await review_access(api, "subjectaccessreviews", user="ada", resourceAttributes=reading)
    local = "namespaces/default/localsubjectaccessreviews"
    assert await review_access(api, local, user="bob", resourceAttributes=reading)


async def test_self_subject_review_returns_the_user(api: APIClient, server: APIServer) -> None:
    server.users["secret"] = "ada"
    headers = {"Authorization": "Bearer secret"}
    path = f"{IDENTITY}/selfsubjectreviews"
    known = await api.ask("POST", path, {}, headers=headers)
    assert known.body["status"] == {"userInfo": {"username": "ada", "groups": ["system:authenticated"]}}
    server.users["secret"] = User("ada", ("devs",), "7")
    known = await api.ask("POST", path, {}, headers=headers)
    groups = ["devs", "system:authenticated"]
    assert known.body["status"]["userInfo"] == {"username": "ada", "uid": "7", "groups": groups}
    unknown = (await api.post(path, {})).body["status"]["userInfo"]
    assert unknown == {"username": "system:anonymous", "groups": ["system:unauthenticated"]}
    path = f"{IDENTITY}/tokenreviews"
    taken = (await api.post(path, {"spec": {"token": "secret"}})).body["status"]
    refused = (await api.post(path, {"spec": {"token": "other"}})).body["status"]
    assert (taken["authenticated"], taken["user"]["username"]) == (True, "ada")
    assert "authenticated" not in refused


async def test_the_rules_allow_everything(api: APIClient) -> None:
    answer = await api.post(f"{ACCESS}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}})
    assert answer.body["status"]["resourceRules"] == [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    ]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"spec": {}}, 422),
        ({"spec": {"resourceAttributes": {}, "nonResourceAttributes": {}}}, 422),
        ({"spec": {"resourceAttributes": 7}}, 400),
        ({"kind": "Pod", "apiVersion": "v1"}, 400),
    ],
)
async def test_invalid_reviews_are_refused(api: APIClient, body: object, code: int) -> None:
    assert (await api.post(f"{ACCESS}/selfsubjectaccessreviews", body)).status == code


@pytest.mark.parametrize(
    ("kind", "spec", "cause"),
    [
        (
            "subjectaccessreviews",
            {"resourceAttributes": {"verb": "get"}},
            'spec.user: Invalid value: "": at least one of user or group must be specified',
        ),
        (
            "subjectaccessreviews",
            {"user": "ada", "resourceAttributes": {}, "nonResourceAttributes": {"path": "/x"}},
            'spec.nonResourceAttributes: Invalid value: {"Path":"/x","Verb":""}: cannot be specified in combination '
            "with resourceAttributes",
        ),
        (
            "namespaces/a/localsubjectaccessreviews",
            {"user": "ada", "resourceAttributes": {"namespace": "b"}},
            'spec.resourceAttributes.namespace: Invalid value: "b": must match metadata.namespace',
        ),
        (
            "namespaces/a/localsubjectaccessreviews",
            {"user": "ada", "nonResourceAttributes": {"path": "/x", "verb": "get"}},
            'spec.nonResourceAttributes: Invalid value: {"Path":"/x","Verb":"get"}: disallowed on this kind of request',
        ),
    ],
)
async def test_access_review_says_what_is_invalid(
    api: APIClient, kind: str, spec: dict[str, Any], cause: str
) -> None:
    answer = await api.post(f"{ACCESS}/{kind}", {"spec": spec})
    assert (answer.status, answer.body["message"]) == (422, f'.authorization.k8s.io "" is invalid: {cause}')


async def test_reviews_are_not_kept(api: APIClient) -> None:
    path = f"{ACCESS}/selfsubjectaccessreviews"
    for url in (path, f"{path}?watch=1"):
        assert (await api.get(url)).status == 405
    assert (await api.delete(path)).status == 405
    assert (await api.get(f"{path}/a")).status == 404
    listed = (await api.get(ACCESS)).body["resources"]
    assert {tuple(obj["verbs"]) for obj in listed} == {("create",)}
