"""Serving: probes, metrics and the debug page of a Manager, over HTTP."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from importlib.resources import files
from ipaddress import ip_address
from types import TracebackType
from typing import Self

import msgspec
from aiohttp import web

from ..._core.bounded_server import Body, BoundedServer
from ..._core.cancellation import maybe_await
from ..._core.checks import require_count
from ...errors import ConfigError
from ...informer import Health
from .loop_lag import LoopLag
from .scrapes import Scrapes
from .snapshot import LISTED, MOST_LISTED, Debug, shorten
from .tokens import Tokens

MOST_CONNECTIONS = 100
MOST_BYTES = 64 * 1024 * 1024
"""Bytes of answers that clients have not read yet."""

GUARDED = ("/metrics", "/debug.json")
"""Paths that may ask for a token."""

_HOST = re.compile(r"(?:([A-Za-z0-9.-]+)|\[([0-9A-Fa-f:.]+)\])(?::[0-9]+)?")
_Page = Callable[[web.BaseRequest], Awaitable[web.Response] | web.Response]

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
        debug_hosts: Names at which ``/debug`` and ``/debug.json`` answer, beside IP addresses and localhost. Other
            names may be a web page's that leads a browser to this address (DNS rebinding).
        webhooks: Whether this process serves webhooks. Then ``/readyz`` does not wait for caches: they may wait for a
            conversion by these webhooks, which are called in ready pods only.
        tokens: Checks who may read ``/metrics`` and ``/debug.json``; None if everybody may. The page ``/debug`` has no
            data of its own, and asks for the token.

    Raises:
        ConfigError: A port is invalid, or prometheus-client is not installed. Entering raises one if a port is in use.
    """

    def __init__(
        self,
        debug: Debug,
        *,
        metrics_port: int = 8080,
        probe_port: int = 8080,
        host: str | None = None,
        debug_hosts: Iterable[str] = (),
        webhooks: bool = False,
        tokens: Tokens | None = None,
    ) -> None:
        for name, port in (("metrics_port", metrics_port), ("probe_port", probe_port)):
            require_count(name, port)
            if port > 65535:
                raise ConfigError(f"{name} must be at most 65535, not {port}")
        self._debug = debug
        self._host = host
        self._metrics_port, self._probe_port = metrics_port, probe_port
        self._debug_hosts = {name.lower() for name in debug_hosts}
        self._serves_webhooks = webhooks
        self._tokens = tokens
        self._page = files(__name__.rpartition(".")[0]).joinpath("debug.html").read_bytes()
        self._scrapes = Scrapes(debug.manager) if metrics_port else None
        self._lag = LoopLag()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        pages: dict[int, dict[str, _Page]] = {}
        if self._metrics_port:
            pages.setdefault(self._metrics_port, {}).update(
                {"/metrics": self._metrics, "/debug": self._debug_page, "/debug.json": self._debug_json}
            )
        if self._probe_port:
            pages.setdefault(self._probe_port, {}).update(
                {"/healthz": self._healthz, "/readyz": self._readyz}
            )
        async with AsyncExitStack() as starting:
            if self._metrics_port:
                starting.enter_context(self._lag)
                self._debug.manager.report(self._lag.samples)
            for port, its in pages.items():
                server = BoundedServer(
                    partial(self._serve, its),
                    name=f"port {port}",
                    connections=MOST_CONNECTIONS,
                    most_bytes=MOST_BYTES,
                )
                starting.push_async_callback(server.close, 1.0)
                await server.listen(self._host, port, self._options(port), note=" (0 for none)")
            self._stack = starting.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def _options(self, port: int) -> str:
        """Return the options that set a port."""
        ports = (("metrics", self._metrics_port), ("probe", self._probe_port))
        return " and ".join(f"--{option}-port" for option, its in ports if its == port)

    async def _serve(self, pages: Mapping[str, _Page], request: web.BaseRequest, body: Body) -> web.Response:
        page = pages.get(request.path)
        if page is None:
            return web.Response(status=404, text=f"there are only {', '.join(pages)}\n")
        if request.method not in ("GET", "HEAD"):
            return web.Response(
                status=405, text=f"{request.path} answers GET only\n", headers={"Allow": "GET, HEAD"}
            )
        if self._tokens is not None and request.path in GUARDED:
            verdict = await self._tokens.check(request.headers.get("Authorization", ""), request.path)
            if verdict.status != 200:
                headers = {"WWW-Authenticate": "Bearer"} if verdict.status == 401 else {}
                return web.Response(status=verdict.status, text=f"{verdict.text}\n", headers=headers)
        response: web.Response = await maybe_await(page(request))
        return response

    def _healthz(self, request: web.BaseRequest) -> web.Response:
        return _answer(self._debug.manager.healthy())

    def _readyz(self, request: web.BaseRequest) -> web.Response:
        ready = self._debug.manager.ready()
        return _answer(self._debug.manager.accepting() if self._serves_webhooks else ready, ready)

    async def _metrics(self, request: web.BaseRequest) -> web.Response:
        assert self._scrapes is not None
        body, content_type = await self._scrapes.answer(request.headers.get("Accept", ""))
        return web.Response(body=body, headers={"Content-Type": content_type})

    def _debug_page(self, request: web.BaseRequest) -> web.Response:
        if refusal := self._refusal(request):
            return refusal
        headers = {"Content-Security-Policy": _POLICY, "Cache-Control": "no-store"}
        return web.Response(body=self._page, content_type="text/html", charset="utf-8", headers=headers)

    def _debug_json(self, request: web.BaseRequest) -> web.Response:
        if refusal := self._refusal(request):
            return refusal
        limit = request.query.get("limit", "")
        if not re.fullmatch("[0-9]{0,9}", limit):
            return web.Response(
                status=400, text=f"limit must be a number of up to 9 digits, not {limit[:80]!r}\n"
            )
        snapshot = self._debug.snapshot(
            request.query.get("contains", ""), min(int(limit), MOST_LISTED) if limit else LISTED
        )
        return web.Response(
            body=msgspec.json.encode(snapshot),
            content_type="application/json",
            headers={"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"},
        )

    def _refusal(self, request: web.BaseRequest) -> web.Response | None:
        """Return why a request is not answered: its Host may be a page's, which a browser was led to this address."""
        host = request.headers.get("Host", "")
        match = _HOST.fullmatch(host)
        name = "" if match is None else (match[1] or match[2]).lower()
        if (
            name in self._debug_hosts
            or name == "localhost"
            or name.endswith(".localhost")
            or _is_address(name)
        ):
            return None
        text = (
            f"the debug page answers at IP addresses and localhost, not at {host[:80]!r}: use kubectl port-forward, or "
            "pass --debug-host with this name\n"
        )
        return web.Response(status=403, text=text)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _answer(health: Health, ready: Health | None = None) -> web.Response:
    """Return a probe's answer.

    Args:
        health: What decides.
        ready: What people read of it, too: reasons that do not count here, and warnings.
    """
    ready = health if ready is None else ready
    lines = ["ok", *(f"(not ready: {shorten(reason)})" for reason in ready.reasons)]
    if not health:
        lines = [shorten(reason) for reason in health.reasons]
    lines += (f"warning: {shorten(warning)}" for warning in ready.warnings)
    return web.Response(status=200 if health else 503, text="".join(f"{line}\n" for line in lines))
