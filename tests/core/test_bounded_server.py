"""An HTTP server for strangers: what its clients can use up."""

from __future__ import annotations

import asyncio
import gc
import logging
import resource
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from aioinformer._core import bounded_server
from aioinformer._core.bounded_server import Body, BoundedServer
from aioinformer._core.failure_log import FIRST
from aioinformer.testing import eventually
from tests.operator.webhooks.certificates import Certificates

MEGABYTE = 1 << 20


class Served:
    """A server on a port of the loopback interface.

    Attributes:
        server: The server.
        port: Its port.
        release: Lets the answers to ``/slow`` go.
    """

    def __init__(self, **limits: int) -> None:
        self.server = BoundedServer(
            self._answer, name="tests", **{"connections": 100, "most_bytes": 100 * MEGABYTE, **limits}
        )
        self.port = 0
        self.running = 0
        self.release = asyncio.Event()

    async def _answer(self, request: web.BaseRequest, body: Body) -> web.Response:
        size = sum([len(chunk) async for chunk in body])
        self.running += 1
        if request.path == "/slow":
            await self.release.wait()
        if request.path == "/failing":
            raise ValueError("no answer")
        if request.path == "/large":
            return web.Response(body=b" " * (50 * MEGABYTE))
        return web.Response(text=f"{size}")

    async def connect(
        self, sent: bytes = b"", tls: ssl.SSLContext | None = None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=tls)
        writer.write(sent)
        await writer.drain()
        return reader, writer

    async def get(self, path: str = "/") -> str:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{self.port}{path}") as answer,
        ):
            return await answer.text()


@asynccontextmanager
async def serving_bounded(
    tls: Callable[[], ssl.SSLContext] | None = None, **limits: int
) -> AsyncIterator[Served]:
    served = Served(**limits)
    try:
        served.port = await served.server.listen("127.0.0.1", 0, "--port", tls=tls)
        yield served
    finally:
        served.release.set()
        await served.server.close(1.0)


async def is_closed(reader: asyncio.StreamReader) -> bool:
    """Return whether the server closes a connection within five seconds, without an answer."""
    async with asyncio.timeout(5):
        with suppress(ConnectionError):
            return await reader.read() == b""
    return True


async def end(*writers: asyncio.StreamWriter) -> None:
    for writer in writers:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


HALF_A_HEADER = b"GET / HTTP/1.1\r\nHost: a\r\nX: "
HALF_A_BODY = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99\r\n\r\nhalf"


@pytest.mark.parametrize(
    "sent", [b"", HALF_A_HEADER, HALF_A_BODY], ids=["nothing", "half a header", "half a body"]
)
async def test_a_slow_client_is_disconnected(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_server, "HEADERS", 0.1)
    monkeypatch.setattr(bounded_server, "BODY", 0.2)
    async with serving_bounded() as served:
        reader, writer = await served.connect(sent)
        assert await is_closed(reader)
        await end(writer)
        assert await served.get() == "0"


async def test_a_handshake_that_does_not_come_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_server, "HANDSHAKE", 0.1)
    files = Certificates(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.cert, files.key)
    async with serving_bounded(lambda: context) as served:
        reader, writer = await served.connect()
        assert await is_closed(reader)
        await end(writer)


