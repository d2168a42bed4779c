"""library_transport.py: credentials are renewed once for all requests."""

from __future__ import annotations

import asyncio
import threading
import traceback
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from aioinformer import ApiError, Client, ConfigError, ListOptions, ListWatch, TransportError
from aioinformer.client import library_transport
from aioinformer.client.credentials import Access, WallClock
from aioinformer.client.kubeconfig import KubeConfig
from aioinformer.client.libraries import Library, library_named
from aioinformer.client.library_transport import LibraryTransport
from aioinformer.client.sessions import LONGEST_HEADER
from aioinformer.client.transport import Change
from aioinformer.errors import ClientClosedError, WrongEventLoopError

from ..listwatch.streams import FakeServer
from ..steps import until
from .clusters import Plugin, jwt, on_clock, serve_guarded, wait_renewed, write_kubeconfig
from .wire import HEAD, Asked, serve_wire


async def test_a_401_reads_the_token_file_again(library: str, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old\n")
    path = write_kubeconfig(tmp_path / "config", "http://x", {"tokenFile": "token"})
    async with serve_guarded("old") as (server, guard):
        write_kubeconfig(path, server.url, {"tokenFile": "token"})
        async with Client.from_kubeconfig(path=path, library=library) as client:
            pods = ListWatch.for_resource(client, "v1", "pods")
            await pods.list()
            guard.token = "new"
            token.write_text("new\n")
            stream: Any = await pods.watch(ListOptions())
            assert len([event async for event in stream]) == 1
            await stream.aclose()
            await pods.list()
    assert server.tokens == ["Bearer old", "Bearer old", "Bearer new", "Bearer new"]


async def test_a_second_401_is_an_api_error(library: str, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("wrong")
    async with serve_guarded("right") as (server, _):
        path = write_kubeconfig(tmp_path / "config", server.url, {"tokenFile": "token"})
        async with Client.from_kubeconfig(path=path, library=library) as client:
            (tmp_path / "token").write_text("wrong again")
            with pytest.raises(ApiError, match=r"get /api: 401 Unauthorized: Unauthorized"):
                await client.get_json("/api")
            assert server.tokens == ["Bearer wrong", "Bearer wrong again"]
            with pytest.raises(ApiError, match=r"get /api: 401 Unauthorized: Unauthorized"):
                await client.get_json("/api")
            assert len(server.requests) == 3  # there is no other token to show
            (tmp_path / "token").unlink()
            with pytest.raises(ApiError, match=r"get /api: 401 Unauthorized: Unauthorized"):
                await client.get_json("/api")
            gone = r"401 Unauthorized: .*token \(its last content, as it cannot be read any more\)"
            with pytest.raises(ApiError, match=gone) as caught:
                await client.get_json("/api")
            assert caught.value.status == 401


async def test_a_fixed_token_is_not_tried_twice(library: str) -> None:
    async with (
        serve_guarded("right") as (server, _),
        Client.from_url(server.url, "wrong", library=library) as client,
    ):
        with pytest.raises(ApiError, match=r"401"):
            await client.get("/api")
        assert len(server.requests) == 1


async def test_many_requests_refused_at_once_renew_once(library: str, tmp_path: Path) -> None:
    plugin = Plugin(tmp_path)
    plugin.gives(token="one")
    async with serve_guarded("one") as (server, guard):
        path = write_kubeconfig(tmp_path / "config", server.url, plugin.user())
        async with Client.from_kubeconfig(path=path, library=library) as client:
            await client.get("/api")
            guard.token = "two"
            plugin.gives(token="two")
            await asyncio.gather(*(client.get("/api") for _ in range(50)))
            assert len(plugin.runs) == 2
            guard.token = "three"
            plugin.says("fail")
            results = await asyncio.gather(*(client.get("/api") for _ in range(50)), return_exceptions=True)
            assert all(isinstance(result, ApiError) and result.status == 401 for result in results)
            assert len(plugin.runs) == 3


def was_asked(server: FakeServer, times: int) -> bool:
    return len(server.requests) == times


async def test_plugin_may_run_longer_than_a_request_waits(library: str, tmp_path: Path) -> None:
    """Such as an elector's tries, or probes after a 401."""
    plugin = Plugin(tmp_path)
    plugin.gives(token="one")
    async with serve_guarded("one") as (server, guard):
        path = write_kubeconfig(tmp_path / "config", server.url, plugin.user())
        async with Client.from_kubeconfig(path=path, library=library) as client:
            guard.token = "two"
            plugin.says("wait")
            for number in range(3):
                asking = asyncio.ensure_future(client.get("/api"))
                if number == 0:
                    await plugin.hangs(asking)
                await until(partial(was_asked, server, number + 1))
                asking.cancel()
                await asyncio.wait([asking])
            plugin.gives(token="two")
            await client.get("/api")
            assert len(plugin.runs) == 2


async def test_every_request_waits_for_credentials_by_its_own_deadline(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plugin continues, for later requests."""
    monkeypatch.setattr(library_transport, "READ_TIMEOUT", 0.2)
    plugin, now = Plugin(tmp_path), datetime.now(UTC)
    wall, late = now.timestamp(), "no answer within 0.2 seconds: the credentials were not loaded in time"

    def gives(token: str) -> None:
        guard.token = token
        plugin.gives(token=token, expirationTimestamp=datetime.fromtimestamp(wall + 600, UTC).isoformat())

    async with serve_guarded("one") as (server, guard):
        path = write_kubeconfig(tmp_path / "config", server.url, plugin.user())
        client = on_clock(KubeConfig(path=path), library, lambda: wall)
        requests, never = 0, asyncio.get_running_loop().create_future()
        asks = (
            partial(client.get, "/api", timeout=0.2),
            partial(client.get_json, "/api", timeout=0.2),
            partial(client.send, Change("PUT", b"{}"), "/api", timeout=0.2),
            partial(client.stream, "/api"),
        )
        async with asyncio.timeout(30):
            for token in ("one", "two"):  # which has not been had, and which has expired
                plugin.says("wait")
                for ask in asks:
                    with pytest.raises(TransportError, match=late):
                        await ask()
                assert len(server.requests) == requests
                await plugin.hangs(never)
                gives(token)
                await client.get("/api", timeout=20)
                requests = len(server.requests)
                wall += 601
            gives("three")
            await client.get("/api", timeout=20)
            plugin.says("wait")
            guard.token = "four"
            with pytest.raises(ApiError, match=r"401 .*could not be renewed: no answer within 2 seconds"):
                await client.get("/api", timeout=2)
            await plugin.hangs(never)
            gives("four")
            await client.get("/api", timeout=20)
            assert len(plugin.runs) == 4
        await client.close()


async def test_files_are_read_while_the_default_executor_is_full(library: str, tmp_path: Path) -> None:
    wall, token, over = 1_000_000.0, tmp_path / "token", threading.Event()
    token.write_text("one")
    async with serve_guarded("two") as (server, _):
        path = write_kubeconfig(tmp_path / "config", server.url, {"tokenFile": str(token)})
        client = on_clock(KubeConfig(path=path), library, lambda: wall)
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        busy = asyncio.ensure_future(asyncio.to_thread(over.wait))
        try:
            async with client:
                token.write_text("two")
                await client.get("/api")
        finally:
            over.set()
            await busy


async def test_expiry_is_read_from_a_jwt(library: str, tmp_path: Path) -> None:
    plugin, wall = Plugin(tmp_path), 1_000_000.0
    plugin.gives(token=jwt(wall + 600))
    async with serve_guarded(jwt(wall + 600)) as (server, guard):
        path = write_kubeconfig(tmp_path / "config", server.url, plugin.user())
        async with on_clock(KubeConfig(path=path), library, lambda: wall) as client:
            await client.get("/api")
            wall += 550
            plugin.gives(token=jwt(wall + 600))
            await client.get("/api")
            await wait_renewed(client)
            guard.token = jwt(wall + 600)
            await client.get("/api")
            assert len(plugin.runs) == 2
            wall += 601
            guard.token = jwt(wall + 600)
            plugin.gives(token=guard.token)
            await client.get("/api")
    assert len(server.requests) == 4


async def test_jwt_with_an_impossible_expiry(library: str) -> None:
    token = jwt(10**400)
    async with (
        serve_guarded(token) as (server, _),
        Client.from_url(server.url, token, library=library) as client,
    ):
        await client.get("/api")


async def test_a_token_file_is_read_again_after_a_minute(library: str, tmp_path: Path) -> None:
    wall, token = 1_000_000.0, tmp_path / "token"
    token.write_text("one")
    async with serve_guarded("one") as (server, guard):
        path = write_kubeconfig(tmp_path / "config", server.url, {"tokenFile": str(token)})
        async with on_clock(KubeConfig(path=path), library, lambda: wall) as client:
            await client.get("/api")
            token.write_text("two")
            path.unlink()  # nothing but the token is read
            wall += 61
            await client.get("/api")
            await wait_renewed(client)
            guard.token = "two"
            await client.get("/api")
            token.unlink()
            wall += 61
            await client.get("/api")
    assert server.tokens == ["Bearer one", "Bearer one", "Bearer two", "Bearer two"]


async def test_a_user_who_is_changed_while_a_client_runs(library: str, tmp_path: Path) -> None:
    """A reload applies another token file and another impersonated user, also if the old file is gone."""
    wall, path = 1_000_000.0, tmp_path / "config"
    async with serve_guarded("one") as (server, guard):

        def change(token: str, name: str) -> None:
            guard.token = token
            (tmp_path / token).write_text(token)
            write_kubeconfig(path, server.url, {"tokenFile": token, "as": name})

        change("one", "ada")
        async with on_clock(KubeConfig(path=path), library, lambda: wall) as client:
            await client.get("/api")
            change("two", "grace")
            await client.get("/api")
            wall += 61
            await client.get("/api")
            await wait_renewed(client)
            await client.get("/api")
            (tmp_path / "two").unlink()
            change("three", "joan")
            wall += 61
            await client.get("/api")
    tokens = ["one", "one", "two", "two", "two", "two", "three"]
    assert server.tokens == [f"Bearer {token}" for token in tokens]
    names = ["ada", "ada", "grace", "grace", "grace", "grace", "joan"]
    assert [request.headers["Impersonate-User"] for request in server.requests] == names


class Slow:
    """A source of credentials whose loads can be made slow."""

    is_renewable = True

    def __init__(self, url: str) -> None:
        self.given = asyncio.Event()
        self.given.set()
        self._url = url

    async def load(self, library: Library, wall: WallClock) -> Access:
        await self.given.wait()
        access = Access(library.configuration())
        access.configuration.host = self._url
        return access


async def test_credentials_that_come_after_a_close_are_not_those_of_the_next_opening(library: str) -> None:
    async with serve_guarded("secret") as (server, _):
        source = Slow(server.url)
        transport = LibraryTransport(source, library_named(library))
        client = Client(transport)
        await client.open()
        source.given.clear()
        renewing = asyncio.create_task(transport._renew(transport._opened))
        await asyncio.sleep(0)
        await client.close()
        opening = asyncio.create_task(client.open())
        await asyncio.sleep(0)
        source.given.set()
        with pytest.raises(ClientClosedError):
            await renewing
        await opening
        with pytest.raises(ApiError, match="401"):  # the server is asked
            await client.get("/api")
        await client.close()


@pytest.mark.parametrize("sent", [1, 9, 12, 17, 30, len(HEAD)])
async def test_an_answer_that_breaks_off_within_its_header_lines(library: str, sent: int) -> None:
    """aiohttp raises an error whose message is not text."""

    async def answer(asked: Asked) -> AsyncIterator[bytes]:
        yield HEAD[:sent]

    says = r"^http://127\.0\.0\.1:\d+: the connection ended within the response headers$"
    async with serve_wire(answer) as server, Client.from_url(server.url, library=library) as client:
        for ask in (
            partial(client.get, "/api"),
            partial(client.stream, "/api"),
            partial(client.send, Change("POST", b"{}"), "/api"),
            partial(client.send, Change("PUT", b"{}"), "/api"),
        ):
            with pytest.raises(TransportError, match=says):
                await ask()


def chain_of(error: BaseException | None) -> str:
    """Return all texts of an error and its causes that people and error reporters can see."""
    said = "".join(traceback.format_exception(error))
    while error is not None:
        said += repr(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return said


@pytest.mark.parametrize(
    "sent",
    [
        b"SSH-2.0\r\n\r\n",
        HEAD + b"Set-Cookie: secret" + b"x" * LONGEST_HEADER + b"\r\n\r\n",
        HEAD + b"Set-Cookie: secret\r\n",
        b"",
    ],
    ids=["no HTTP", "too long", "broken off", "nothing"],
)
async def test_no_error_holds_tokens_or_cookies(library: str, sent: bytes) -> None:
    """Neither the token that was sent, nor cookies."""

    async def answer(asked: Asked) -> AsyncIterator[bytes]:
        yield sent

    async with serve_wire(answer) as server, Client.from_url(server.url, "secret", library=library) as client:
        for ask in (
            partial(client.get_json, "/api"),
            partial(client.stream, "/api"),
            partial(client.send, Change("POST", b"{}"), "/api"),
            partial(client.send, Change("PUT", b"{}"), "/api"),
        ):
            with pytest.raises(TransportError) as caught:
                await ask()
            assert "secret" not in chain_of(caught.value)


async def test_no_error_holds_a_proxys_password(library: str, tmp_path: Path) -> None:
    async def answer(asked: Asked) -> AsyncIterator[bytes]:
        yield b"HTTP/1.1 407 No\r\n\r\n"

    async with serve_wire(answer) as proxy:
        for url in (proxy.url, "http://127.0.0.1:1"):
            by: Any = {"proxy-url": url.replace("//", "//ada:secret@")}
            path = write_kubeconfig(tmp_path / "config", "https://api.example.com", {"token": "secret"}, **by)
            async with Client.from_kubeconfig(path=path, library=library) as client:
                for ask in (partial(client.get, "/api"), partial(client.send, Change("PUT", b"{}"), "/api")):
                    said = rf"; requests go through the proxy {url} from proxy-url$"
                    with pytest.raises(TransportError, match=said) as caught:
                        await ask()
                    assert "secret" not in chain_of(caught.value)


@pytest.mark.parametrize("by_proxy", [False, True])
async def test_no_error_holds_the_password_of_an_unusable_url(
    library: str, monkeypatch: pytest.MonkeyPatch, by_proxy: bool
) -> None:
    """A host name that cannot be encoded."""
    server = url = "http://ada:secret@h\u00fcst.."
    if by_proxy:
        monkeypatch.setenv("HTTP_PROXY", url)
        server = "http://api.example.com"
    async with Client.from_url(server, library=library) as client:
        for ask in (partial(client.get, "/api"), partial(client.send, Change("PUT", b"{}"), "/api")):
            with pytest.raises(ConfigError, match="the request is invalid: http://h\u00fcst") as caught:
                await ask()
            assert "secret" not in chain_of(caught.value)


async def test_another_loop_cannot_close_the_client_while_its_loop_runs(library: str) -> None:
    async with (
        serve_guarded("right") as (server, _),
        Client.from_url(server.url, "right", library=library) as client,
    ):
        with ThreadPoolExecutor(1) as other_thread:
            closing = other_thread.submit(lambda: asyncio.run(client.close()))
            with pytest.raises(
                WrongEventLoopError, match=f"the client of {server.url} was opened in another event loop"
            ):
                await asyncio.wrap_future(closing)
        assert await client.get_json("/api")


async def test_another_loop_can_close_the_client_after_its_loop_ended(library: str) -> None:
    async with serve_guarded("right") as (server, _):
        client = Client.from_url(server.url, "right", library=library)
        with ThreadPoolExecutor(1) as other_thread:
            await asyncio.wrap_future(other_thread.submit(lambda: asyncio.run(client.open())))
        await client.close()
        with pytest.raises(ClientClosedError):
            await client.get_json("/api")
