"""A DNS API that fails at first."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from aiohttp import web


class DNS:
    """Keeps a record for each host: ``PUT /HOST`` and ``DELETE /HOST``. An async context manager.

    Attributes:
        records: The hosts that have a record.
        failures: The number of next removals that are answered 503.
        hangs: Whether requests for a record get no answer.
        url: The base of its paths.
    """

    def __init__(self) -> None:
        self.records: set[str] = set()
        self.failures = 0
        self.hangs = False
        self._ends = asyncio.Event()
        self.url = ""
        app = web.Application()
        app.add_routes([web.put("/{host}", self._put), web.delete("/{host}", self._delete)])
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.set()
        await self._runner.cleanup()

    async def _put(self, request: web.Request) -> web.Response:
        if self.hangs:
            await self._ends.wait()
        self.records.add(request.match_info["host"])
        return web.Response()

    async def _delete(self, request: web.Request) -> web.Response:
        if self.failures:
            self.failures -= 1
            return web.Response(status=503)
        self.records.discard(request.match_info["host"])
        return web.Response()
