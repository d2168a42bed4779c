"""Damaged answers, and idle connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
from aiohttp import web

from aioinformer import Client, TransportError
from aioinformer.client import sessions
from aioinformer.errors import IdleTimeoutError

from ..listwatch.streams import json_of, serve
from .wire import CHUNKED, Asked, chunk, serve_wire

LONG = chunk(b'{"a": "' + b"x" * 100)

DAMAGED = pytest.mark.parametrize(
    "pieces",
    [
        pytest.param((CHUNKED, LONG, b"zz\r\n"), id="the size of a chunk"),
        pytest.param((CHUNKED, LONG, b"5\r\nhelloworld"), id="the end of a chunk"),
        pytest.param((CHUNKED, LONG, b"0\r\nx\r\n: :\r\n\r\n"), id="a trailer"),
    ],
)


@DAMAGED
async def test_read_of_damaged_chunks_ends_by_the_silence_limit(
    library: str, pieces: tuple[bytes, ...]
) -> None:
    read = asyncio.Event()

    async def answer(asked: Asked) -> AsyncIterator[bytes]:
        yield pieces[0]
        await read.wait()
        for piece in pieces[1:]:
            yield piece
        await asyncio.Event().wait()  # the server keeps the connection open and sends nothing

    async with serve_wire(answer) as server, Client.from_url(server.url, library=library) as client:
        body = await client.stream("/api", idle_timeout=0.5)
        read.set()
        for _ in range(2):  # a later read fails the same way
            with pytest.raises(TransportError) as caught:
                async with asyncio.timeout(5):
                    async for _ in body:
                        pass
            assert "helloworld" not in repr(caught.value.__cause__)
        await body.aclose()


@DAMAGED
async def test_get_of_damaged_chunks_ends_by_its_timeout(library: str, pieces: tuple[bytes, ...]) -> None:
    async def answer(asked: Asked) -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece
        await asyncio.Event().wait()

    async with serve_wire(answer) as server, Client.from_url(server.url, library=library) as client:
        with pytest.raises(TransportError):
            async with asyncio.timeout(5):
                await client.get("/api", timeout=0.5)


async def test_silence_limit_counts_only_while_a_read_waits(library: str) -> None:
    sent = asyncio.Event()

    async def answer(asked: Asked) -> AsyncIterator[bytes]:
        yield CHUNKED + chunk(b"first")
        await sent.wait()
        yield chunk(b"second")
        await asyncio.Event().wait()

    async with serve_wire(answer) as server, Client.from_url(server.url, library=library) as client:
        body = await client.stream("/api", idle_timeout=0.3)
        assert await anext(body) == b"first"
        await asyncio.sleep(0.7)  # a slow reader is not a silent server
        sent.set()
        assert await anext(body) == b"second"
        with pytest.raises(IdleTimeoutError, match=r"the connection fell silent: no data for 0\.3 seconds"):
            await anext(body)
        await body.aclose()


async def test_idle_connection_is_reused_for_some_seconds_only(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load balancer that ends an idle connection may send 408 there: the next request must not take it."""
    monkeypatch.setattr(sessions, "IDLE_CONNECTION_SECONDS", 0.5)

    async def answer(request: web.Request) -> web.StreamResponse:
        return json_of(f'"{request.path}"')

    async with serve(answer) as server, Client.from_url(server.url, library=library) as client:
        for path in ("/1", "/2"):
            await client.get(path)
        first, second = (request.transport for request in server.requests)
        assert first is second
        await asyncio.sleep(0.7)
        assert first is not None
        with suppress(RuntimeError):  # uvloop's closed transport
            first.write(b"HTTP/1.1 408 Request Time-out\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        assert await client.get("/3") == b'"/3"'
        assert server.requests[2].transport is not first
