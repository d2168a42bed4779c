"""A closed client has no open connection, even if the server does not answer."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aioinformer import Client
from aioinformer._core.tasks import finish
from aioinformer.client.sockets import Sockets

from .clusters import Authority, write_kubeconfig


class Deaf:
    """A TLS server that stops answering after the handshake, and never answers a TLS shutdown.

    Attributes:
        url: Where it is.
        greeted: Set once hands were shaken.
        left: Set once its client's connection has ended.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self.url = ""
        self.greeted = asyncio.Event()
        self.left = asyncio.Event()

    async def enter(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self._context.wrap_bio(incoming, outgoing, server_side=True)
        with contextlib.suppress(OSError):
            while True:
                incoming.write(await reader.read(65536))
                try:
                    tls.do_handshake()
                except ssl.SSLWantReadError:
                    writer.write(outgoing.read())
                else:
                    break
            writer.write(outgoing.read())
            self.greeted.set()
            while await reader.read(65536):
                pass
        self.left.set()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


@asynccontextmanager
async def deaf(authority: Authority) -> AsyncIterator[Deaf]:
    made = Deaf(authority.server_context())
    server = await asyncio.start_server(made.enter, "127.0.0.1", 0)
    made.url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield made


async def test_cancelled_request_leaves_no_connection(library: str, tmp_path: Path) -> None:
    authority = Authority()
    async with deaf(authority) as server:
        path = write_kubeconfig(tmp_path / "config", server.url, None, ca=authority.pem)
        async with Client.from_kubeconfig(path=path, library=library) as client:
            asking = asyncio.create_task(client.get("/api"))
            await server.greeted.wait()
            await finish(asking)
            assert asking.cancelled()
        async with asyncio.timeout(20):  # without help it is half a minute
            await server.left.wait()


async def test_request_that_never_connected_leaves_no_connection(tmp_path: Path) -> None:
    """Closing returns at once: there is no connection."""
    sockets = Sockets()
    made = sockets((2, 1, 6, "", ("127.0.0.1", 1)))
    await sockets.close()
    made.close()
    await sockets.close()


async def test_a_machine_that_is_gone_is_noticed_within_45_s() -> None:
    """By keepalive probes, or by unacknowledged data; client-go uses HTTP/2 pings."""
    made = Sockets()((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 1)))
    with made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        idle, between, count = (
            made.getsockopt(socket.IPPROTO_TCP, getattr(socket, name))
            for name in (
                "TCP_KEEPIDLE" if hasattr(socket, "TCP_KEEPIDLE") else "TCP_KEEPALIVE",
                "TCP_KEEPINTVL",
                "TCP_KEEPCNT",
            )
        )
        assert idle + between * count <= 45
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            # Linux ends an idle connection at the first probe after this, whatever their count is.
            unacknowledged = made.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) / 1000
            assert idle < unacknowledged <= 45 - between
