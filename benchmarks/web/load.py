"""The load: requests over connections that it keeps, one after the other on each, and their latencies.

Run as ``python -m benchmarks.web.load PORT CONNECTIONS``. The line ``begin`` on standard input begins a phase, ``end``
ends it and prints its latencies as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
from time import perf_counter
from typing import Any

import uvloop

REQUEST = b"GET /ping?name=web HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


class Connection(asyncio.Protocol):
    """Sends the next request when the response to the last one is complete."""

    def __init__(self, latencies: list[float]) -> None:
        self._latencies = latencies
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport  # uvloop's is no asyncio.Transport
        self._send()

    def data_received(self, data: bytes) -> None:
        self._received += data
        if self._received.endswith(b"}"):
            if not self._received.startswith(b"HTTP/1.1 200"):
                raise SystemExit(f"the service answered {self._received[:200]!r}")
            self._received = b""
            self._latencies.append(perf_counter() - self._began)
            self._send()

    def _send(self) -> None:
        self._began = perf_counter()
        self._transport.write(REQUEST)


async def main(port: int, connections: int) -> None:
    loop, latencies = asyncio.get_running_loop(), list[float]()
    commands = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    for _ in range(connections):
        await loop.create_connection(lambda: Connection(latencies), "127.0.0.1", port)
    while line := await commands.readline():
        if line == b"begin\n":
            latencies.clear()
            began = perf_counter()
        else:
            measured = sorted(latencies)
            answer = {"seconds": perf_counter() - began, "count": len(measured)}
            for name, share in (("p50", 0.5), ("p99", 0.99), ("p999", 0.999)):
                answer[name] = measured[int(len(measured) * share)] * 1000
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    uvloop.run(main(*map(int, sys.argv[1:])))
