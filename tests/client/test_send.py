"""Client.send: a change is sent once and unchanged, with either library."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import pytest
from aiohttp import web

from aioinformer import ApiError, Client, ConfigError, TransportError
from aioinformer.client import sessions
from aioinformer.client.transport import Change

from ..listwatch.streams import json_of, serve
from .clusters import UNAUTHORIZED, Authority, write_kubeconfig

STATUS = '{"kind":"Status","code":%d,"reason":"%s","message":"no"}'

BODIES = {
    "POST": ("application/json", b'{"a":  1, "b": null, "c": 1e3}'),
    "PUT": ("application/json", b'{"a":"\xc3\xa4"}'),
    "PATCH": ("application/json-patch+json", b'[ {"op":"remove","path":"/a"} ]'),
    "DELETE": ("application/json", b'{"kind":"DeleteOptions"}'),
}


@pytest.mark.parametrize("method", BODIES)
async def test_the_body_arrives_byte_by_byte(library: str, method: str) -> None:
    content_type, body = BODIES[method]

    async def answer(request: web.Request) -> web.StreamResponse:
        assert await request.read() == body
        assert request.headers["Content-Type"] == content_type
        assert request.headers["Authorization"] == "Bearer secret"
        assert request.headers["User-Agent"].startswith("aioinformer")
        assert dict(request.query) == {"fieldManager": "a b", "force": "true"}
        return json_of(b'{"done":true}', 201)

    async with serve(answer) as server, Client.from_url(server.url, "secret", library=library) as client:
        query = [("fieldManager", "a b"), ("force", "true")]
        assert await client.send(Change(method, body, content_type), "/api/v1/x", query) == b'{"done":true}'
    assert [request.method for request in server.requests] == [method]


@pytest.mark.parametrize(
    "content_type", ["application/apply-patch+yaml", "application/strategic-merge-patch+json"]
)
async def test_patch_keeps_its_content_type(library: str, content_type: str) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return json_of(f'"{request.headers["Content-Type"]}"')

    async with serve(answer) as server, Client.from_url(server.url, library=library) as client:
        for body in (b"{}", b"[]"):
            assert (
                await client.send(Change("PATCH", body, content_type), "/x") == f'"{content_type}"'.encode()
            )


async def test_without_a_body_and_with_a_large_one(library: str) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        return json_of(str(len(await request.read())))

    async with serve(answer) as server, Client.from_url(server.url, library=library) as client:
        assert await client.send(Change("DELETE"), "/x") == b"0"
        # web.Server takes a megabyte by default: as much again as would be refused is read all the same.
        assert await client.send(Change("POST", b" " * 1_000_000), "/x") == b"1000000"


async def test_a_large_body_is_sent_in_pieces(library: str) -> None:
    received = 0

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal received
        async for chunk in request.content.iter_any():
            received += len(chunk)
        return json_of("{}")

    async with serve(answer) as server, Client.from_url(server.url, library=library) as client:
        await client.send(Change("POST", b" " * 3_000_000), "/x")
    assert received == 3_000_000


@pytest.mark.parametrize("method", BODIES)
async def test_a_401_renews_and_sends_once_more(library: str, tmp_path: Path, method: str) -> None:
    token = tmp_path / "token"
    done: list[bytes] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.headers["Authorization"] != "Bearer right":
            return json_of(UNAUTHORIZED, 401)
        done.append(await request.read())
        return json_of("{}")

    async with serve(answer) as server:
        path = write_kubeconfig(tmp_path / "config", server.url, {"tokenFile": str(token)})
        token.write_text("wrong")
        async with Client.from_kubeconfig(path=path, library=library) as client:
            token.write_text("right")
            await client.send(Change(method, b'{"a":1}'), "/x")
            token.write_text("wrong again")
            assert done == [b'{"a":1}']
    assert server.tokens == ["Bearer wrong", "Bearer right"]


@pytest.mark.parametrize("method", BODIES)
async def test_a_connection_that_breaks_is_not_tried_again(library: str, method: str) -> None:
    """Including a PUT or DELETE on a kept connection, which aiohttp would send again."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(request.method)
        if request.method == "GET":
            return json_of("{}")
        assert request.transport is not None
        request.transport.close()
        return json_of("{}")

    async with serve(answer) as server, Client.from_url(server.url, library=library) as client:
        await client.get("/x")
        with pytest.raises(TransportError):
            await client.send(Change(method, b"{}"), "/x")
    assert asked == ["GET", method]


