"""A server that answers HTTP/1.1 with bytes that the test chooses, and helpers for realistic lines and bodies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(frozen=True)
class Asked:
    """A request: its query, first values only."""

    query: dict[str, str]

    @property
    def is_watch(self) -> bool:
        return self.query.get("watch") == "true"

    @property
    def is_stream(self) -> bool:
        """Whether it asks for the initial state as a stream."""
        return self.query.get("sendInitialEvents") == "true"


Answer = Callable[[Asked], AsyncIterator[bytes]]
"""The bytes that answer a request, HTTP and all; afterwards the connection is closed."""


class WireServer:
    """A server that sends the test's bytes and records the requests.

    Attributes:
        answer: Yields the bytes of each response; may be changed at any time.
        asked: The requests, oldest first.
        url: Its URL.
    """

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.asked: list[Asked] = []
        self.url = ""
        self._open: set[asyncio.Task[None]] = set()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            # RuntimeError is uvloop's word for a connection that has gone.
            with suppress(OSError, RuntimeError, asyncio.IncompleteReadError, asyncio.CancelledError):
                head = await reader.readuntil(b"\r\n\r\n")
                target = head.split(b" ", 2)[1].decode()
                url = urlsplit(target)
                if not url.path.startswith("/api"):  # whether it is there
                    writer.write(whole(b"ok"))
                    return
                asked = Asked({name: values[0] for name, values in parse_qs(url.query).items()})
                self.asked.append(asked)
                async for data in self.answer(asked):
                    writer.write(data)
                    await writer.drain()
                writer.write_eof()
        finally:
            self._open.discard(task)
            writer.close()
            with suppress(OSError, RuntimeError):
                await writer.wait_closed()

    async def close(self) -> None:
        """Cut the open connections."""
        while self._open:
            for task in self._open:
                task.cancel()
            await asyncio.wait(self._open)


@asynccontextmanager
async def serve_wire(answer: Answer) -> AsyncIterator[WireServer]:
    """A WireServer on a free port of the loopback interface."""
    wire = WireServer(answer)
    server = await asyncio.start_server(wire.accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    wire.url = f"http://127.0.0.1:{port}"
    try:
        yield wire
    finally:
        server.close()
        await wire.close()
        await server.wait_closed()


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
OK = HEAD + b"\r\n"
"""The head of an answer whose body goes on until the connection ends."""


def chunk(data: bytes) -> bytes:
    """One chunk of ``Transfer-Encoding: chunked``."""
    return b"%x\r\n%s\r\n" % (len(data), data)


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
LAST_CHUNK = b"0\r\n\r\n"


def whole(body: bytes) -> bytes:
    """An answer of known length."""
    return HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body


def configmap(name: str, version: int | str, **data: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data}


def dumps(value: Any) -> bytes:
    """As the real server lays it out."""
    return json.dumps(value, separators=(",", ":")).encode()


def line(kind: str, obj: Any) -> bytes:
    """A line of a watch, with its newline."""
    return dumps({"type": kind, "object": obj}) + b"\n"


def bookmark(version: int | str, *, closing: bool = False) -> bytes:
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    if closing:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return line("BOOKMARK", {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata})


def body_of(
    items: Iterable[dict[str, Any]], version: int | str, token: str = "", kind: str = "ConfigMapList"
) -> bytes:
    """The body of a LIST; built-in items carry no apiVersion and kind."""
    bare = [
        {name: value for name, value in item.items() if name not in ("kind", "apiVersion")} for item in items
    ]
    metadata: dict[str, Any] = {"resourceVersion": str(version)}
    if token:
        metadata["continue"] = token
    return dumps({"kind": kind, "apiVersion": "v1", "metadata": metadata, "items": bare}) + b"\n"


def failure(code: int, reason: str, **more: Any) -> dict[str, Any]:
    """A Status."""
    return {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": f"it is {reason}",
        "reason": reason, "code": code, **more,
    }  # fmt: skip
