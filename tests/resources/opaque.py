"""The embedded server behind a Transport that turns its resourceVersions into texts without an order."""

from __future__ import annotations

import re
from typing import Self

from aioinformer.client.transport import (
    JSON,
    READ_TIMEOUT,
    ByteStream,
    Change,
    Query,
)

from ..transports import Forwarding

_NUMBER = re.compile(rb'("resourceVersion":\s*")([1-9][0-9]*)"')
_TEXT = re.compile(rb'("resourceVersion":\s*")v([0-9]+)"')


class Opaque(Forwarding):
    """Turns ``"123"`` into ``"v321"``."""

    async def get(self, path: str, query: Query = (), *, timeout: float = READ_TIMEOUT) -> bytes:
        return _outward(await self._transport.get(path, _query(query), timeout=timeout))

    async def send(
        self, change: Change, path: str, query: Query = (), *, timeout: float = READ_TIMEOUT
    ) -> bytes:
        body = _TEXT.sub(lambda match: match[1] + match[2][::-1] + b'"', change.body)
        return _outward(await self._transport.send(change._replace(body=body), path, query, timeout=timeout))

    async def stream(
        self, path: str, query: Query = (), *, idle_timeout: float | None = None, accept: str = JSON
    ) -> ByteStream:
        stream = await self._transport.stream(path, _query(query), idle_timeout=idle_timeout)
        return _Stream(stream, watches="/watch" in path or ("watch", "true") in query)


class _Stream:
    def __init__(self, stream: ByteStream, *, watches: bool) -> None:
        self._stream = stream
        self._watches = watches
        self._left = b""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        """Yield whole lines of a watch, and a list as a whole."""
        while True:
            try:
                self._left += await anext(self._stream)
            except StopAsyncIteration:
                if not self._left:
                    raise
                whole, self._left = self._left, b""
                return _outward(whole)
            lines, end, rest = self._left.rpartition(b"\n")
            if self._watches and end:
                self._left = rest
                return _outward(lines + end)

    async def aclose(self) -> None:
        await self._stream.aclose()


def _outward(body: bytes) -> bytes:
    return _NUMBER.sub(lambda match: match[1] + b"v" + match[2][::-1] + b'"', body)


def _query(query: Query) -> Query:
    return [(name, value[:0:-1] if value.startswith("v") else value) for name, value in query]