async def test_a_client_that_does_not_read_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_server, "BODY", 0.3)
    async with serving_bounded() as served:
        _, writer = await served.connect(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
        await eventually(lambda: served.running == 1)
        await eventually(lambda: not served.server.connections)
        await end(writer)


async def test_silent_clients_do_not_keep_others_out() -> None:
    async with serving_bounded(connections=5) as served:
        silent = [await served.connect(HALF_A_HEADER) for _ in range(20)]
        for _ in range(3):
            assert await served.get() == "0"
        assert await is_closed(silent[0][0])
        assert len(served.server.connections) <= 5
        await end(*(writer for _, writer in silent))


async def test_answers_that_are_being_computed_are_not_cut_off() -> None:
    async with serving_bounded(connections=2) as served, asyncio.TaskGroup() as group:
        answers = [group.create_task(served.get("/slow")) for _ in range(2)]
        await eventually(lambda: served.running == 2)
        reader, writer = await served.connect()
        assert await is_closed(reader), "it is one too many"
        await end(writer)
        served.release.set()
        assert [await answer for answer in answers] == ["0", "0"]


async def test_large_bodies_give_way_to_small_ones() -> None:
    async with serving_bounded(most_bytes=4 * MEGABYTE) as served:
        head = f"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {50 * MEGABYTE}\r\n\r\n".encode()
        reader, largest = await served.connect(head + b" " * (3 * MEGABYTE))
        _, other = await served.connect(head + b" " * (2 * MEGABYTE))
        assert await is_closed(reader)
        async with aiohttp.ClientSession() as session:
            small = session.post(f"http://127.0.0.1:{served.port}/", data=b" " * 1000)
            async with small as answer:
                assert await answer.text() == "1000"
        await end(largest, other)


async def test_a_compressed_request_is_refused_unread() -> None:
    async with serving_bounded() as served, aiohttp.ClientSession() as session:
        answer = session.post(
            f"http://127.0.0.1:{served.port}/", data=b"x", headers={"Content-Encoding": "gzip"}
        )
        async with answer as refused:
            assert (refused.status, await refused.text()) == (415, "a request must not be compressed\n")
        assert served.running == 0


async def test_a_connection_serves_several_requests() -> None:
    async with serving_bounded(connections=1) as served, aiohttp.ClientSession() as session:
        for _ in range(3):
            async with session.post(f"http://127.0.0.1:{served.port}/", data=b"abc") as answer:
                assert await answer.text() == "3"
        assert len(served.server.connections) == 1


async def test_half_of_the_file_descriptors_stay_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (8, 100))
    async with serving_bounded() as served:
        silent = [await served.connect() for _ in range(10)]
        await eventually(lambda: 0 < len(served.server.connections) <= 4)
        assert await served.get() == "0"
        await end(*(writer for _, writer in silent))


@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_a_handshake_that_fails_leaves_no_buffers_to_the_garbage_collector(tmp_path: Path) -> None:
    files = Certificates(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.cert, files.key)

    def buffers() -> int:
        return sum(isinstance(obj, SSLProtocol) for obj in gc.get_objects())

    async with serving_bounded(lambda: context) as served:
        gc.collect()
        gc.disable()
        try:
            writers = [(await served.connect(b"\x16"))[1] for _ in range(10)]
            await eventually(lambda: buffers() == 10)
            await end(*writers)
            await eventually(lambda: buffers() == 0)
        finally:
            gc.enable()


async def test_the_end_closes_connections_in_every_state(tmp_path: Path) -> None:
    files = Certificates(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.cert, files.key)
    async with serving_bounded(lambda: context) as served:
        shaking = await served.connect()
        silent = await served.connect(tls=files.client_context())
        partial = await served.connect(HALF_A_BODY, tls=files.client_context())
        await eventually(lambda: len(served.server.connections) == 2)
    for reader, writer in (shaking, silent, partial):
        assert await is_closed(reader)
        await end(writer)


@pytest.mark.parametrize(
    ("request_", "status", "words"),
    [
        (b"GET /failing HTTP/1.1\r\nHost: a\r\n\r\n", 500, "ValueError: no answer"),
        (b"GET / HTTP/1.1\r\nHost: \x00\r\n\r\n", 400, "BadHttpMessage: 400"),
    ],
)
async def test_failed_requests_of_strangers_fill_no_log(
    request_: bytes, status: int, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving_bounded() as served:
        for _ in range(FIRST + 5):
            reader, writer = await served.connect(request_)
            assert f" {status} " in (await reader.readline()).decode()
            writer.close()
            await writer.wait_closed()
    lines = [record for record in caplog.records if record.levelno > logging.DEBUG]
    assert len(lines) == FIRST
    assert lines[0].getMessage().startswith(f"tests: Error handling request from 127.0.0.1: {words}")
    assert (lines[0].exc_info is not None) is (status == 500)