async def test_a_refusal_is_an_error_and_sent_once(library: str) -> None:
    status = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        return json_of(STATUS % (status, "Why"), status, {"Retry-After": "7"})

    async with serve(answer) as server, Client.from_url(server.url, library=library) as client:
        for status in (403, 404, 409, 422, 429, 500, 503):
            server.requests.clear()
            with pytest.raises(ApiError) as raised:
                await client.send(Change("PUT", b"{}"), "/x")
            assert (raised.value.status, raised.value.reason, raised.value.retry_after) == (
                status,
                "Why",
                7.0,
            )
            assert len(server.requests) == 1


@pytest.mark.parametrize("method", BODIES)
async def test_a_redirect_is_not_followed(library: str, method: str) -> None:
    """It would become a GET, and its response would look like the written object."""
    status = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/moved":
            return json_of('{"kind":"Status"}')
        return json_of("{}", status, {"Location": "/moved"})

    async with serve(answer) as server, Client.from_url(server.url, library=library) as client:
        for status in (301, 302, 303, 307, 308):
            server.requests.clear()
            with pytest.raises(ApiError, match=r"redirects to /moved.*final URL") as raised:
                await client.send(Change(method, b"{}"), "/x")
            assert raised.value.status == status
            assert [request.method for request in server.requests] == [method]
            assert await client.get("/x") == b'{"kind":"Status"}'


async def test_all_of_an_answer_has_to_be_there_in_time(library: str) -> None:
    asked = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.set()
        response = web.StreamResponse()
        await response.prepare(request)
        while True:  # never silent, and never done
            await response.write(b" ")
            await asyncio.sleep(0.01)

    async with serve(answer) as server, Client.from_url(server.url, library=library) as client:
        with pytest.raises(TransportError, match=r"no answer within 0\.3 seconds"):
            await client.send(Change("POST", b"{}"), "/x", timeout=0.3)
        assert asked.is_set()
        with pytest.raises(TransportError):
            await client.send(Change("POST", b"{}"), "/x", timeout=0.0)


async def test_after_closing(library: str) -> None:
    client = Client.from_url("http://127.0.0.1:1", library=library)
    with pytest.raises(TransportError, match=r"cannot connect"):
        await client.send(Change("POST", b"{}"), "/x")
    await client.close()
    with pytest.raises(ConfigError, match=r"closed"):
        await client.send(Change("POST", b"{}"), "/x")


@pytest.mark.parametrize("is_tls", [False, True])
async def test_idle_connection_is_not_reused_after_the_loop_was_blocked_for_longer(
    library: str, tmp_path: Path, is_tls: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server ends idle connections, and a CPU-bound handler blocks the event loop that would read that."""
    monkeypatch.setattr(sessions, "IDLE_CONNECTION_SECONDS", 0.2)
    authority = Authority()
    context = authority.server_context() if is_tls else None
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    asked: list[bytes] = []
    close, closed = threading.Event(), threading.Event()

    def serve(listener: socket.socket) -> None:
        for _ in range(2):
            connection, _ = listener.accept()
            with (
                connection,
                context.wrap_socket(connection, True) if context else nullcontext(connection) as plain,
            ):
                asked.append(plain.recv(65536))
                plain.sendall(answer)
                close.wait(30)
            closed.set()

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor() as threads:
        listener.settimeout(10)
        serving_ended = threads.submit(serve, listener)
        url = f"{'https' if is_tls else 'http'}://127.0.0.1:{listener.getsockname()[1]}"
        path = write_kubeconfig(
            tmp_path / "config", url, {"token": "t"}, ca=authority.pem if is_tls else None
        )
        async with Client.from_kubeconfig(path=path, library=library) as client:
            await client.get("/x")
            close.set()
            assert closed.wait(30)  # blocks the loop
            time.sleep(0.3)  # noqa: ASYNC251
            assert await client.send(Change("PATCH", b"{}"), "/x") == b"{}"
        await asyncio.to_thread(serving_ended.result, 30)
    assert [request.split(b" ", 1)[0] for request in asked] == [b"GET", b"PATCH"]
