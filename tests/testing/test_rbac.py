"""assert_rbac_covers: which requests rules permit."""

from __future__ import annotations

from typing import Any

import pytest

from aioinformer import Client, NotFoundError, Resource
from aioinformer.objects.kube_object import KubeObject
from aioinformer.operator import Right
from aioinformer.testing import APIServer, assert_rbac_covers
from aioinformer.testing.rbac import Rule, Usage


@pytest.fixture(autouse=True)
def own_usage(monkeypatch: pytest.MonkeyPatch) -> Usage:
    """What these tests check does not belong into the summary of a run."""
    usage = Usage()
    monkeypatch.setattr("aioinformer.testing.rbac.usage", usage)
    return usage


def rule(*verbs: str, group: str = "", resource: str = "configmaps", **more: Any) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": [resource], "verbs": [*verbs], **more}


def maps(client: Client) -> Resource[KubeObject]:
    return Resource(client, "v1", "configmaps", kind="ConfigMap")


async def test_requests_without_a_rule_are_named() -> None:
    async with APIServer() as server, Client.from_url(server.url) as client:
        await maps(client).create({"metadata": {"name": "a", "namespace": "default"}})
        for _ in range(2):
            await maps(client).patch("default/a", {"data": {"a": "1"}})
        deployments = Resource(client, "apps/v1", "deployments", kind="Deployment")
        with pytest.raises(NotFoundError):  # what is refused was asked, too
            await deployments.patch_status("default/none", {"status": {}})
        with pytest.raises(AssertionError) as raised:
            assert_rbac_covers(server, [rule("create", "patch", group="apps"), rule("create")])
        assert str(raised.value).splitlines() == [
            "the rules do not permit these requests:",
            "  patch configmaps: 2 requests, such as PATCH /api/v1/namespaces/default/configmaps/a",
            "  patch deployments/status.apps: 1 request, such as PATCH "
            "/apis/apps/v1/namespaces/default/deployments/none/status",
        ]
        status = Right("apps", "deployments", True, ("patch",), "status")
        assert_rbac_covers(server, [rule("create", "patch"), status])


async def test_an_apply_that_creates_needs_create() -> None:
    obj = {"metadata": {"name": "a", "namespace": "default"}, "data": {"a": "1"}}
    async with APIServer() as server, Client.from_url(server.url) as client:
        await maps(client).apply(obj, field_manager="tests")
        with pytest.raises(AssertionError, match="create configmaps: 1 request"):
            assert_rbac_covers(server, [rule("patch")])
        assert_rbac_covers(server, [rule("patch"), rule("create")])
        server.requests.clear()
        await maps(client).apply(obj, field_manager="tests")
        assert_rbac_covers(server, [rule("patch")])


async def test_names_and_wildcards_of_rules_count() -> None:
    async with APIServer() as server, Client.from_url(server.url) as client:
        server.create("v1", "configmaps", {"metadata": {"name": "a"}})
        await maps(client).get("default/a")
        for enough in (rule("get", resourceNames=["a"]), rule("*"), rule("get", group="*", resource="*")):
            assert_rbac_covers(server, [enough])
        with pytest.raises(AssertionError, match="get configmaps"):
            assert_rbac_covers(server, [rule("get", resourceNames=["b"])])
        await maps(client).list("default", field_selector="metadata.name=a")
        assert_rbac_covers(server, [rule("get", "list", resourceNames=["a"])])
        await maps(client).list("default")
        with pytest.raises(AssertionError, match="list configmaps: 1 request"):
            assert_rbac_covers(server, [rule("get", "list", resourceNames=["a"])])


async def test_only_the_requests_of_a_user_count_and_what_all_may_do_is_skipped() -> None:
    async with APIServer(token="admin") as server:
        server.users["robot-token"] = "robot"
        async with Client.from_url(server.url, "admin") as admin:
            await maps(admin).create({"metadata": {"name": "a", "namespace": "default"}})
        async with Client.from_url(server.url, "robot-token") as robot:
            await robot.get_json("/apis")
            await maps(robot).get("default/a")
        assert_rbac_covers(server, [rule("get")], user="robot")
        with pytest.raises(AssertionError, match="create configmaps"):
            assert_rbac_covers(server, [rule("get")])


async def test_verbs_that_no_request_needed_are_returned() -> None:
    async with APIServer() as server, Client.from_url(server.url) as client:
        await maps(client).apply({"metadata": {"name": "a", "namespace": "default"}}, field_manager="tests")
        rights: list[Rule] = [
            Right("", "configmaps", True, ("get", "create", "patch")),
            Right("", "configmaps", True, ("update",), "finalizers"),
            rule("*", resource="secrets"),
        ]
        assert assert_rbac_covers(server, rights) == ["get configmaps"]
        assert assert_rbac_covers(server, [rule("create", "delete", "patch")]) == ["delete configmaps"]


async def test_expected_unused_verbs_are_compared() -> None:
    async with APIServer() as server, Client.from_url(server.url) as client:
        await maps(client).list("default")
        rights = [rule("list", "watch", "delete")]
        assert_rbac_covers(server, rights, unused=["delete configmaps", "watch configmaps"])
        with pytest.raises(AssertionError) as raised:
            assert_rbac_covers(server, rights, unused=["delete configmaps", "list configmaps"])
        assert str(raised.value).splitlines() == [
            "unused has not the verbs that no request needed:",
            "  list configmaps: needed",
            "  watch configmaps: not needed",
        ]


async def test_a_right_to_named_objects_permits_these_and_the_creation_of_all() -> None:
    right = Right("", "configmaps", True, ("get", "create"), names=("a",))
    async with APIServer() as server, Client.from_url(server.url) as client:
        await maps(client).create({"metadata": {"name": "b", "namespace": "default"}})
        assert assert_rbac_covers(server, [right]) == ["get configmaps"]
        await maps(client).get("default/b")
        with pytest.raises(AssertionError, match="get configmaps"):
            assert_rbac_covers(server, [right])


async def test_what_one_test_needed_is_used_for_all(own_usage: Usage) -> None:
    for verb in ("get", "list"):
        async with APIServer() as server, Client.from_url(server.url) as client:
            server.create("v1", "configmaps", {"metadata": {"name": "a"}})
            await (maps(client).get("default/a") if verb == "get" else maps(client).list("default"))
            assert_rbac_covers(server, [rule("get", "list", "delete")])
    assert own_usage.unused == ["delete configmaps"]
