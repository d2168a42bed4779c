"""Watches over HTTP."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from aioinformer.testing import APIServer, Request, eventually
from aioinformer.testing.http.encodings import JSON
from aioinformer.testing.http.listing import ListOptions
from aioinformer.testing.http.views import plain_view
from aioinformer.testing.http.watches import OpenWatch, WatchCursor
from tests import virtual_time

from .client import APIClient, short

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
ALL = "/api/v1/configmaps"
WATCH_LIST = {
    "sendInitialEvents": "true",
    "resourceVersionMatch": "NotOlderThan",
    "allowWatchBookmarks": "true",
}


def create(server: APIServer, name: str, namespace: str = "default", **labels: str) -> None:
    server.create("v1", "configmaps", {"metadata": {"name": name, "labels": labels}}, namespace)


def label(server: APIServer, name: str, value: str | None, namespace: str = "default") -> None:
    server.patch("v1", "configmaps", name, {"metadata": {"labels": {"app": value}}}, namespace)


def now(server: APIServer) -> str:
    return str(server.resource_version)


async def test_watch_sends_changes(api: APIClient, server: APIServer) -> None:
    async with api.watch(ALL, resourceVersion=now(server)) as lines:
        create(server, "a")
        label(server, "a", "x")
        server.delete("v1", "configmaps", "a")
        events = [await lines.next() for _ in range(3)]
    assert [short(event) for event in events] == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == list(range(server.resource_version - 2, server.resource_version + 1))
    assert list(events[0]["object"]) == ["kind", "apiVersion", "metadata"]


@pytest.mark.parametrize("query", [{}, {"resourceVersion": "0"}])
async def test_without_a_version_the_objects_come_first(
    api: APIClient, server: APIServer, query: dict[str, str]
) -> None:
    create(server, "a")
    create(server, "b", "other")
    label(server, "a", "x")
    async with api.watch(ALL, **query) as lines:
        assert await lines.take(2) == [("ADDED", "a"), ("ADDED", "b")]
        label(server, "b", "x", "other")
        assert await lines.take(1) == [("MODIFIED", "b")]


async def test_leaving_a_selection_is_deleted_and_entering_is_added(
    api: APIClient, server: APIServer
) -> None:
    create(server, "a", app="x")
    create(server, "b", app="y")
    async with api.watch(ALL, resourceVersion=now(server), labelSelector="app=x") as lines:
        label(server, "a", "y")
        label(server, "b", "x")
        label(server, "b", "y")
        label(server, "a", "z")
        create(server, "c", app="x")
        server.patch("v1", "configmaps", "c", {"data": {"k": "v"}})
        server.delete("v1", "configmaps", "a")
        server.delete("v1", "configmaps", "c")
        events = [await lines.next() for _ in range(6)]
    assert [short(event) for event in events] == [
        ("DELETED", "a"),
        ("ADDED", "b"),
        ("DELETED", "b"),
        ("ADDED", "c"),
        ("MODIFIED", "c"),
        ("DELETED", "c"),
    ]
    left = events[0]["object"]["metadata"]
    assert left["labels"] == {"app": "x"}
    assert int(left["resourceVersion"]) == int(events[1]["object"]["metadata"]["resourceVersion"]) - 1


async def test_a_field_selector_follows_the_status(api: APIClient, server: APIServer) -> None:
    async with api.watch(
        "/api/v1/pods", resourceVersion=now(server), fieldSelector="status.phase=Running"
    ) as lines:
        server.create("v1", "pods", {"metadata": {"name": "p"}, "status": {"phase": "Pending"}})
        server.patch("v1", "pods", "p", {"status": {"phase": "Running"}})
        server.patch("v1", "pods", "p", {"status": {"phase": "Failed"}})
        assert await lines.take(2) == [("ADDED", "p"), ("DELETED", "p")]


async def test_a_timeout_ends_the_stream(api: APIClient, server: APIServer) -> None:
    async with api.watch(ALL, resourceVersion=now(server), timeoutSeconds="1") as lines:
        assert await lines.rest() == []


def test_the_last_bookmark_comes_before_the_timeout() -> None:
    server = APIServer()
    resource = server.resource("v1", "configmaps")
    lines: list[bytes] = []

    class Sink:
        async def write(self, data: bytes) -> None:
            lines.append(data)

    async def watch(timeout: float) -> float:
        cursor = WatchCursor(
            plain_view(resource, JSON),
            server.cluster.collection(resource),
            ListOptions(resource_version=now(server), allow_bookmarks=True),
            current=lambda: server.resource_version,
        )
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await OpenWatch(
            Request("GET", ALL),
            cursor,
            timeout=timeout,
            bookmark_interval=60,
            hang_up=lambda flush: None,
            keep_bookmark=lambda request, closing: True,
            thawed=lambda request: None,
        ).run(Sink())
        return loop.time() - begun

    assert virtual_time.run(watch(1)) == 1
    assert lines == []
    assert virtual_time.run(watch(150)) == 150
    expected = (
        f'{{"type":"BOOKMARK","object":{{"kind":"ConfigMap","apiVersion":"v1","metadata":'
        f'{{"resourceVersion":"{now(server)}"}}}}}}\n'
    )
    assert lines == [expected.encode()] * 3


async def test_bookmarks_come_regularly(api: APIClient, http: aiohttp.ClientSession) -> None:
    async with APIServer(bookmark_interval=0.01) as server:
        client = APIClient(http, server.url)
        async with client.watch(ALL, resourceVersion=now(server), allowWatchBookmarks="true") as lines:
            for _ in range(3):
                assert (await lines.next())["type"] == "BOOKMARK"
        async with client.watch(ALL, resourceVersion=now(server), timeoutSeconds="1") as lines:
            assert await lines.rest() == []


@pytest.mark.parametrize("version", [None, "0", "1"])
async def test_watch_list(api: APIClient, server: APIServer, version: str | None) -> None:
    create(server, "a")
    create(server, "b")
    query = WATCH_LIST if version is None else {**WATCH_LIST, "resourceVersion": version}
    async with api.watch(ALL, **query) as lines:
        assert await lines.take(2) == [("ADDED", "a"), ("ADDED", "b")]
        closing = await lines.next()
        create(server, "c")
        assert await lines.take(1) == [("ADDED", "c")]
    assert closing["type"] == "BOOKMARK"
    assert closing["object"]["metadata"] == {
        "resourceVersion": str(server.resource_version - 1),
        "annotations": {"k8s.io/initial-events-end": "true"},
    }


async def test_a_plain_watch_from_the_future_waits(api: APIClient, server: APIServer) -> None:
    async with api.watch(ALL, resourceVersion=str(server.resource_version + 2)) as lines:
        for name in "abc":
            create(server, name)
        assert await lines.take(1) == [("ADDED", "c")]


async def test_a_server_without_watch_list(http: aiohttp.ClientSession) -> None:
    async with APIServer(watch_list=False) as server:
        client = APIClient(http, server.url)
        refused = await client.get(ALL, watch="true", **WATCH_LIST)
        assert (refused.status, refused.body["reason"]) == (422, "Invalid")
        assert refused.body["message"] == (
            'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for '
            "watch unless the WatchList feature gate is enabled"
        )
        create(server, "a")
        async with client.watch(ALL, allowWatchBookmarks="true") as lines:
            assert [short(event) for event in await lines.drop(server)] == [("ADDED", "a")]


async def wait_expired(api: APIClient, version: str) -> dict[str, Any]:
    async with api.watch(ALL, resourceVersion=version) as lines:
        assert lines.status == 200
        (event,) = await lines.rest()
    assert event["type"] == "ERROR"
    status: dict[str, Any] = event["object"]
    return status


async def test_an_expired_version(api: APIClient, server: APIServer) -> None:
    create(server, "a")
    version = now(server)
    server.faults.expire_history()
    assert await wait_expired(api, version) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f"too old resource version: {version} ({now(server)})",
        "reason": "Expired",
        "code": 410,
    }
    server.faults.expired_as_status = True
    answer = await api.get(ALL, watch="true", resourceVersion=version)
    assert (answer.status, answer.body["reason"]) == (410, "Expired")
    async with api.watch(ALL, resourceVersion=now(server)) as lines:
        create(server, "b")
        assert await lines.take(1) == [("ADDED", "b")]


async def test_the_history_is_as_long_as_asked(http: aiohttp.ClientSession) -> None:
    async with APIServer(history=3) as server:
        client = APIClient(http, server.url)
        for name in "abcde":
            create(server, name)
        version = server.resource_version
        async with client.watch(ALL, resourceVersion=str(version - 3)) as lines:
            assert [short(event) for event in await lines.drop(server)] == [
                ("ADDED", "c"),
                ("ADDED", "d"),
                ("ADDED", "e"),
            ]
        assert (await wait_expired(client, str(version - 4)))["code"] == 410


async def test_an_open_watch_outlives_the_history(api: APIClient, server: APIServer) -> None:
    async with api.watch(ALL, resourceVersion=now(server)) as lines:
        create(server, "a")
        server.faults.expire_history()
        create(server, "b")
        assert await lines.take(2) == [("ADDED", "a"), ("ADDED", "b")]


async def test_watch_that_lags_too_far_is_ended(http: aiohttp.ClientSession) -> None:
    async with APIServer(history=10, watch_buffer=50) as server:
        client = APIClient(http, server.url)
        async with client.watch(ALL, resourceVersion=now(server)) as lines:
            create(server, "first")
            assert await lines.take(1) == [("ADDED", "first")]
            for index in range(51):
                create(server, f"c{index}")
            assert await lines.rest() == []


async def test_many_changes_and_many_watches(api: APIClient, server: APIServer) -> None:
    async with api.watch(ALL, resourceVersion=now(server)) as one, api.watch(CONFIGMAPS, **WATCH_LIST) as two:
        for index in range(3000):
            create(server, f"c{index}")
        expected = [("ADDED", f"c{index}") for index in range(3000)]
        assert await one.take(3000) == expected
        seen = [event for event in await two.take(3001) if event[0] != "BOOKMARK"]
        assert seen == expected
    assert server.open_watches <= 2


async def test_a_watch_ends_with_its_client(api: APIClient, server: APIServer) -> None:
    async with api.watch(ALL, resourceVersion=now(server)) as lines:
        create(server, "a")
        await lines.take(1)
        assert server.open_watches == 1
    while server.open_watches:
        await api.get("/version")


@pytest.mark.parametrize("how", ["dropped", "error", "timeout"])
async def test_watch_ends_despite_a_change_per_loop_iteration(
    http: aiohttp.ClientSession, server: APIServer, how: str
) -> None:
    async def change_on() -> None:
        number = 0
        while True:
            create(server, f"c{(number := number + 1)}")
            await asyncio.sleep(0)

    query = {"timeoutSeconds": "1"} if how == "timeout" else {}
    async with APIClient(http, server.url).watch(ALL, resourceVersion=now(server), **query) as lines:
        changing = asyncio.create_task(change_on())
        try:
            await lines.take(1)
            if how == "dropped":
                server.faults.drop_watches()
            elif how == "error":
                server.faults.watch_error()
            async with asyncio.timeout(5):
                rest = await lines.rest()
        finally:
            changing.cancel()
    assert (rest[-1]["type"] == "ERROR") is (how == "error")


def test_write_size_is_limited() -> None:
    cluster = APIServer()
    resource = cluster.resource("v1", "configmaps")
    collection = cluster.cluster.collection(resource)
    options = ListOptions(resource_version=now(cluster))
    view = plain_view(resource, JSON)
    cursor = WatchCursor(view, collection, options, current=lambda: cluster.resource_version)
    for number in range(200):
        cluster.create("v1", "configmaps", {"metadata": {"name": f"c{number}"}, "data": {"a": "x" * 10_000}})
    taken = [len(b"".join(lines)) for lines in iter(cursor.take, [])]
    assert max(taken) < 2**18 + 20_000
    assert sum(taken) > 2_000_000


async def test_watch_on_a_websocket_has_an_event_in_each_message(server: APIServer) -> None:
    async with aiohttp.ClientSession(server.url) as http:
        query = {"watch": "true", "resourceVersion": now(server)}
        async with http.ws_connect("/api/v1/configmaps", params=query) as websocket:
            create(server, "a")
            create(server, "b")
            events = [json.loads(await websocket.receive_str()) for _ in range(2)]
            assert [short(event) for event in events] == [("ADDED", "a"), ("ADDED", "b")]
            assert server.open_watches == 1
        await eventually(lambda: server.open_watches == 0)  # the client has closed it
        async with http.ws_connect("/api/v1/configmaps", params=query) as websocket:
            assert server.faults.drop_watches() == 1
            await websocket.receive_str()
            await websocket.receive_str()
            assert (await websocket.receive()).type is aiohttp.WSMsgType.CLOSE
