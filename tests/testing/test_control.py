"""Faults by name, from requests to /faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import aiohttp
import pytest

from aioinformer import Client, KubeObject, ListWatch, SharedIndexInformer
from aioinformer.testing import APIServer, TestingError, eventually
from aioinformer.testing.control import parse_fault
from aioinformer.testing.requests import Request


@pytest.fixture
async def controlled() -> AsyncIterator[APIServer]:
    async with APIServer(control=True, seed=1) as server:
        yield server


@pytest.fixture
async def http(controlled: APIServer) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(controlled.url) as session:
        yield session


async def test_status_for_some_requests(controlled: APIServer, http: aiohttp.ClientSession) -> None:
    async with http.post("/faults/503", params={"times": "2", "verb": "list", "retry_after": "7"}) as answer:
        assert answer.status == 201
        assert await answer.json() == {"id": 1, "fault": "503?times=2&verb=list&retry_after=7"}
    answers = []
    for path in ("/api/v1/pods", "/api/v1/namespaces/default", "/api/v1/pods", "/api/v1/pods"):
        async with http.get(path) as answer:
            answers.append((answer.status, answer.headers.get("Retry-After")))
    assert answers == [(503, "7"), (200, None), (503, "7"), (200, None)]
    async with http.get("/faults") as answer:
        assert [(fault["hits"], fault["active"]) for fault in await answer.json()] == [(2, False)]


async def test_faults_are_removed_by_number_or_all(
    controlled: APIServer, http: aiohttp.ClientSession
) -> None:
    for name in ("500?times=9", "429?times=9", "delay?seconds=0.1"):
        async with http.post(f"/faults/{name}") as answer:
            assert answer.status == 201
    async with http.delete("/faults/1") as answer:
        assert [fault["id"] for fault in await answer.json()] == [2, 3]
    async with http.get("/api/v1/pods") as answer:
        assert answer.status == 429
    async with http.delete("/faults") as answer:
        assert await answer.json() == []
    async with http.get("/api/v1/pods") as answer:
        assert answer.status == 200
    async with http.delete("/faults/7") as answer:
        assert answer.status == 404
        assert "there is no fault 7" in (await answer.json())["message"]


@pytest.mark.parametrize("name", ["cut", "cut?resource=configmaps", "410", "410?resource=configmaps"])
async def test_informer_recovers_from_broken_watches(
    controlled: APIServer, http: aiohttp.ClientSession, name: str
) -> None:
    async with Client.from_url(controlled.url) as client:
        list_watch = ListWatch.for_resource(client, "v1", "configmaps")
        async with SharedIndexInformer(list_watch, KubeObject) as informer:
            await informer.wait_synced(20)
            await eventually(lambda: controlled.open_watches == 1)
            try:
                async with http.post(f"/faults/{name}") as answer:
                    assert answer.status == 200
            except aiohttp.ClientConnectionError:
                assert name == "cut"  # of all connections, this one, too
            controlled.create("v1", "configmaps", {"metadata": {"name": "a"}})
            await eventually(lambda: informer.store.get_by_key("default/a") is not None)


async def test_half_open_freezes_the_open_watches_alone(
    controlled: APIServer, http: aiohttp.ClientSession
) -> None:
    watch = {"watch": "true", "resourceVersion": str(controlled.resource_version)}
    async with http.get("/api/v1/configmaps", params=watch) as before:
        async with http.post("/faults/half-open") as answer:
            number = (await answer.json())["id"]
        async with http.get("/api/v1/configmaps", params=watch) as after:
            controlled.create("v1", "configmaps", {"metadata": {"name": "a"}})
            assert b"ADDED" in await after.content.readline()
        frozen = asyncio.ensure_future(before.content.readline())
        await asyncio.sleep(0.1)
        assert not frozen.done()
        async with http.delete(f"/faults/{number}") as answer:
            assert answer.status == 200
        assert b"ADDED" in await frozen


async def test_faults_can_be_removed_while_everything_is_frozen(
    controlled: APIServer, http: aiohttp.ClientSession
) -> None:
    async with http.post("/faults/freeze") as answer:
        assert answer.status == 201
    listing = asyncio.ensure_future(http.get("/api/v1/pods"))
    await eventually(lambda: controlled.count("list", "pods") == 1)
    async with http.delete("/faults") as answer:
        assert answer.status == 200
    assert (await listing).status == 200


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nope", "unknown fault 'nope': it is cut, 410, half-open, .*a status from 400 to 599"),
        ("200", "unknown fault"),
        ("500?time=3", "unknown parameter 'time': it has .*times"),
        ("500?times=three", "times is no int: 'three'"),
        ("delay", r"needs seconds: delay\?seconds=2"),
        ("lag?times=1", "needs changes"),
    ],
)
async def test_mistakes_are_named(
    controlled: APIServer, http: aiohttp.ClientSession, text: str, message: str
) -> None:
    with pytest.raises(TestingError, match=message):
        parse_fault(text)
    async with http.post(f"/faults/{text}") as answer:
        assert answer.status == 400


async def test_unknown_resource_and_method(controlled: APIServer, http: aiohttp.ClientSession) -> None:
    async with http.post("/faults/500?resource=podz") as answer:
        assert answer.status == 400
        assert "podz" in (await answer.json())["message"]
    for method, path in (
        ("POST", "/faults"),
        ("PUT", "/faults/500"),
        ("POST", "/state"),
        ("DELETE", "/state"),
    ):
        async with http.request(method, path) as answer:
            assert answer.status == 405, (method, path)


async def test_faults_and_state_need_the_administrator() -> None:
    async with (
        APIServer(control=True, token="administrator", rbac=True) as server,
        aiohttp.ClientSession(server.url) as http,
    ):
        server.users["tenant"] = "tenant"
        for token, status in (("", 401), ("other", 401), ("tenant", 403), ("administrator", 200)):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            for method, path in (("GET", "/faults"), ("GET", "/state"), ("DELETE", "/faults")):
                async with http.request(method, path, headers=headers) as answer:
                    assert answer.status == status, (token, method, path)


async def test_server_without_control_has_no_such_paths(server: APIServer) -> None:
    async with aiohttp.ClientSession(server.url) as http:
        for path in ("/faults", "/state", "/faults/cut"):
            async with http.get(path) as answer:
                assert answer.status == 404


async def test_on_answer_gets_each_request_with_its_status() -> None:
    answered: list[tuple[str, int]] = []

    def note(request: Request) -> None:
        answered.append((request.verb, request.status))

    on_answer: Callable[[Request], object] = note
    async with APIServer(on_answer=on_answer) as server, aiohttp.ClientSession(server.url) as http:
        await http.get("/api/v1/pods")
        await http.get("/api/v1/namespaces/default/pods/a")
        watch = await http.get("/api/v1/pods", params={"watch": "true"})
        assert answered == [("list", 200), ("get", 404)]
        watch.close()
        await eventually(lambda: answered[-1] == ("watch", 200))
