"""The API of the platform around the databases: buckets that are made and removed, and health."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from aiohttp import web
from aiohttp.test_utils import TestServer


class Platform:
    """Answers the operators at ``$AGENT_URL``. An async context manager.

    Attributes:
        buckets: The buckets that exist: ``NAMESPACE/NAME``.
        failures: The number of next removals that are answered 503.
        unhealthy: The databases that are not healthy.
        url: The base of its paths.
    """

    def __init__(self) -> None:
        self.buckets: set[str] = set()
        self.failures = 0
        self.unhealthy: set[str] = set()
        self.url = ""
        app = web.Application()
        bucket, health = "/buckets/{namespace}/{name}", "/health/{namespace}/{name}"
        app.add_routes(
            [web.put(bucket, self._make), web.delete(bucket, self._remove), web.get(health, self._health)]
        )
        self._server = TestServer(app)

    async def __aenter__(self) -> Self:
        await self._server.start_server()
        self.url = str(self._server.make_url("")).rstrip("/")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._server.close()

    async def _make(self, request: web.Request) -> web.Response:
        self.buckets.add(_key(request))
        return web.Response()

    async def _remove(self, request: web.Request) -> web.Response:
        if self.failures:
            self.failures -= 1
            return web.Response(status=503)
        self.buckets.discard(_key(request))
        return web.Response()

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response(status=503 if _key(request) in self.unhealthy else 200)


def _key(request: web.Request) -> str:
    return f"{request.match_info['namespace']}/{request.match_info['name']}"
