"""Answers that would fill the memory: compressed though no request asks for that, or without an end."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import AsyncIterator
from typing import Any

import pytest

from aioinformer import ApiError, Client, TransportError
from aioinformer.client import library_transport
from aioinformer.client.transport import Change

from .wire import HEAD, OK, Asked, serve_wire

BOMB = gzip.compress(b" " * 50_000_000)


@pytest.mark.parametrize("verb", ["get", "send", "stream"])
async def test_body_that_no_request_asks_to_compress_is_not_inflated(library: str, verb: str) -> None:
    async def answer(asked: Asked) -> AsyncIterator[bytes]:
        yield HEAD + b"Content-Encoding: gzip\r\n\r\n" + BOMB

    async with serve_wire(answer) as server, Client.from_url(server.url, library=library) as client:
        requests: dict[str, Any] = {
            "get": lambda: client.get("/apis"),
            "send": lambda: client.send(Change("POST", b"{}"), "/apis"),
            "stream": lambda: client.stream("/apis"),
        }
        tracemalloc.start()
        try:
            with pytest.raises(
                TransportError,
                match="the response is encoded as 'gzip', though the request does not accept that",
            ):
                await requests[verb]()
            assert tracemalloc.get_traced_memory()[1] < 10_000_000
        finally:
            tracemalloc.stop()


async def test_compressed_refusal_keeps_its_status(library: str) -> None:
    async def answer(asked: Asked) -> AsyncIterator[bytes]:
        yield b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Encoding: gzip\r\n\r\n" + BOMB

    async with serve_wire(answer) as server, Client.from_url(server.url, library=library) as client:
        with pytest.raises(ApiError) as caught:
            await client.get("/apis")
        assert (caught.value.status, caught.value.reason) == (403, "Forbidden")


@pytest.mark.parametrize("verb", ["get", "send"])
async def test_answer_without_end_is_given_up(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library_transport, "LONGEST_ANSWER", 1_000_000)

    async def answer(asked: Asked) -> AsyncIterator[bytes]:
        yield OK
        while True:
            yield b" " * 100_000

    async with serve_wire(answer) as server, Client.from_url(server.url) as client:
        with pytest.raises(TransportError, match="the response is larger than 1000000 bytes"):
            await (client.get("/apis") if verb == "get" else client.send(Change("POST", b"{}"), "/apis"))
