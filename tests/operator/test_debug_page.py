"""Reading a debug page, and what answers in its place."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from aioinformer import AioInformerError, TransportError
from aioinformer.operator.debug_page import LARGEST, reading_debug_page
from tests.kubernetes.process import free_ports

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serve(answer: Answer) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_get("/debug.json", answer)
    async with TestServer(app) as served:
        yield str(served.make_url("/"))


async def read(url: str, token: str = "", timeout: float = 10.0) -> object:
    async with reading_debug_page(url, token, timeout=timeout) as read_page:
        return await read_page()


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (401, "", "asks for a token that it accepts: pass --token-file"),
        (403, "ann may not\nget /debug.json", "answered 403: is it the metrics port? ann may not get /debug.json"),
        (404, "", "answered 404: is it the metrics port?"),
        (200, "<html>", "is no JSON"),
        (200, "[" * 100_000, "is no JSON"),
        (200, "[]", "is no debug page of aioinformer"),
        (200, '{"name": "other"}', "is no debug page of aioinformer"),
    ],
)  # fmt: skip
async def test_a_page_of_another_program_is_named(status: int, body: str, message: str) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status, text=body)

    async with serve(answer) as url:
        with pytest.raises(AioInformerError) as raised:
            await read(url)
    assert f"/debug.json {message}" in str(raised.value)


async def test_the_token_is_sent_and_a_redirect_is_not_followed() -> None:
    tokens = []

    async def answer(request: web.Request) -> web.Response:
        tokens.append(request.headers.get("Authorization"))
        raise web.HTTPFound("/debug.json")

    async with serve(answer) as url:
        with pytest.raises(AioInformerError, match="answered 302"):
            await read(url, "secret")
    assert tokens == ["Bearer secret"]


async def test_a_page_without_an_end_is_read_up_to_a_limit() -> None:
    sent = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(bytes(1 << 20))
            sent += 1 << 20

    async with serve(answer) as url:
        with pytest.raises(AioInformerError, match="more than 16,777,216 bytes"):
            await read(url)
    assert sent < 2 * LARGEST


async def test_a_page_is_not_decompressed() -> None:
    async def answer(request: web.Request) -> web.Response:
        assert request.headers["Accept-Encoding"] == "identity"
        bomb = gzip.compress(bytes(4 * LARGEST))
        return web.Response(body=bomb, headers={"Content-Encoding": "gzip"})

    async with serve(answer) as url:
        with pytest.raises(AioInformerError, match="is no JSON"):
            await read(url)


async def test_a_page_that_comes_byte_by_byte_has_one_timeout() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.01)

    async with serve(answer) as url:
        with pytest.raises(TransportError, match="cannot be read: TimeoutError"):
            await read(url, timeout=0.3)


async def test_nothing_that_answers_is_an_error_without_passwords() -> None:
    (port,) = free_ports(1)
    with pytest.raises(TransportError, match=f"^http://127.0.0.1:{port}/debug.json cannot be read") as raised:
        await read(f"http://ann:secret@127.0.0.1:{port}")
    assert "secret" not in str(raised.value)
