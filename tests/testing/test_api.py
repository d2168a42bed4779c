"""Creating, reading, changing and deleting over HTTP."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

from aioinformer.testing import APIServer, StatusError

from .client import APIClient

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def configmap(name: str, **data: str) -> dict[str, Any]:
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": data}


async def test_the_life_of_an_object(api: APIClient, server: APIServer) -> None:
    created = await api.post(CONFIGMAPS, configmap("a", k="1"))
    assert created.status == 201
    assert created.headers["Content-Type"] == "application/json"
    assert created.raw.startswith(
        b'{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"default"'
    )
    assert created.raw.endswith(b"}\n")
    read = await api.get(f"{CONFIGMAPS}/a")
    assert (read.status, read.raw) == (200, created.raw)
    changed = await api.put(f"{CONFIGMAPS}/a", {**read.body, "data": {"k": "2"}})
    assert (changed.status, changed.body["data"]) == (200, {"k": "2"})
    conflict = await api.put(f"{CONFIGMAPS}/a", {**read.body, "data": {"k": "3"}})
    assert conflict.status == 409
    deleted = await api.delete(f"{CONFIGMAPS}/a")
    assert deleted.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": "a", "kind": "configmaps", "uid": created.body["metadata"]["uid"]},
    }
    missing = await api.get(f"{CONFIGMAPS}/a")
    assert missing.status == 404
    assert missing.raw == (
        b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure",'
        b'"message":"configmaps \\"a\\" not found","reason":"NotFound",'
        b'"details":{"name":"a","kind":"configmaps"},"code":404}\n'
    )
    assert server.snapshot("v1", "configmaps") == {}


async def test_options_of_writes_are_checked(api: APIClient) -> None:
    for method, path, kind, query, message in (
        (
            "PUT",
            f"{CONFIGMAPS}/a",
            "Update",
            {"fieldManager": "é" * 65},
            "fieldManager: Too long: may not be",
        ),
        (
            "POST",
            CONFIGMAPS,
            "Create",
            {"fieldManager": "a\0b"},
            'fieldManager: Invalid value: "a\\u0000b": invalid character U+0000 (at position 1)',
        ),
    ):
        answer = await api.ask(method, path, {}, query=query)
        start = f'{kind}Options.meta.k8s.io "" is invalid: {message}'
        assert (answer.status, answer.body["message"].startswith(start)) == (422, True), answer.body


async def test_missing_json_body_is_refused(api: APIClient) -> None:
    assert (await api.post(CONFIGMAPS, b'{"a')).body["reason"] == "BadRequest"
    assert (await api.post(CONFIGMAPS, b"[]")).status == 400
    assert (await api.ask("POST", CONFIGMAPS, b"a", content_type="text/plain")).status == 415
    large = await api.post(CONFIGMAPS, configmap("large", k="x" * 4_000_000))
    assert (large.status, large.body["reason"]) == (413, "RequestEntityTooLarge")
    assert (await api.post(CONFIGMAPS, configmap("fits", k="x" * 3_000_000))).status == 422
    assert (await api.post(CONFIGMAPS, configmap("fits", k="x" * 1_048_576))).status == 201


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/v1/namespaces/default/nopes", 404),
        ("GET", "/apis/nope.io/v1/nopes", 404),
        ("GET", "/nope", 404),
        ("GET", "/api/v1//configmaps", 404),
        ("GET", f"{CONFIGMAPS}//kube-root-ca.crt", 404),
        ("GET", "//api/v1/configmaps", 404),
        ("GET", f"{CONFIGMAPS}/", 200),
        ("GET", "/api/v1/namespaces/default/nodes", 404),
        ("GET", f"{CONFIGMAPS}/a/status", 404),
        ("PUT", CONFIGMAPS, 405),
        ("POST", "/api/v1/configmaps", 405),
        ("POST", f"{CONFIGMAPS}/a", 405),
        ("DELETE", "/api/v1/configmaps", 405),
        ("POST", "/version", 405),
        ("OPTIONS", CONFIGMAPS, 405),
    ],
)
async def test_paths_that_do_not_exist(api: APIClient, method: str, path: str, status: int) -> None:
    assert (await api.ask(method, path, {} if method == "POST" else None)).status == status


async def test_options_of_a_delete(api: APIClient) -> None:
    await api.post(CONFIGMAPS, {**configmap("a"), "metadata": {"name": "a", "finalizers": ["x/y"]}})
    assert (await api.delete(f"{CONFIGMAPS}/a", propagationPolicy="")).status == 422
    for name in ("uid", "resourceVersion"):
        assert (await api.delete(f"{CONFIGMAPS}/a", **{name: "7"})).status == 409
        assert (await api.delete(f"{CONFIGMAPS}/a", dryRun="All", **{name: ""})).status == 200
    foreground = await api.delete(f"{CONFIGMAPS}/a", {"propagationPolicy": "Foreground"}, dryRun="All")
    assert foreground.body["metadata"]["finalizers"] == ["x/y", "foregroundDeletion"]


async def test_a_collection_is_deleted(api: APIClient, server: APIServer) -> None:
    for index in range(250):
        server.create(
            "v1", "configmaps", {"metadata": {"name": f"c{index:03}", "labels": {"even": str(index % 2)}}}
        )
    deleted = await api.delete(CONFIGMAPS, labelSelector="even=0")
    assert (deleted.body["kind"], len(deleted.body["items"])) == ("ConfigMapList", 125)
    assert len(server.snapshot("v1", "configmaps")) == 125
    assert server.delete_collection("v1", "configmaps", field_selector="metadata.name=c001") == 1


async def test_a_namespace_is_emptied_in_the_background(api: APIClient, server: APIServer) -> None:
    await api.post("/api/v1/namespaces", {"metadata": {"name": "team"}})
    for index in range(120):
        server.create("v1", "configmaps", {"metadata": {"name": f"c{index}", "namespace": "team"}})
    async with api.watch("/api/v1/namespaces", resourceVersion=str(server.resource_version)) as lines:
        deleted = await api.delete("/api/v1/namespaces/team")
        assert deleted.body["status"]["phase"] == "Terminating"
        assert await lines.take(3) == [("MODIFIED", "team"), ("MODIFIED", "team"), ("DELETED", "team")]
    assert server.snapshot("v1", "configmaps") == {}


async def test_get_of_a_future_version_is_refused(api: APIClient) -> None:
    await api.post(CONFIGMAPS, configmap("a"))
    early = await api.get(f"{CONFIGMAPS}/a", resourceVersion="999")
    assert (early.status, early.body["details"]["causes"][0]["reason"]) == (504, "ResourceVersionTooLarge")
    assert (await api.get(f"{CONFIGMAPS}/a", resourceVersion="0")).status == 200


def test_the_python_api_needs_no_loop() -> None:
    server = APIServer(seed=3)
    pod = server.create(
        "v1", "pods", {"metadata": {"name": "a", "namespace": "team"}, "status": {"phase": "Running"}}
    )
    assert pod["status"] == {"phase": "Running", "qosClass": "BestEffort"}
    assert server.get("v1", "namespaces", "team")["status"] == {"phase": "Active"}
    pod["spec"] = {"hostname": "x"}
    pod["status"] = {"phase": "Failed"}
    assert server.update("v1", "pods", pod)["status"] == {"phase": "Failed"}
    with pytest.raises(StatusError, match="409 Conflict"):
        server.update("v1", "pods", pod)
    assert server.patch("v1", "pods", "a", {"metadata": {"labels": {"x": "y"}}}, "team")["metadata"]["labels"]
    assert (
        server.patch("v1", "pods", "a", [{"op": "remove", "path": "/spec"}], "team")["spec"].get("hostname")
        is None
    )
    assert [obj["metadata"]["name"] for obj in server.list("v1", "pods", label_selector="x=y")] == ["a"]
    assert server.list("v1", "pods", "other") == []
    version = str(server.resource_version)
    assert server.snapshot("v1", "pods", field_selector="status.phase=Failed") == {"team/a": version}
    server.delete("v1", "pods", "a", "team")
    with pytest.raises(StatusError, match="404 NotFound"):
        server.get("v1", "pods", "a", "team")
    with pytest.raises(StatusError, match="404 NotFound"):
        server.update("coordination.k8s.io/v1", "leases", {"metadata": {"name": "a"}})
    with pytest.raises(StatusError, match=r"does not have the resource 'caves' in 'example\.com/v1'"):
        server.list("example.com/v1", "caves")


async def test_a_failed_write_is_an_internal_error(
    api: APIClient, server: APIServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise TypeError("a bug")

    monkeypatch.setattr(server.cluster, "create_async", fail)
    answer = await api.post("/api/v1/namespaces", {"metadata": {"name": "a"}})
    assert (answer.status, answer.body["reason"]) == (500, "InternalError")
    assert "POST /api/v1/namespaces failed" in caplog.text


async def test_concurrent_updates_lose_nothing(api: APIClient, server: APIServer) -> None:
    await api.post(CONFIGMAPS, configmap("counter", n="0"))

    async def count_to_ten() -> None:
        for _ in range(10):
            while True:
                current = (await api.get(f"{CONFIGMAPS}/counter")).body
                current["data"]["n"] = str(int(current["data"]["n"]) + 1)
                if (await api.put(f"{CONFIGMAPS}/counter", current)).status == 200:
                    break

    await asyncio.gather(*(count_to_ten() for _ in range(5)))
    assert server.get("v1", "configmaps", "counter")["data"] == {"n": "50"}


def token(text: str) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(base64.urlsafe_b64decode(text + "=="))
    return decoded


async def names(api: APIClient, **query: str) -> tuple[list[str], dict[str, Any]]:
    answer = await api.get(CONFIGMAPS, **query)
    assert answer.status == 200, answer.body
    return [item["metadata"]["name"] for item in answer.body["items"]], answer.body["metadata"]


async def test_a_list(api: APIClient, server: APIServer) -> None:
    empty = await api.get(CONFIGMAPS)
    assert (
        empty.raw
        == b'{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"4"},"items":[]}\n'
    )
    for name in "abc":
        server.create("v1", "configmaps", configmap(name, k="v"))
    server.create("v1", "configmaps", configmap("a"), "other")
    listed = await api.get("/api/v1/configmaps")
    assert [item["metadata"]["namespace"] for item in listed.body["items"]] == ["default"] * 3 + ["other"]
    assert set(listed.body["items"][0]) == {"metadata", "data"}
    assert (await names(api))[0] == ["a", "b", "c"]
    assert (await names(api, fieldSelector="metadata.name!=b"))[0] == ["a", "c"]


async def test_pages_are_one_snapshot(api: APIClient, server: APIServer) -> None:
    for name in "abcde":
        server.create("v1", "configmaps", configmap(name))
    page, metadata = await names(api, limit="2")
    version = metadata["resourceVersion"]
    assert (page, metadata["remainingItemCount"]) == (["a", "b"], 3)
    assert token(metadata["continue"]) == {"v": "meta.k8s.io/v1", "rv": int(version), "start": "default/b\0"}
    server.delete("v1", "configmaps", "c")
    server.create("v1", "configmaps", configmap("bb"))
    page, metadata = await names(api, limit="2", **{"continue": metadata["continue"]})
    assert (page, metadata["resourceVersion"], metadata["remainingItemCount"]) == (["c", "d"], version, 1)
    page, metadata = await names(api, limit="2", **{"continue": metadata["continue"]})
    assert (page, metadata) == (["e"], {"resourceVersion": version})
    page, metadata = await names(api, limit="2", labelSelector="nope", resourceVersion=version)
    assert (page, metadata) == ([], {"resourceVersion": version})


async def test_a_continue_token_expires(api: APIClient, server: APIServer) -> None:
    for name in "abc":
        server.create("v1", "configmaps", configmap(name))
    _, metadata = await names(api, limit="1")
    server.faults.expire_history()
    expired = await api.get(CONFIGMAPS, limit="1", **{"continue": metadata["continue"]})
    assert (expired.status, expired.body["reason"]) == (410, "Expired")
    assert expired.body["message"].startswith(
        "The provided continue parameter is too old to display a consistent"
    )
    onward = expired.body["metadata"]["continue"]
    assert token(onward)["rv"] == -1
    page, metadata = await names(api, limit="1", **{"continue": onward})
    assert (page, metadata["resourceVersion"]) == (["b"], str(server.resource_version))


async def test_versions_of_a_list(api: APIClient, server: APIServer) -> None:
    for name in "abc":
        server.create("v1", "configmaps", configmap(name))
    past = str(server.resource_version - 1)
    assert len((await names(api, resourceVersion="0", limit="2"))[0]) == 3
    assert len((await names(api, resourceVersion=past))[0]) == 3
    assert (await names(api, resourceVersion=past, resourceVersionMatch="Exact"))[0] == ["a", "b"]
    assert (await names(api, resourceVersion=past, limit="9"))[0] == ["a", "b"]
    assert (
        len((await names(api, resourceVersion=past, limit="9", resourceVersionMatch="NotOlderThan"))[0]) == 3
    )
    for query in ({"resourceVersion": "99"}, {"resourceVersion": "99", "resourceVersionMatch": "Exact"}):
        early = await api.get(CONFIGMAPS, **query)
        assert (early.status, early.headers["Retry-After"]) == (504, "1")
        assert early.body["message"] == "Timeout: Too large resource version: 99, current: 7"
        assert early.body["details"] == {
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        }
    server.faults.expire_history()
    old = await api.get(CONFIGMAPS, resourceVersion=past, resourceVersionMatch="Exact")
    assert (old.status, old.body["message"]) == (410, "The resourceVersion for the provided list is too old.")


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        (
            {"continue": base64.urlsafe_b64encode(b'{"v":"x","rv":1,"start":"a"}').decode()},
            400,
            "invalid continue ",
        ),
        (
            {"continue": base64.urlsafe_b64encode(b'{"v":"meta.k8s.io/v1","rv":0,"start":"a"}').decode()},
            400,
            "inv",
        ),
        ({"limit": ""}, 400, "strconv.ParseInt"),
        ({"resourceVersion": "1", "resourceVersionMatch": "Exact", "continue": "x"}, 422, "ListOptions"),
    ],
)
async def test_invalid_list_options_are_refused(
    api: APIClient, query: dict[str, str], status: int, message: str
) -> None:
    answer = await api.get(CONFIGMAPS, **query)
    assert (answer.status, answer.body["message"].startswith(message)) == (status, True), answer.body


async def test_a_large_list_comes_in_pieces(api: APIClient, server: APIServer) -> None:
    for index in range(300):
        server.create("v1", "configmaps", configmap(f"c{index:03}", k="x" * 10_000))
    async with api.session.get(api.url + CONFIGMAPS) as response:
        assert response.headers["Transfer-Encoding"] == "chunked"
        body = await response.read()
    assert len(json.loads(body)["items"]) == 300
    assert len(body) > 3_000_000
