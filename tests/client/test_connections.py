"""What aiohttp keeps from those who read from its connections, and from its pool."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from aioinformer import Client, ListOptions, ListWatch, TransportError
from aioinformer.client.transport import Change

from ..listwatch.streams import json_of, serving
from ..steps import turns
from .wire import CHUNKED, Asked, chunk, configmap, line, wired

LONG = chunk(b'{"a": "' + b"x" * 100)


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param((CHUNKED, LONG, b"zz\r\n"), id="the size of a chunk"),
        pytest.param((CHUNKED, LONG, b"5\r\nhelloworld"), id="the end of a chunk"),
        pytest.param((CHUNKED, LONG, b"0\r\nx\r\n: :\r\n\r\n"), id="a trailer"),
    ],
)
async def test_a_body_that_is_damaged_breaks_off_at_once(library: str, pieces: tuple[bytes, ...]) -> None:
    read = asyncio.Event()

    async def answer(asked: Asked) -> AsyncIterator[bytes]:
        yield pieces[0]
        await read.wait()
        for piece in pieces[1:]:
            yield piece
        await asyncio.Event().wait()  # the server keeps the connection, and says no more

    async with wired(answer) as server, Client.from_url(server.url, library=library) as client:
        body = await client.stream("/api")
        read.set()
        with pytest.raises(TransportError, match="the answer broke off") as caught:
            async with asyncio.timeout(5):
                async for _ in body:
                    pass
        assert caught.value.__cause__ is None  # aiohttp's quotes the body
        with pytest.raises(TransportError, match="the answer broke off"):
            await anext(body)
        await body.aclose()


async def test_a_watch_whose_framing_is_damaged_breaks_off_at_once(library: str) -> None:
    read = asyncio.Event()

    async def answer(asked: Asked) -> AsyncIterator[bytes]:
        yield CHUNKED + chunk(line("ADDED", configmap("a", 7)))
        await read.wait()
        yield b"zz\r\n"
        await asyncio.Event().wait()

    async with wired(answer) as server, Client.from_url(server.url, library=library) as client:
        watch = await ListWatch.for_resource(client, "v1", "configmaps").watch(
            ListOptions(resource_version="5")
        )
        assert await anext(watch)
        read.set()
        with pytest.raises(TransportError, match="the answer broke off"):
            async with asyncio.timeout(5):
                await anext(watch)
        await watch.aclose()  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "stray",
    [
        b"HTTP/1.1 408 Request Time-out\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n",
        b"no HTTP\r\n\r\n",
    ],
)
async def test_an_answer_that_nobody_asked_for_answers_nothing(library: str, stray: bytes) -> None:
    """It comes from load balancers that end an idle connection, and what is sent there then may never be seen."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return json_of(f'"{request.method} {request.path}"')

    async with serving(answer) as server, Client.from_url(server.url, library=library) as client:
        assert await client.get("/1") == b'"GET /1"'
        idle = server.requests[0].transport
        assert idle is not None
        idle.write(stray)
        await turns(10)  # it has come
        assert await client.send(Change("PUT", b"{}"), "/2") == b'"PUT /2"'
        assert await client.get("/3") == b'"GET /3"'
        assert server.requests[1].transport is not idle
        assert server.requests[2].transport is server.requests[1].transport
