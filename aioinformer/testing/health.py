"""Health: `/livez`, `/readyz`, `/healthz`, and their single checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from aioinformer.testing.requests import Request

_CHECKS = {
    "livez": ("ping", "log", "etcd"),
    "readyz": ("ping", "log", "etcd", "informer-sync", "shutdown"),
    "healthz": ("ping", "log", "etcd"),
}
"""The checks of the real server that this one has something for."""

HEALTH = frozenset(f"/{name}" for name in _CHECKS)


def health(request: Request) -> web.Response | None:
    """Return the answer to a path of a health check, or None for another path.

    Every check passes: a server that answers is healthy.
    """
    name, _, check = request.path.strip("/").partition("/")
    if name not in _CHECKS or (check and check not in _CHECKS[name]):
        return None
    if check or "verbose" not in request.query:
        return web.Response(text="ok")
    excluded = request.query.get("exclude")
    lines = [f"[+]{each} excluded: ok" if each == excluded else f"[+]{each} ok" for each in _CHECKS[name]]
    if excluded and excluded not in _CHECKS[name]:
        lines.append(f'warn: some health checks cannot be excluded: no matches for "{excluded}"')
    return web.Response(text="\n".join([*lines, f"{name} check passed"]) + "\n")
