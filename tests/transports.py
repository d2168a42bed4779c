"""A Transport in front of another one, for tests that change or record requests."""

from __future__ import annotations

from aioinformer import Transport


class Forwarding:
    """The base of such transports; subclasses have `get`, `send` and `stream`."""

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
