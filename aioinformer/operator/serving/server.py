"""Serving: probes, metrics and the debug page of a Manager, over HTTP."""

from __future__ import annotations

import re
from contextlib import AsyncExitStack
from importlib.resources import files
from types import TracebackType
from typing import Self

import msgspec
from aiohttp import web

from ..._core.checks import require_count
from ...errors import ConfigError
from ...informer import Health
from ..listening import listen
from .snapshot import LISTED, MOST_LISTED, Debug

METRICS = "text/plain; version=0.0.4; charset=utf-8"

_POLICY = (
    "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page loads nothing from elsewhere."""


class Serving:
    """Serves a Manager's probes, metrics and debug page while its block runs.

    ``/healthz`` and ``/readyz`` answer 200, or 503 with the reasons. Ports that are equal share a server.

    Args:
        debug: Of the manager to serve.
        metrics_port: The port of ``/metrics``, ``/debug`` and ``/debug.json``; 0 for none.
        probe_port: The port of ``/healthz`` and ``/readyz``; 0 for none.
        host: The address to listen on; None for all.

    Raises:
        ConfigError: A port is invalid. Entering raises one if a port is in use.
    """

    def __init__(
        self, debug: Debug, *, metrics_port: int = 8080, probe_port: int = 8080, host: str | None = None
    ) -> None:
        for name, port in (("metrics_port", metrics_port), ("probe_port", probe_port)):
            require_count(name, port)
            if port > 65535:
                raise ConfigError(f"{name} must be at most 65535, not {port}")
        self._debug = debug
        self._host = host
        self._metrics_port, self._probe_port = metrics_port, probe_port
        self._page = files(__name__.rpartition(".")[0]).joinpath("debug.html").read_bytes()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        routes: dict[int, list[web.RouteDef]] = {}
        if self._metrics_port:
            routes.setdefault(self._metrics_port, []).extend(self._metrics_routes())
        if self._probe_port:
            routes.setdefault(self._probe_port, []).extend(self._probe_routes())
        async with AsyncExitStack() as starting:
            for port, its in routes.items():
                app = web.Application()
                app.add_routes(its)
                runner = web.AppRunner(app, handle_signals=False, access_log=None, shutdown_timeout=1.0)
                await runner.setup()
                starting.push_async_callback(runner.cleanup)
                await self._listen(runner, port)
            self._stack = starting.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def _listen(self, runner: web.AppRunner, port: int) -> None:
        options = [
            f"--{option}-port"
            for option, its in (("metrics", self._metrics_port), ("probe", self._probe_port))
            if its == port
        ]
        await listen(runner, self._host, port, " and ".join(options), note=" (0 for none)")

    def _probe_routes(self) -> list[web.RouteDef]:
        return [web.get("/healthz", self._healthz), web.get("/readyz", self._readyz)]

    def _metrics_routes(self) -> list[web.RouteDef]:
        return [
            web.get("/metrics", self._metrics),
            web.get("/debug", self._debug_page),
            web.get("/debug.json", self._debug_json),
        ]

    async def _healthz(self, request: web.Request) -> web.Response:
        return _answer(self._debug.manager.healthy())

    async def _readyz(self, request: web.Request) -> web.Response:
        return _answer(self._debug.manager.ready())

    async def _metrics(self, request: web.Request) -> web.Response:
        text = self._debug.manager.metrics()
        return web.Response(body=text.encode(), headers={"Content-Type": METRICS})

    async def _debug_page(self, request: web.Request) -> web.Response:
        headers = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-store"}
        return web.Response(body=self._page, content_type="text/html", charset="utf-8", headers=headers)

    async def _debug_json(self, request: web.Request) -> web.Response:
        limit = request.query.get("limit", "")
        if not re.fullmatch("[0-9]{0,9}", limit):
            raise web.HTTPBadRequest(text=f"limit must be a number of up to 9 digits, not {limit!r}\n")
        snapshot = self._debug.snapshot(
            request.query.get("contains", ""), min(int(limit), MOST_LISTED) if limit else LISTED
        )
        return web.Response(
            body=msgspec.json.encode(snapshot),
            content_type="application/json",
            headers={"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"},
        )


def _answer(health: Health) -> web.Response:
    lines = [*(("ok",) if health else health.reasons), *(f"warning: {each}" for each in health.warnings)]
    return web.Response(status=200 if health else 503, text="".join(f"{line}\n" for line in lines))
