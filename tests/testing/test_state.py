"""The state of a server, saved and restored in another."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from aioinformer.testing import APIServer, TestingError, eventually

from ..e2e.definitions import CAVE_DEFINITION, cave

PATHS = (
    "/api/v1/namespaces",
    "/api/v1/configmaps",
    "/apis/example.com/v1/caves",
    "/apis/apps/v1/deployments",
)


async def contents(server: APIServer) -> dict[str, Any]:
    async with aiohttp.ClientSession(server.url) as http:
        answers = {}
        for path in PATHS:
            async with http.get(path) as answer:
                answers[path] = (await answer.json())["items"]
        return answers


def populated() -> APIServer:
    server = APIServer()
    server.create("apiextensions.k8s.io/v1", "customresourcedefinitions", CAVE_DEFINITION)
    server.create("example.com/v1", "caves", cave("deep"))
    kept = {"metadata": {"name": "kept", "finalizers": ["example.com/keep"]}, "data": {"k": "1"}}
    server.create("v1", "configmaps", kept)
    server.delete("v1", "configmaps", "kept")  # its deletion waits for the finalizer
    server.create("v1", "configmaps", {"metadata": {"name": "a", "namespace": "other"}, "data": {"k": "é"}})
    server.delete("v1", "configmaps", "a", "other")
    return server


async def test_objects_uids_and_versions_are_restored() -> None:
    async with populated() as first:
        before, saved = await contents(first), first.save_state()
        count = first.resource_version
    second = APIServer()
    assert second.restore_state(saved) > 10
    async with second:
        assert await contents(second) == before
        assert second.resource_version >= count
        assert second.save_state().splitlines()[1:] == saved.splitlines()[1:]
    assert before["/apis/example.com/v1/caves"][0]["metadata"]["name"] == "deep"


async def test_restored_objects_are_worked_on() -> None:
    async with APIServer() as server:
        server.restore_state(populated().save_state())
        server.patch("v1", "configmaps", "kept", {"metadata": {"finalizers": None}})
        assert [obj["metadata"]["name"] for obj in server.list("v1", "configmaps", "default")] == []
        server.create("example.com/v1", "caves", cave("new"))
        server.delete("v1", "namespaces", "other")
        await eventually(lambda: "other" not in server.snapshot("v1", "namespaces"))


async def test_objects_that_the_state_lacks_are_removed() -> None:
    saved = APIServer().save_state()
    server = populated()
    server.restore_state(saved)
    assert server.list("v1", "configmaps", "default") == []
    assert "example.com" not in str(server.save_state())


async def test_watch_from_an_older_version_expires_and_from_the_saved_one_continues() -> None:
    saved = populated().save_state()
    async with APIServer() as server, aiohttp.ClientSession(server.url) as http:
        server.restore_state(saved)
        version = server.resource_version
        for since, event in ((version - 1, b"410"), (version, b'"b"')):
            query = {"watch": "true", "resourceVersion": str(since)}
            async with http.get("/api/v1/configmaps", params=query) as watch:
                if since == version:
                    server.create("v1", "configmaps", {"metadata": {"name": "b"}})
                assert event in await watch.content.readline()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not the state of an embedded API server"),
        (b'{"kind":"List","resourceVersion":1,"objects":[]}', "its kind is 'List'"),
        (b'{"kind":"EmbeddedServerState","resourceVersion":1,"objects":[{}]}', "not the state"),
        (
            b'{"kind":"EmbeddedServerState","resourceVersion":1,"objects":[{"apiVersion":"a/v1","kind":"Odd",'
            b'"metadata":{"name":"x","uid":"u","resourceVersion":"1"}}]}',
            "Odd x: the server does not know the kind in a/v1",
        ),
    ],
)
def test_other_data_is_refused_and_nothing_changes(data: bytes, message: str) -> None:
    server = populated()
    before = server.save_state()
    with pytest.raises(TestingError, match=message):
        server.restore_state(data)
    assert server.save_state() == before
