"""resolver.py: an application that occupies its threads does not delay the library."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from aioinformer import Client, TransportError
from aioinformer.client.resolver import Resolver

from ..listwatch.streams import json_of, serve
from ..steps import full_default_executor
from .clusters import Authority, jwt, serve_guarded, write_kubeconfig
from .test_oidc import endpoints_of, refreshable


async def ok(request: web.Request) -> web.StreamResponse:
    return json_of("{}")


async def test_host_names_are_resolved_while_the_default_executor_is_full(library: str) -> None:
    async with serve(ok) as server, full_default_executor():
        url = server.url.replace("127.0.0.1", "localhost")
        async with Client.from_url(url, library=library) as client:
            assert await client.get("/api", timeout=10) == b"{}"


async def test_oidc_refreshes_while_the_default_executor_is_full(library: str, tmp_path: Path) -> None:
    authority, token = Authority(), jwt(4_000_000_000)

    async def identity_provider(request: web.Request) -> web.StreamResponse:
        if request.path == "/token":
            return json_of(json.dumps({"id_token": token}))
        endpoints: web.Response = endpoints_of(issuer)
        return endpoints

    async with (
        serve_guarded(token) as (server, _),
        serve(identity_provider) as provider,
        full_default_executor(),
    ):
        issuer = provider.url.replace("127.0.0.1", "localhost")
        path = write_kubeconfig(tmp_path / "config", server.url, refreshable(issuer, authority))
        async with asyncio.timeout(20), Client.from_kubeconfig(path=path, library=library) as client:
            await client.get("/api")


async def test_error_names_a_host_that_is_still_being_resolved(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()

    def hang(*args: Any, **options: Any) -> Any:
        over.wait()
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    async with Client.from_url("http://api.example.com", library=library) as client:
        says = r"no connection within 0\.2 seconds: the host name api\.example\.com is not resolved yet"
        for _ in range(2):  # the second waits for the lookup of the first
            with pytest.raises(TransportError, match=says):
                await client.get("/api", timeout=0.2)
        over.set()
        with pytest.raises(TransportError, match=r"cannot connect: .*Name or service not known"):
            await client.get("/api", timeout=10)


async def test_resolver_finds_what_asyncio_finds() -> None:
    for host in ("localhost", "127.0.0.1", "::1"):
        theirs = await asyncio.get_running_loop().getaddrinfo(host, 80, type=socket.SOCK_STREAM)
        ours = await Resolver().resolve(host, 80)
        assert {(address["family"], address["host"]) for address in ours} <= {
            (info[0], info[4][0]) for info in theirs
        }
        assert ours
        assert {address["port"] for address in ours} == {80}
