from __future__ import annotations

import asyncio
import gc
import importlib
import inspect
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from aioinformer import ApiError, Client, ConfigError, ListOptions, ListWatch, TransportError
from aioinformer.client.health import PATH
from aioinformer.client.sessions import Sessions
from aioinformer.client.transport import Change

from ..listwatch.streams import (
    EVENT,
    POD_LIST,
    begin,
    json_of,
    serve,
)
from ..steps import run_during, turns
from .clusters import Authority, serve_guarded


@pytest.fixture
def make(library: str) -> Callable[..., Any]:
    """Return a function that makes the user's ApiClient."""
    package = importlib.import_module(f"{library}.client")

    def make(url: str, token: str | None = None, ca: str | None = None) -> Any:
        configuration = package.Configuration(host=url)
        configuration.ssl_ca_cert = ca
        if token is not None:
            configuration.api_key["BearerToken"] = f"Bearer {token}"
        configuration.connection_pool_maxsize = 1
        return package.ApiClient(configuration)

    return make


async def answer(request: web.Request) -> web.StreamResponse:
    if "watch" not in request.query:
        return json_of(POD_LIST)
    opened = await begin(request)
    await opened.write(EVENT)
    return opened


def own_connections(api_client: Any) -> int:
    """Return the connections in the pool of the user's own session."""
    session = api_client.rest_client.pool_manager
    return sum(map(len, session.connector._conns.values())) if session is not None else 0


async def test_a_wrapped_api_client_keeps_its_connections(make: Callable[..., Any]) -> None:
    async with serve(answer) as server, make(server.url, "secret") as api_client:
        api_client.set_default_header("Impersonate-User", "ada")
        async with Client.wrap(api_client) as client:
            assert client.server == server.url
            pods = ListWatch.for_resource(client, "v1", "pods")
            await pods.list()
            streams: list[Any] = [await pods.watch(ListOptions()) for _ in range(5)]  # its pool holds one
            for stream in streams:
                await stream.aclose()
            api_client.set_default_header("Impersonate-User", "grace")
            await pods.list()
        assert own_connections(api_client) == 0
        users = [request.headers["Impersonate-User"] for request in server.requests]
        assert users == ["ada"] * 6 + ["grace"]
        assert set(server.tokens) == {"Bearer secret"}
        agents = {request.headers["User-Agent"].partition("/")[0] for request in server.requests}
        assert agents == {"aioinformer"}
        api_client.user_agent = "mine"
        async with Client.wrap(api_client) as client:
            await client.get("/api")
        assert server.requests[-1].headers["User-Agent"] == "mine"
        # Closing ours has not closed theirs.
        session = api_client.rest_client.pool_manager
        assert session is None or not session.closed


