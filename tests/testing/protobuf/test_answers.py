"""Answers in protobuf have the same content as in JSON."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest

from aioinformer.testing import APIServer, ResourceType
from aioinformer.testing.http.encodings import PROTOBUF as ENCODING
from aioinformer.testing.storage.builtin import PODS
from tests.testing.client import APIClient

from .reading import AS_PARTIAL, AS_PARTIAL_LIST, PROTOBUF, decode, read_frames

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
CAVES = ResourceType("example.com", "v1", "caves", "Cave")
CAVES_PATH = "/apis/example.com/v1/namespaces/default/caves"
WATCH_LIST = {
    "sendInitialEvents": "true",
    "resourceVersionMatch": "NotOlderThan",
    "allowWatchBookmarks": "true",
}


async def get(api: APIClient, path: str, accept: str = PROTOBUF, /, **query: str) -> tuple[int, Any]:
    """Return the status and the protobuf answer."""
    answer = await api.get(path, {"Accept": accept}, **query)
    assert answer.headers["Content-Type"] == PROTOBUF, answer.raw
    return answer.status, decode(answer.raw)


async def watch(api: APIClient, server: APIServer, path: str, accept: str = PROTOBUF, /, **query: str) -> Any:
    """The events that are due, until the server ends the watch."""
    async with api.watch(path, {"Accept": accept}, **query) as lines:
        server.faults.drop_watches()
        return read_frames(await lines.rest_raw())


async def until_cut(content: aiohttp.StreamReader) -> bytes:
    """All that came of a body that breaks off."""
    received = b""
    with pytest.raises(aiohttp.ClientPayloadError):
        async for chunk in content.iter_any():
            received += chunk
    return received


@pytest.fixture
def server(server: APIServer) -> APIServer:
    for name in "abc":
        obj = {"metadata": {"name": name, "labels": {"app": name}}, "data": {"k": name}}
        server.create("v1", "configmaps", obj)
    server.register(CAVES)
    server.create("example.com/v1", "caves", {"metadata": {"name": "deep"}, "spec": {"depth": 1}})
    return server


async def test_one_object(api: APIClient, server: APIServer) -> None:
    status, shown = await get(api, f"{CONFIGMAPS}/a")
    assert (status, shown) == (200, server.get("v1", "configmaps", "a"))
    assert (await api.get(f"{CONFIGMAPS}/a", {"Accept": PROTOBUF})).raw == ENCODING.body(shown)


async def test_pages(api: APIClient) -> None:
    listed: list[Any] = []
    token = ""
    while True:
        page = (await get(api, CONFIGMAPS, limit="2", **{"continue": token}))[1]
        by_json = (await api.get(CONFIGMAPS, limit="2", **{"continue": token})).body
        assert page == by_json
        listed += page["items"]
        if not (token := page["metadata"].get("continue", "")):
            break
    assert [item["metadata"]["name"] for item in listed] == ["a", "b", "c"]
    assert (await get(api, CONFIGMAPS, labelSelector="app=x"))[1]["items"] == []


async def test_large_list_yields_to_other_tasks(api: APIClient, server: APIServer) -> None:
    for number in range(300):
        large = {"metadata": {"name": f"n{number}"}, "data": {"k": "x" * 2000}}
        server.create("v1", "configmaps", large, "large")
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    others = asyncio.ensure_future(take_turns())
    items = (await get(api, "/api/v1/namespaces/large/configmaps"))[1]["items"]
    others.cancel()
    assert len(items) == 300
    assert turns > 5


async def test_watches_and_their_bookmarks(api: APIClient, server: APIServer) -> None:
    events = await watch(api, server, CONFIGMAPS, **WATCH_LIST)
    async with api.watch(CONFIGMAPS, **WATCH_LIST) as lines:
        by_json = await lines.drop(server)
    assert events == by_json
    assert [event["type"] for event in events] == ["ADDED", "ADDED", "ADDED", "BOOKMARK"]
    version = str(server.resource_version)
    server.patch("v1", "configmaps", "a", {"metadata": {"labels": {"app": "x"}}})
    server.delete("v1", "configmaps", "b")
    events = await watch(api, server, CONFIGMAPS, resourceVersion=version)
    assert [(event["type"], event["object"]["metadata"]["name"]) for event in events] == [
        ("MODIFIED", "a"), ("DELETED", "b")
    ]  # fmt: skip
    selected = await watch(api, server, CONFIGMAPS, resourceVersion=version, labelSelector="app=x")
    assert selected == [{"type": "ADDED", "object": events[0]["object"]}]


async def test_metadata_only_of_any_resource(api: APIClient, server: APIServer) -> None:
    partial = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    for path, api_version, plural, name in (
        (CONFIGMAPS, "v1", "configmaps", "a"),
        (CAVES_PATH, "example.com/v1", "caves", "deep"),
    ):
        metadata = server.get(api_version, plural, name)["metadata"]
        assert await get(api, f"{path}/{name}", PROTOBUF + AS_PARTIAL) == (
            200,
            {**partial, "metadata": metadata},
        )
        _, listed = await get(api, path, PROTOBUF + AS_PARTIAL_LIST)
        assert listed["kind"] == "PartialObjectMetadataList"
        assert listed["items"][0] == {"metadata": metadata}
        events = await watch(api, server, path, PROTOBUF + AS_PARTIAL, **WATCH_LIST)
        assert events[0] == {"type": "ADDED", "object": {**partial, "metadata": metadata}}
        assert events[-1]["type"] == "BOOKMARK"
        assert await watch(api, server, path, PROTOBUF + AS_PARTIAL_LIST, **WATCH_LIST) == []
    empty = (await get(api, CONFIGMAPS, PROTOBUF + AS_PARTIAL_LIST, labelSelector="app=x"))[1]
    assert empty["items"] == []


async def test_custom_resources_come_as_json(api: APIClient) -> None:
    listed = await api.get(CAVES_PATH, {"Accept": f"{PROTOBUF},application/json"})
    assert listed.body["kind"] == "CaveList"
    status, refusal = await get(api, CAVES_PATH)
    assert (status, refusal["reason"]) == (406, "NotAcceptable")
    status, refusal = await get(api, f"{CAVES_PATH}/none", f"{PROTOBUF},application/json")
    assert (status, refusal["details"]["name"]) == (404, "none")


async def test_answers_to_writes(api: APIClient) -> None:
    headers = {"Accept": PROTOBUF}
    obj = {"metadata": {"name": "new"}}
    created = await api.ask("POST", CONFIGMAPS, obj, headers=headers)
    assert (created.status, decode(created.raw)["kind"]) == (201, "ConfigMap")
    deleted = decode((await api.ask("DELETE", f"{CONFIGMAPS}/new", headers=headers)).raw)
    assert (deleted["status"], deleted["details"]["name"]) == ("Success", "new")
    rest = decode((await api.ask("DELETE", CONFIGMAPS, headers=headers)).raw)
    assert [item["metadata"]["name"] for item in rest["items"]] == ["a", "b", "c"]


async def test_object_that_protobuf_cannot_express_is_not_stored(api: APIClient, server: APIServer) -> None:
    answer = await api.ask("POST", CONFIGMAPS, {"metadata": {"name": "new"}}, headers={"Accept": "text/html"})
    assert answer.status == 406
    assert "default/new" not in server.snapshot("v1", "configmaps")


async def test_scale_and_reviews(api: APIClient, server: APIServer) -> None:
    server.create("apps/v1", "deployments", {"metadata": {"name": "a"}, "spec": {"replicas": 3}})
    _, scale = await get(api, "/apis/apps/v1/namespaces/default/deployments/a/scale")
    assert (scale["kind"], scale["spec"]) == ("Scale", {"replicas": 3})
    review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    answer = await api.ask("POST", path, review, headers={"Accept": PROTOBUF})
    assert decode(answer.raw)["status"] == {"allowed": True}


@pytest.mark.parametrize("accept", [PROTOBUF, PROTOBUF + AS_PARTIAL])
async def test_errors_in_the_stream(api: APIClient, server: APIServer, accept: str) -> None:
    server.faults.expire_history()
    async with api.watch(CONFIGMAPS, {"Accept": accept}, resourceVersion="1") as lines:
        (event,) = read_frames(await lines.rest_raw())
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")
    server.faults.fail(503, in_stream=True)
    async with api.watch(CONFIGMAPS, {"Accept": accept}) as lines:
        (event,) = read_frames(await lines.rest_raw())
    assert (event["type"], event["object"]["code"]) == ("ERROR", 503)
    async with api.watch(
        CONFIGMAPS, {"Accept": accept}, resourceVersion=str(server.resource_version)
    ) as lines:
        server.faults.watch_error(code=429, retry_after=3, end=False)
        server.faults.watch_error({"code": 500, "odd": True})
        first, second = read_frames(await lines.rest_raw())
    assert (first["object"]["code"], first["object"]["details"]["retryAfterSeconds"]) == (429, 3)
    assert (second["object"]["kind"], second["object"]["code"]) == ("Status", 500)


async def test_a_watch_is_cut_in_the_middle_of_an_event(api: APIClient, server: APIServer) -> None:
    version = str(server.resource_version)
    async with api.watch(CONFIGMAPS, {"Accept": PROTOBUF}, resourceVersion=version) as lines:
        server.patch("v1", "configmaps", "a", {"data": {"k": "x"}})
        server.faults.drop_watches(mid_line=True)
        received = await until_cut(lines.content)
    assert 4 < len(received) < int.from_bytes(received[:4], "big")


async def test_a_list_breaks_off(api: APIClient, server: APIServer) -> None:
    whole = (await api.get(CONFIGMAPS, {"Accept": PROTOBUF})).raw
    server.faults.truncate(fraction=0.5)
    async with api.session.get(server.url + CONFIGMAPS, headers={"Accept": PROTOBUF}) as response:
        received = await until_cut(response.content)
    assert whole.startswith(received)
    assert (received.count(b"default"), whole.count(b"default")) == (2, 3)


async def test_error_says_why_protobuf_cannot_express_an_object(
    api: APIClient, server: APIServer, caplog: pytest.LogCaptureFixture
) -> None:
    pod = server.create("v1", "pods", {"metadata": {"name": "odd"}})
    stored = server.cluster.get(PODS, "default", "odd")
    server.cluster.commit(PODS, stored, {**pod, "spec": {"priority": "high"}})
    status, said = await get(api, "/api/v1/namespaces/default/pods/odd")
    assert status == 500
    assert "priority of a core/v1.PodSpec cannot be 'high'" in said["message"]
    assert (await api.get("/api/v1/pods", {"Accept": PROTOBUF})).status == 500
    async with api.watch("/api/v1/pods", {"Accept": PROTOBUF}) as lines:
        assert await until_cut(lines.content) == b""
    assert "priority of a core/v1.PodSpec" in caplog.text
