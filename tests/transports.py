"""A Transport in front of another, for tests that have something to say about requests."""

from __future__ import annotations

from aioinformer import Transport


class Forwarding:
    """What is the same of all of them; `get`, `send` and `stream` are theirs."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @property
    def server(self) -> str:
        return self._transport.server

    @property
    def namespace(self) -> str:
        return self._transport.namespace

    async def open(self) -> None:
        await self._transport.open()

    async def close(self) -> None:
        await self._transport.close()
