"""Fault injection."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest

from aioinformer import ConfigError
from aioinformer.testing import (
    APIServer,
    Fault,
    MatchingError,
    Request,
    ResourceType,
    UnknownNameError,
    eventually,
)

from .client import APIClient, Lines, short
from .test_watching import ALL, CONFIGMAPS, WATCH_LIST, create, now

SECRETS = "/api/v1/secrets"


async def test_watches_are_dropped_cleanly(api: APIClient, server: APIServer) -> None:
    async with (
        api.watch(ALL, resourceVersion=now(server)) as configmaps,
        api.watch(SECRETS, resourceVersion=now(server)) as secrets,
    ):
        create(server, "a")
        assert server.faults.drop_watches("configmaps") == 1
        assert [event["type"] for event in await configmaps.rest()] == ["ADDED"]
        assert server.faults.drop_watches() == 1
        assert await secrets.rest() == []
    assert server.faults.drop_watches() == 0


async def test_dropped_watch_has_no_later_changes(api: APIClient, server: APIServer) -> None:
    for selector in ({}, {"labelSelector": "!app"}):
        async with api.watch(ALL, resourceVersion=now(server), **selector) as lines:
            server.create("v1", "configmaps", {"metadata": {"name": "before"}})
            server.faults.drop_watches()
            server.delete("v1", "configmaps", "before")
            assert [short(event) for event in await lines.rest()] == [("ADDED", "before")]


async def test_dropped_watch_sends_no_expiry_error(
    http: aiohttp.ClientSession,
) -> None:
    async with APIServer(bookmark_interval=0.01) as server:
        api, seen = APIClient(http, server.url), now(server)
        async with api.watch(ALL, resourceVersion=seen, allowWatchBookmarks="true") as lines:
            assert (await lines.next())["type"] == "BOOKMARK"
            time.sleep(0.02)  # noqa: ASYNC251  # the next one is due, and had no turn
            server.faults.expire_history()
            server.faults.drop_watches()
            assert all(event["object"]["metadata"]["resourceVersion"] == seen for event in await lines.rest())


async def test_watches_are_cut_in_the_middle_of_a_line(api: APIClient, server: APIServer) -> None:
    async with api.watch(ALL, resourceVersion=now(server)) as lines:
        create(server, "a")
        assert server.faults.drop_watches(mid_line=True) == 1
        with pytest.raises(aiohttp.ClientPayloadError):
            await lines.rest_raw()
    async with api.watch(ALL, resourceVersion=now(server)) as lines:
        server.faults.drop_watches(mid_line=True)
        assert (await lines._response.content.readany()).startswith(b'{"type":"BOOKMARK","object":')
        with pytest.raises(aiohttp.ClientPayloadError):
            await lines.rest_raw()


async def test_errors_in_the_stream(api: APIClient, server: APIServer) -> None:
    async with api.watch(ALL, resourceVersion=now(server)) as lines:
        assert server.faults.watch_error(code=429, retry_after=3, end=False) == 1
        event = await lines.next()
        assert (event["type"], event["object"]["reason"]) == ("ERROR", "TooManyRequests")
        assert event["object"]["details"] == {"retryAfterSeconds": 3}
        assert server.faults.watch_error(resource="secrets") == 0
        server.faults.watch_error()
        assert [(event["type"], event["object"]["code"]) for event in await lines.rest()] == [("ERROR", 410)]
    async with api.watch(ALL, resourceVersion=now(server)) as lines:
        server.faults.watch_error({"code": 500, "odd": True})
        assert await lines.rest() == [{"type": "ERROR", "object": {"code": 500, "odd": True}}]
    with pytest.raises(TypeError, match=r"code=\.\.\."):
        server.faults.watch_error(410)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def test_any_bytes_in_the_stream(api: APIClient, server: APIServer) -> None:
    async with api.watch(ALL, resourceVersion=now(server)) as lines:
        assert server.faults.send_raw(b"no json\n", "configmaps") == 1
        create(server, "a")
        received = (await lines._response.content.readline(), await lines._response.content.readline())
        assert b"no json\n" in received
        assert server.faults.send_raw(b"\xff\n", end=True) == 1
        assert await lines.rest_raw() == b"\xff\n"


async def test_requests_fail(api: APIClient, server: APIServer) -> None:
    fault = server.faults.fail(429, times=2, retry_after=7, verb="list", resource="configmaps")
    assert (await api.get(SECRETS)).status == 200
    for _ in range(2):
        answer = await api.get(ALL)
        assert (answer.status, answer.headers["Retry-After"], answer.body["reason"]) == (
            429,
            "7",
            "TooManyRequests",
        )
    assert (await api.get(ALL)).status == 200
    assert (fault.hits, fault.times) == (2, 0)
    forever = server.faults.fail(503, times=None, message="down", reason="ServiceUnavailable")
    for _ in range(3):
        assert (await api.get("/version")).body["message"] == "down"
    forever.remove()
    forever.remove()
    assert (await api.get("/version")).status == 200
    assert [request.status for request in server.requests][-4:] == [503, 503, 503, 200]


async def test_further_pages_fail(api: APIClient, server: APIServer) -> None:
    for name in "abc":
        create(server, name)
    server.faults.fail(410, matching=lambda request: request.is_continue)
    first = await api.get(ALL, limit="1")
    second = await api.get(ALL, limit="1", **{"continue": first.body["metadata"]["continue"]})
    assert (first.status, second.status) == (200, 410)


async def test_a_watch_fails_in_the_stream(api: APIClient, server: APIServer) -> None:
    server.faults.fail(500, verb="watch", in_stream=True)
    async with api.watch(ALL) as lines:
        (event,) = await lines.rest()
    assert (lines.status, event["object"]["code"]) == (200, 500)


async def test_requests_are_delayed(api: APIClient, server: APIServer) -> None:
    fault = server.faults.delay(0.05, times=1, verb="list")
    begun = time.perf_counter()
    await api.get(ALL)
    assert time.perf_counter() - begun >= 0.045  # uvloop's clock ticks in milliseconds
    await api.get(ALL)
    assert fault.hits == 1


async def silent(lines: Lines) -> bool:
    """Return whether a stream stays silent for a moment."""
    try:
        await asyncio.wait_for(lines._response.content.readany(), 0.05)
    except TimeoutError:
        return True
    return False


async def test_connections_freeze(api: APIClient, server: APIServer) -> None:
    async with api.watch(ALL, resourceVersion=now(server)) as lines:
        freeze = server.faults.freeze(resource="configmaps")
        create(server, "a")
        assert await silent(lines)
        assert freeze.hits == 1
        asking = asyncio.create_task(api.get(ALL))
        await eventually(lambda: freeze.hits == 2)
        assert (await api.get(SECRETS)).status == 200
        assert not asking.done()
        server.faults.thaw()
        assert await lines.take(1) == [("ADDED", "a")]
        assert (await asking).status == 200


async def test_a_frozen_watch_can_only_be_cut(api: APIClient, server: APIServer) -> None:
    for mid_line in (True, False):
        async with api.watch(ALL, resourceVersion=now(server)) as lines:
            freeze = server.faults.freeze()
            create(server, f"a{mid_line}".lower())
            server.faults.drop_watches(mid_line=mid_line)
            with pytest.raises(aiohttp.ClientError):
                await lines.rest_raw()
            freeze.remove()


async def test_the_server_pauses(api: APIClient, server: APIServer) -> None:
    server.pause()
    server.pause()
    asking = asyncio.create_task(api.get("/version"))
    while not server.count("get"):  # noqa: ASYNC110 - nothing answers while all is frozen
        await asyncio.sleep(0.001)
    assert not asking.done()
    server.faults.clear()
    asked_later = asyncio.create_task(api.get("/version"))
    while server.count("get") < 2:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    assert not asking.done()
    server.resume()
    server.resume()
    assert (await asking).status == (await asked_later).status == 200


async def test_bookmarks_are_lost(http: aiohttp.ClientSession) -> None:
    async with APIServer(bookmark_interval=0.01) as server:
        api = APIClient(http, server.url)
        closing = server.faults.lose_closing_bookmark()
        async with api.watch(ALL, **WATCH_LIST) as lines:
            assert "annotations" not in (await lines.next())["object"]["metadata"]
        assert closing.hits == 1
        lost = server.faults.lose_bookmarks("configmaps")
        async with api.watch(ALL, **WATCH_LIST) as lines:
            event = await lines.next()
            assert event["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
            while lost.hits < 3:
                await api.get("/version")
            create(server, "a")
            assert await lines.take(1) == [("ADDED", "a")]


async def test_a_list_breaks_off(api: APIClient, server: APIServer) -> None:
    for index in range(10):
        create(server, f"c{index}")
    server.faults.truncate()
    async with api.session.get(api.url + CONFIGMAPS) as response:
        assert response.status == 200
        received = b""
        with pytest.raises(aiohttp.ClientPayloadError):
            async for chunk in response.content.iter_any():
                received += chunk
    assert 4 <= received.count(b'"uid"') <= 6
    with pytest.raises(json.JSONDecodeError):
        json.loads(received)
    assert len((await api.get(CONFIGMAPS)).body["items"]) == 10


async def test_an_empty_list_breaks_off(api: APIClient, server: APIServer) -> None:
    server.faults.truncate(fraction=1.0)
    with pytest.raises(aiohttp.ClientPayloadError):
        await api.get(CONFIGMAPS)


async def test_stale_replica_answers_lists(api: APIClient, server: APIServer) -> None:
    create(server, "a")
    seen = now(server)
    create(server, "b")
    fault = server.faults.lag(1, times=None)
    page = (await api.get(ALL, resourceVersion="0")).body
    assert [item["metadata"]["name"] for item in page["items"]] == ["a"]
    assert page["metadata"]["resourceVersion"] == seen
    refused = await api.get(ALL, resourceVersion=now(server))
    assert (refused.status, refused.body["reason"]) == (504, "Timeout")
    assert len((await api.get(ALL)).body["items"]) == 2, "the most recent state is no replica's"
    assert fault.hits == 2
    fault.remove()
    assert len((await api.get(ALL, resourceVersion="0")).body["items"]) == 2


async def test_expired_history_without_a_step_spares_up_to_date_clients(
    api: APIClient, server: APIServer
) -> None:
    before = now(server)
    create(server, "a")
    server.faults.expire_history(step=False)
    async with api.watch(ALL, resourceVersion=now(server)) as lines:
        create(server, "b")
        assert await lines.take(1) == [("ADDED", "b")]
    async with api.watch(ALL, resourceVersion=before) as lines:
        assert (await lines.next())["object"]["code"] == 410


async def test_connections_are_refused(api: APIClient, server: APIServer) -> None:
    port = server.port
    async with api.watch(ALL, resourceVersion=now(server)) as lines:
        server.faults.refuse()
        server.faults.refuse()
        async with aiohttp.ClientSession() as another:
            with pytest.raises(aiohttp.ClientConnectorError):
                await another.get(server.url)
            create(server, "a")
            assert await lines.take(1) == [("ADDED", "a")]
            server.faults.refuse(cut=True)
            server.faults.cut_connections()
            with pytest.raises(aiohttp.ClientError):
                await lines.rest_raw()
            await server.faults.accept()
            await server.faults.accept()
            assert server.port == port
            assert (await APIClient(another, server.url).get(ALL)).status == 200


async def test_faults_are_cleared(api: APIClient, server: APIServer) -> None:
    server.faults.fail(500, times=None)
    server.faults.delay(100)
    server.faults.freeze()
    server.faults.truncate(times=None)
    server.faults.clear()
    assert (await api.get(ALL)).status == 200


async def test_unknown_names_are_refused(server: APIServer) -> None:
    """A fault with a misspelt name would never match, and its test would pass wrongly."""
    faults = server.faults
    asked: list[Callable[[], object]] = [
        lambda: faults.drop_watches("configmap"),
        lambda: faults.watch_error(resource="configmap"),
        lambda: faults.send_raw(b"x", "configmap"),
        lambda: faults.fail(resource="configmap"),
        lambda: faults.delay(1.0, resource="configmap"),
        lambda: faults.freeze(resource="configmap"),
        lambda: faults.truncate(resource="configmap"),
        lambda: faults.lose_bookmarks("configmap"),
        lambda: faults.lose_closing_bookmark(resource="configmap"),
        lambda: server.forbid("list", "configmap"),
    ]
    for ask in asked:
        with pytest.raises(
            UnknownNameError, match=r"there is no resource 'configmap'; did you mean 'configmaps'\?$"
        ):
            ask()
    with pytest.raises(UnknownNameError, match=r"there is no verb 'lists'; did you mean 'list'\?$"):
        faults.fail(verb="lists")
    with pytest.raises(UnknownNameError, match=r"there is no verb 'PUT'; use one of: .*\blist\b"):
        faults.fail(verb="PUT")
    for name in ("configmaps", "deployments.apps", "deployments"):
        faults.fail(resource=name).remove()


async def test_a_custom_resource_has_faults_once_it_is_defined(server: APIServer) -> None:
    with pytest.raises(UnknownNameError):
        server.faults.fail(resource="caves.example.com")
    server.register(ResourceType("example.com", "v1", "caves", "Cave"))
    for name in ("caves", "caves.example.com"):
        assert server.faults.drop_watches(name) == 0


def of_a_body(request: Request) -> bool:
    asked: Any = request
    return bool(asked.body)


@pytest.mark.parametrize(
    "break_it",
    [
        lambda server: server.faults.fail(matching=of_a_body),
        lambda server: server.faults.delay(100, matching=of_a_body),
        lambda server: server.faults.freeze(matching=of_a_body),
        lambda server: server.faults.truncate(matching=of_a_body),
        lambda server: server.forbid(matching=of_a_body),
    ],
)
async def test_error_of_matching_is_raised_on_stop(break_it: Callable[[APIServer], Fault]) -> None:
    """Without the error on stop, a test would not notice that its fault never matched."""
    server = APIServer()
    with pytest.raises(
        MatchingError,
        match=r"AttributeError: 'Request' object has no attribute 'body'; .* attributes: method, ",
    ) as caught:
        async with server, aiohttp.ClientSession() as session:
            fault = break_it(server)
            for _ in range(2):
                async with session.get(f"{server.url}{ALL}") as answer:
                    assert (answer.status, (await answer.json())["items"]) == (200, [])
            assert fault.hits == 0
            fault.remove()
    assert isinstance(caught.value.__cause__, AttributeError)
    await server.restart()  # it is stopped, and what was raised is not raised again
    await server.stop()


async def test_async_matching_is_refused(server: APIServer) -> None:
    async def never(request: Request) -> bool:
        return False

    def later(request: Request) -> Any:
        return asyncio.sleep(0, False)

    function: Any = never
    for break_it in (server.faults.fail, server.faults.freeze, server.forbid):
        with pytest.raises(ConfigError, match=r"matching must be a plain function, .*never"):
            break_it(matching=function)
    fault = server.faults.fail(matching=later)
    async with aiohttp.ClientSession() as session, session.get(f"{server.url}{ALL}") as answer:
        assert (answer.status, fault.hits) == (200, 0)
    with pytest.raises(MatchingError, match="matching must return its result, not an awaitable"):
        await server.stop()


def test_fail_needs_an_error_status(server: APIServer) -> None:
    with pytest.raises(ValueError, match="needs an error status of 400 or above, not 200"):
        server.faults.fail(200)


async def test_one_of_several_clients_is_cut_off(api: APIClient, server: APIServer) -> None:
    server.users.update({"token-a": "ada", "token-b": "bob"})
    ada, bob = ({"Authorization": f"Bearer token-{name}"} for name in "ab")
    fault = server.faults.fail(503, times=None, matching=lambda request: request.user == "ada")
    assert [(await api.get(ALL, headers)).status for headers in (ada, bob, {})] == [503, 200, 200]
    assert fault.hits == 1
    assert [request.user for request in server.requests] == ["ada", "bob", "system:anonymous"]
    server.faults.clear()
    server.forbid(matching=lambda request: request.user == "bob")
    assert (await api.get(ALL, ada)).status == 200
    assert 'User "bob" cannot list resource' in (await api.get(ALL, bob)).body["message"]