async def test_a_request_that_begins_while_connections_are_closed_has_its_own(
    make: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The sessions close after the last request, and over TLS that takes a moment."""
    begun = asyncio.Event()
    close_sessions = Sessions._close_sessions

    async def noted(self: Sessions) -> None:
        begun.set()
        await close_sessions(self)

    monkeypatch.setattr(Sessions, "_close_sessions", noted)

    async def second(client: Client, later: int) -> bytes:
        await begun.wait()
        await turns(later)
        return await client.get("/b")

    authority, ca = Authority(), tmp_path / "ca.pem"
    ca.write_bytes(authority.pem)
    async with (
        serve(answer, authority.server_context()) as server,
        make(server.url, ca=str(ca)) as api_client,
        asyncio.timeout(20),
    ):
        client = Client.of(api_client)
        for later in range(8):
            begun.clear()
            assert all(await asyncio.gather(client.get("/a"), second(client, later)))


async def test_a_bare_api_client_needs_no_closing_of_ours(make: Callable[..., Any]) -> None:
    over = asyncio.Event()

    async def keep_open(request: web.Request) -> web.StreamResponse:
        if "watch" in request.query:
            opened = await begin(request)
            await over.wait()
            return opened
        return json_of(POD_LIST)

    async with serve(keep_open) as server, make(server.url) as api_client:
        pods: Any = ListWatch.for_resource(api_client, "v1", "pods")
        listed = await asyncio.gather(*(pods.list() for _ in range(5)))
        assert all(len(page.items) == 1 for page in listed)
        streams: list[Any] = await asyncio.gather(*(pods.watch(ListOptions()) for _ in range(5)))
        sessions = pods.client.transport._opened.sessions
        assert sessions._by_kind
        while streams:
            await streams.pop().aclose()
        assert not sessions._by_kind  # nothing is left to close
        assert (await pods.list()).resource_version == "7"
        assert own_connections(api_client) == 0
        over.set()
    gone = weakref.ref(pods)
    del pods, sessions
    gc.collect()
    assert gone() is None


async def test_its_own_hook_keeps_its_token_current(make: Callable[..., Any]) -> None:
    asked = 0

    async def refresh(configuration: Any) -> None:
        nonlocal asked
        asked += 1
        configuration.api_key["BearerToken"] = "Bearer old" if asked < 3 else "Bearer new"

    async with serve_guarded("old") as (server, guard), make(server.url, "stale") as api_client:
        if not inspect.iscoroutinefunction(api_client.configuration.auth_settings):
            pytest.skip("this version of the library awaits no hook")
        api_client.configuration.refresh_api_key_hook = refresh
        pods = ListWatch.for_resource(api_client, "v1", "pods")
        await pods.list()
        guard.token = "new"
        await pods.list()
    assert server.tokens == ["Bearer old", "Bearer old", "Bearer new"]


async def test_a_wrapped_401_without_a_hook(make: Callable[..., Any]) -> None:
    async with serve_guarded("right") as (server, _), make(server.url, "wrong") as api_client:
        with pytest.raises(ApiError, match=r"401"):
            await ListWatch.for_resource(api_client, "v1", "pods").list()
        assert len(server.requests) == 1


async def test_a_wrapped_token_that_no_header_can_carry(make: Callable[..., Any]) -> None:
    async with serve(answer) as server, make(server.url, "to\nken") as api_client:
        with pytest.raises(ConfigError, match=r"the request is invalid"):
            await ListWatch.for_resource(api_client, "v1", "pods").list()


async def test_a_closed_api_client_cannot_be_wrapped(make: Callable[..., Any], library: str) -> None:
    if library == "kubernetes.aio":
        pytest.skip("its ApiClient opens again")
    api_client = make("http://127.0.0.1:1")
    await api_client.close()
    with pytest.raises(ConfigError, match=r"closed"):
        await Client.wrap(api_client).open()


async def test_a_subclass_is_an_api_client_too(make: Callable[..., Any]) -> None:
    async with serve(answer) as server, make(server.url) as plain:

        class Mine(type(plain)):  # type: ignore[misc]
            pass

        async with Mine(plain.configuration) as api_client, Client.wrap(api_client) as client:
            assert await client.get("/api") == POD_LIST.encode()


async def test_retries_of_the_library_are_left_to_the_reflector(
    make: Callable[..., Any], library: str
) -> None:
    async def fail(request: web.Request) -> web.StreamResponse:
        return json_of("overloaded", 503)

    async with serve(fail) as server, make(server.url) as plain:
        plain.configuration.retries = 3
        async with type(plain)(plain.configuration) as api_client, Client.wrap(api_client) as client:
            with pytest.raises(ApiError, match=r"503"):
                await client.get("/api")
        assert len(server.requests) == 1


@pytest.mark.parametrize("change", [None, Change("POST", b"{}"), Change("DELETE")])
async def test_what_is_refused_for_now_is_sent_once_whatever_the_library_would_do(
    make: Callable[..., Any], change: Change | None
) -> None:
    """kubernetes.aio, if configured to, waits and retries; it treats a write as a GET."""

    async def shed(request: web.Request) -> web.StreamResponse:
        return json_of("later", 429, {"Retry-After": "0"})

    async with serve(shed) as server, make(server.url) as api_client:
        api_client.configuration.client_go_retries = True
        async with Client.wrap(api_client) as client:
            with pytest.raises(ApiError, match=r"429 TooManyRequests: later"):
                await (client.send(change, "/api") if change else client.get("/api"))
        assert len(server.requests) == 1
        assert api_client.configuration.client_go_retries


async def test_headers_of_a_wrapped_api_clients_session_are_sent(
    make: Callable[..., Any], library: str
) -> None:
    if library == "kubernetes_asyncio":
        pytest.skip("it has no such option")
    async with serve(answer) as server, make(server.url) as api_client:
        api_client.configuration.client_session_kwargs = {"headers": {"X-Tenant": "blue"}}
        async with Client.wrap(api_client) as client:
            await client.get("/api")
            await (await client.stream("/api")).aclose()
    assert [request.headers["X-Tenant"] for request in server.requests] == ["blue"] * 2


async def test_hanging_calls_do_not_block_probes(
    make: Callable[..., Any],
) -> None:
    asked, over = asyncio.Event(), asyncio.Event()

    async def hang(request: web.Request) -> web.StreamResponse:
        if request.path != PATH:
            asked.set()
            await over.wait()
        return json_of("{}")

    async with (
        serve(hang) as server,
        make(server.url) as api_client,
        Client.wrap(api_client) as client,
        run_during(client.send(Change("PUT", b"{}"), "/x")),
    ):
        await asked.wait()  # its pool holds one
        try:
            async with asyncio.timeout(4):
                await client.health.until_reachable(TransportError("the watch has ended"))
        finally:
            over.set()
