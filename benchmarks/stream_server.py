"""A server that is never the bottleneck: one empty list, then a watch of events encoded beforehand.

Run as ``python -m benchmarks.stream_server EVENTS PODS``; prints its port.
"""

from __future__ import annotations

import asyncio
import sys

import msgspec

from .pods import pod

EMPTY = b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}'
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
GROUP = 8
"""Events in one HTTP chunk, as a busy server writes them."""
WRITE = 20
"""HTTP chunks handed to the socket at once, some megabyte: the clients must never wait for the server."""


def encode_events(events: int, pods: int) -> list[bytes]:
    """HTTP chunks of watch lines: first every pod is added, then pods change in turn."""
    encoder = msgspec.json.Encoder()
    lines = []
    for n in range(events):
        kind = b"ADDED" if n < pods else b"MODIFIED"
        lines.append(b'{"type":"%s","object":%s}\n' % (kind, encoder.encode(pod(n % pods, n + 2))))
    groups = [b"".join(lines[start : start + GROUP]) for start in range(0, events, GROUP)]
    chunks = [b"%x\r\n%s\r\n" % (len(group), group) for group in groups]
    return [b"".join(chunks[start : start + WRITE]) for start in range(0, len(chunks), WRITE)]


async def main(events: int, pods: int) -> None:
    chunks = encode_events(events, pods)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (head := await reader.readuntil(b"\r\n\r\n")) != b"":
                if b"sendInitialEvents" in head:
                    writer.write(b"HTTP/1.1 422 Unprocessable Entity\r\nContent-Length: 2\r\n\r\n{}")
                elif b"watch=" not in head:
                    writer.write(JSON + b"Content-Length: %d\r\n\r\n%s" % (len(EMPTY), EMPTY))
                else:
                    writer.write(JSON + b"Transfer-Encoding: chunked\r\n\r\n")
                    for chunk in chunks:
                        writer.write(chunk)
                        await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
