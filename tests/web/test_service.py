"""WebInformers in Starlette, FastAPI and aiohttp.web: lifespans, dependencies, probes, streams."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import msgspec
import pytest
from aiohttp import WSMsgType, web
from aiohttp.test_utils import TestClient, TestServer
from fastapi import Depends, FastAPI, WebSocket
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from aioinformer import Client, KubeObject, Lister
from aioinformer.errors import AlreadyStartedError, ConfigError, InformerError
from aioinformer.testing import APIServer
from aioinformer.web import ChangeStream, WebInformer, WebInformers
from aioinformer.web.aiohttp import setup, stream_changes
from aioinformer.web.starlette import ChangeStreamResponse

from .asgi import Request


@pytest.fixture
async def server() -> AsyncIterator[APIServer]:
    async with APIServer() as server:
        server.create("v1", "configmaps", config_map("a"))
        yield server


def config_map(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "data": {}}


def informers_of(server: APIServer) -> tuple[WebInformers, WebInformer[KubeObject]]:
    informers = WebInformers(lambda: Client.from_url(server.url))
    return informers, informers.for_resource("v1", "configmaps", history=100)


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[httpx.AsyncClient]:
    """Run an ASGI application with its lifespan."""
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://app") as http,
    ):
        yield http


async def wait_event(request: Request, event: str) -> None:
    async with asyncio.timeout(20):
        while event not in request.events:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_service_is_alive_at_once_and_ready_once_synced(server: APIServer) -> None:
    informers, maps = informers_of(server)
    app = Starlette(lifespan=informers.lifespan)
    app.mount("/kube", informers.probes)
    server.pause()
    async with serving(app) as http:
        answer = await http.get("/kube/readyz")
        assert (answer.status_code, "configmaps has not synced" in answer.text) == (503, True)
        assert ((await http.get("/kube/livez")).status_code, (await http.get("/kube/other")).status_code) == (
            200,
            404,
        )
        server.resume()
        await maps.informer.wait_synced(30)
        assert (await http.get("/kube/readyz")).text == "ok"
        text = (await http.get("/kube/metrics")).text
        assert 'aioinformer_objects{informer="configmaps"} 1' in text
        assert 'aioinformer_feed_subscribers{informer="configmaps"} 0' in text
        assert (await http.head("/kube/readyz")).text == ""
    assert informers.answer("readyz")[0] == informers.answer("livez")[0] == 503


async def test_service_with_a_stalled_watch_is_not_alive(server: APIServer) -> None:
    informers = WebInformers(lambda: Client.from_url(server.url), stalled_after=0.2)
    maps = informers.for_resource("v1", "configmaps")
    async with informers.lifespan():
        await maps.informer.wait_synced(30)
        assert informers.healthy()
        async with asyncio.timeout(20):
            while informers.healthy():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        assert "stalled" in informers.answer("livez")[1]


async def test_probe_is_a_route_of_its_own(server: APIServer) -> None:
    informers, _ = informers_of(server)
    app = FastAPI(lifespan=informers.lifespan)
    app.router.routes.append(Route("/livez", informers.probes))
    async with serving(app) as http:
        assert (await http.get("/livez")).text == "ok"


async def test_dependency_gives_a_route_its_lister(server: APIServer) -> None:
    informers, maps = informers_of(server)
    app = FastAPI(lifespan=informers.lifespan)

    @app.get("/maps")
    async def names(lister: Lister[KubeObject] = Depends(maps)) -> list[str]:  # noqa: B008
        return [obj.name for obj in lister.list()]

    async with serving(app) as http:
        await maps.informer.wait_synced(30)
        assert (await http.get("/maps")).json() == ["a"]
    for _ in range(2):  # the application is started again
        async with serving(app):
            await maps.informer.wait_synced(30)


async def test_route_streams_what_its_user_may_see(server: APIServer) -> None:
    informers, maps = informers_of(server)
    app = FastAPI(lifespan=informers.lifespan)

    @app.get("/{team}/events")
    async def events(team: str) -> Response:
        headers = {"Access-Control-Allow-Origin": "https://example.com"}
        return ChangeStreamResponse(maps, label_selector={"team": team}, headers=headers)

    app.router.routes.append(Route("/events", ChangeStream(maps)))

    @app.websocket("/socket")
    async def socket_route(websocket: WebSocket) -> None:
        await ChangeStream(maps)(websocket.scope, websocket.receive, websocket.send)

    async with serving(app):
        of_team, everything = Request(app, "/red/events"), Request(app, "/events")
        socket = Request(app, "/socket", kind="websocket", labelSelector="team=blue")
        await wait_event(of_team, "SYNCED")
        assert of_team.events == ["RESET", "SYNCED"]
        assert of_team.headers["access-control-allow-origin"] == "https://example.com"
        assert of_team.headers["content-type"].startswith("text/event-stream")
        assert "content-length" not in of_team.headers
        server.create("v1", "configmaps", config_map("b", team="red"))
        await wait_event(of_team, "ADDED default/b")
        server.patch("v1", "configmaps", "b", {"metadata": {"labels": {"team": "blue"}}})
        await wait_event(of_team, "DELETED default/b")
        await wait_event(everything, "MODIFIED default/b")
        await wait_event(socket, "ADDED default/b")
        informers.end_streams()
        await of_team.task
        await everything.task
        await socket.task


async def test_client_that_was_passed_stays_open(server: APIServer) -> None:
    async with Client.from_url(server.url) as client:
        informers = WebInformers(client)
        maps = informers.for_resource("v1", "configmaps")
        async with informers.lifespan():
            await maps.informer.wait_synced(30)
        assert (await client.get_json("/api/v1/namespaces/default/configmaps/a"))["metadata"]["name"] == "a"


async def test_use_before_the_start_says_what_is_missing(server: APIServer) -> None:
    informers, maps = informers_of(server)
    for use in (lambda: maps.lister, lambda: maps.feed, lambda: maps.informer, lambda: informers.factory):
        with pytest.raises(InformerError, match=r"pass lifespan=informers\.lifespan"):
            use()
    request = Request(ChangeStream(maps))
    await request.task
    assert (request.status, "has not started" in request.body) == (503, True)
    without = informers.for_resource("v1", "secrets")
    async with informers.lifespan():
        with pytest.raises(ConfigError, match="declare it with history=1000"):
            _ = without.feed
        with pytest.raises(AlreadyStartedError, match="before the application starts"):
            informers.for_resource("v1", "pods")
        with pytest.raises(AlreadyStartedError, match="for another application"):
            async with informers.lifespan():
                pass
        assert maps.informer.name == "configmaps"


async def test_failed_start_can_be_repeated(server: APIServer) -> None:
    informers = WebInformers(lambda: Client.from_url(server.url))
    informers.for_resource("v1", "configmaps", label_selectr="x")  # type: ignore[call-overload]
    for _ in range(2):
        with pytest.raises(TypeError, match="label_selectr"):
            async with informers.lifespan():
                pass


async def test_signal_ends_streams_before_the_server_acts(server: APIServer) -> None:
    informers, maps = informers_of(server)
    received: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    try:
        own = signal.getsignal(signal.SIGTERM)
        async with informers.lifespan():
            request = Request(ChangeStream(maps))
            await wait_event(request, "SYNCED")
            signal.raise_signal(signal.SIGTERM)
            async with asyncio.timeout(20):
                await request.task
            assert received == [signal.SIGTERM]
        assert signal.getsignal(signal.SIGTERM) is own
    finally:
        signal.signal(signal.SIGTERM, before)


async def test_lifespan_works_in_a_thread_that_gets_no_signals(server: APIServer) -> None:
    informers = WebInformers(lambda: Client.from_url("http://127.0.0.1:1"))
    informers.for_resource("v1", "configmaps")

    async def start_and_end() -> None:
        async with informers.lifespan():
            assert informers.healthy()

    await asyncio.to_thread(lambda: asyncio.run(start_and_end()))


@asynccontextmanager
async def aiohttp_app(server: APIServer) -> AsyncIterator[tuple[TestClient[Any, Any], WebInformers]]:
    informers, maps = informers_of(server)
    app = web.Application()
    setup(app, informers, prefix="/kube")

    async def events(request: web.Request) -> web.StreamResponse:
        return await stream_changes(request, maps, where=lambda obj: obj.name != "hidden", keep_alive=0.1)

    app.add_routes([web.get("/events", events)])
    async with TestClient(TestServer(app)) as http:
        yield http, informers


async def test_aiohttp_app_streams_and_answers_probes(server: APIServer) -> None:
    async with aiohttp_app(server) as (http, informers):
        assert (await http.get("/kube/livez")).status == 200
        answer = await http.get("/events", headers={"Last-Event-ID": "other-1"})
        assert answer.headers["X-Accel-Buffering"] == "no"
        fields: list[bytes] = []
        while b"id" not in fields:
            fields.append((await answer.content.readuntil(b"\n\n")).split(b":")[0])
        assert [field for field in fields if field] == [b"retry", b"data", b"data", b"id"]
        server.create("v1", "configmaps", config_map("hidden"))
        server.create("v1", "configmaps", config_map("b"))
        async with asyncio.timeout(20):
            while b"default/b" not in (line := await answer.content.readuntil(b"\n\n")):
                assert b"hidden" not in line
        assert (await http.get("/events", params={"labelSelector": "a in"})).status == 400
        assert (await http.get("/kube/readyz")).status == 200
        informers.end_streams()
        await answer.content.read()
        assert answer.content.at_eof()


async def test_aiohttp_app_speaks_websocket(server: APIServer) -> None:
    async with aiohttp_app(server) as (http, informers):
        async with http.ws_connect("/events") as socket:
            messages = [await socket.receive_json()]
            while messages[-1]["type"] != "SYNCED":
                messages.append(await socket.receive_json())
            seen = [message["type"] for message in messages if message["type"] != "BOOKMARK"]
            assert seen == ["RESET", "ADDED", "SYNCED"]
            last = messages[-1]["id"]
            assert (await socket.receive_json()) == {"type": "BOOKMARK", "id": last}
        server.create("v1", "configmaps", config_map("b"))
        async with http.ws_connect(f"/events?lastEventId={last}") as socket:
            added = await socket.receive_json()
            while added["type"] == "BOOKMARK":
                added = await socket.receive_json()
            assert (added["type"], added["key"]) == ("ADDED", "default/b")
            informers.end_streams()
            async with asyncio.timeout(20):
                while (message := await socket.receive()).type == WSMsgType.TEXT:
                    assert msgspec.json.decode(message.data)["type"] == "BOOKMARK"
            assert message.type == WSMsgType.CLOSE


async def test_plain_lifespan_serves_as_cleanup_context_of_aiohttp(server: APIServer) -> None:
    informers, maps = informers_of(server)
    app = web.Application()
    app.cleanup_ctx.append(informers.lifespan)
    async with TestClient(TestServer(app)):
        await maps.informer.wait_synced(30)
    with pytest.raises(InformerError):
        _ = maps.informer
