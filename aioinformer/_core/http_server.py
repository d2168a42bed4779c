"""aiohttp's server, without connections that outlive it."""

from __future__ import annotations

import asyncio

from aiohttp import web


class HTTPServer(web.Server):
    """A server that also closes connections whose TLS handshake ends after its own end.

    Attributes:
        has_ended: Whether it closes new connections; `shutdown` sets it.
    """

    has_ended = False

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        if self.has_ended:
            transport.abort()

    async def shutdown(self, timeout: float | None = None) -> None:
        self.has_ended = True
        await super().shutdown(timeout)
